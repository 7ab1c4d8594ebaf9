"""Whatever the order in which spans arrive, the same requests stand in the end, each once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from retrospan import attributes
from retrospan_collector.assembler.reading import Remembered, Trace, WrittenRequest
from retrospan_collector.assembler.span import Span
from retrospan_collector.assembler.trace import Settling, assemble_trace
from retrospan_collector.clickhouse.request_row import AssembledRow, Completeness, RequestRow

T0 = datetime(2026, 3, 1, 23, 59, tzinfo=UTC)
T0_MS = int(T0.timestamp() * 1000)
TRACE = Trace(trace_id="0af7651916cd43dd8448eb211c80319c", sample_key=7)
SETTLING = Settling(settle_ms=30_000, orphan_ms=600_000)
Key = tuple[str, str, str]


def span(
    span_id: str, parent: str, stage: str, second: int, service: str = "support", **more: object
) -> Span:
    known = {attributes.SCHEMA_VERSION: "1", attributes.STAGE: stage}
    known |= {name: json.dumps(value) for name, value in more.items()}
    return Span(
        trace_id=TRACE.trace_id,
        span_id=span_id,
        parent_span_id=parent,
        service_name=service,
        start_ns=(T0_MS + second * 1000) * 1_000_000,
        attributes=known,
    )


# Two requests, one of another service and begun before midnight, over an HTTP span; one of them
# holds a span of somebody else in its middle, without which its generation is an orphan.
SPANS = [
    replace(span("http", "", "", 0), attributes={}),
    span("one", "http", "request", 1, service="gateway"),
    span("one-found", "one", "retrieve", 70),
    replace(span("one-between", "one", "", 71), attributes={}),
    span("one-said", "one-between", "generate", 72),
    span("two", "http", "request", 90),
    span("two-found", "two", "retrieve", 91),
    span("two-said", "two", "generate", 92),
]


def remembered(memory: AssembledRow) -> Remembered:
    return Remembered(
        last_ms=round(memory.last_arrival.timestamp() * 1000),
        pending=bool(memory.pending),
        version=memory.version,
        written=tuple(
            WrittenRequest(
                service_name=service, timestamp=at, root_span_id=root, span_count=n, late=bool(late)
            )
            for service, at, root, n, late in zip(
                memory.key_service_name,
                memory.key_timestamp,
                memory.key_root_span_id,
                memory.key_span_count,
                memory.key_late,
                strict=True,
            )
        ),
    )


class Table:
    """What `requests` holds after the engine has merged it: the last version under each key."""

    def __init__(self) -> None:
        self.rows: dict[Key, RequestRow] = {}
        self.before = Remembered()

    def look(self, spans: Sequence[Span], now: datetime) -> int:
        looked = assemble_trace(
            TRACE, spans, self.before, registration=None, settling=SETTLING, now=now
        )
        for row in (*looked.tombstones, *looked.rows):
            key = (row.service_name, str(row.timestamp.date()), row.root_span_id)
            assert key not in self.rows or self.rows[key].version < row.version
            self.rows[key] = row
        if looked.memory is not None:
            self.before = remembered(looked.memory)
        return len(looked.rows) + len(looked.tombstones)

    def standing(self) -> list[tuple[object, ...]]:
        rows = [row for row in self.rows.values() if not row.is_deleted]
        late = ~Completeness.LATE_REWRITE
        return sorted(
            (row.root_span_id, row.service_name, row.stage_span_id, row.completeness & late)
            for row in rows
        )


def at_once() -> list[tuple[object, ...]]:
    table = Table()
    table.look([replace(item, arrived_ms=T0_MS) for item in SPANS], T0 + timedelta(hours=1))
    return table.standing()


@given(
    order=st.permutations(SPANS),
    pauses_s=st.lists(st.sampled_from([0, 5, 31, 700]), min_size=8, max_size=8),
)
def test_any_order_of_arrival_ends_in_the_same_requests(
    order: Sequence[Span], pauses_s: Sequence[int]
) -> None:
    table = Table()
    arrived: list[Span] = []
    now = T0
    for item, pause_s in zip(order, pauses_s, strict=True):
        arrived.append(replace(item, arrived_ms=round(now.timestamp() * 1000)))
        table.look(arrived, now)
        now += timedelta(seconds=pause_s)
        table.look(arrived, now)
    table.look(arrived, now + timedelta(hours=1))
    assert table.standing() == at_once()
    assert [row[0] for row in table.standing()] == ["one", "two"]
    assert table.look(arrived, now + timedelta(hours=2)) == 0
