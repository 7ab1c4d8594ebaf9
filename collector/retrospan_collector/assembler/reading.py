"""What the assembler asks the store: one query for many traces, never one a trace.

Traces are asked for by sample key alone, which is what the tables are sorted by; a trace that
shares its key with another is told from it here. Naming the ids too costs a tenth of a round.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import cache
from importlib import resources

from retrospan_collector.assembler.request import Registration
from retrospan_collector.assembler.span import Span, span_from_row
from retrospan_collector.clickhouse.connection import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """Which part of the traces one assembler works on: those with `SampleKey % count = index`."""

    index: int = 0
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """A trace by name, and the key under which its rows lie."""

    trace_id: str
    sample_key: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TouchedTrace:
    """A trace with spans that were not assembled yet."""

    trace: Trace
    last_ms: int
    """When the newest of them arrived."""


@dataclass(frozen=True, slots=True)
class RequestKey:
    """What makes two rows of `requests` versions of one."""

    service_name: str
    day: date
    root_span_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenRequest:
    """A row that stands in `requests`."""

    service_name: str
    timestamp: datetime
    root_span_id: str
    span_count: int = 0
    """From how many spans it was made; 0 when that is not remembered."""
    late: bool = False

    @property
    def key(self) -> RequestKey:
        """The row's key beside its trace."""
        return RequestKey(self.service_name, self.timestamp.date(), self.root_span_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What is known of a trace from before; the default is a trace never seen."""

    last_ms: int = -1
    pending: bool = True
    version: int = 0
    written: tuple[WrittenRequest, ...] = ()

    def together_with(self, standing: Remembered) -> Remembered:
        """This memory, and the rows that stand without being in it."""
        known = {request.key for request in self.written}
        more = tuple(request for request in standing.written if request.key not in known)
        return replace(
            self, version=max(self.version, standing.version), written=self.written + more
        )


def touched_traces(store: Store, since_ms: int, shard: Shard) -> list[TouchedTrace]:
    """The traces with spans that arrived since then and are not assembled."""
    parameters = {"since_ms": since_ms, "shard": shard.index, "shards": shard.count}
    rows = store.query(_statement("touched_traces"), parameters)
    return [
        TouchedTrace(
            trace=Trace(trace_id=row["TraceId"], sample_key=row["SampleKey"]),
            last_ms=row["LastMs"],
        )
        for row in rows
    ]


def progress_ms(store: Store, shard: Shard) -> int | None:
    """Up to when a shard was done when its process last noted it; None when it never did."""
    rows = store.query(
        _statement("progress_of_shard"), {"shard": shard.index, "shards": shard.count}
    )
    return rows[0]["DoneMs"] if rows else None


def spans_of(store: Store, traces: Sequence[Trace]) -> dict[str, list[Span]]:
    """The spans of each trace, each once: the copy that arrived last."""
    newest: dict[str, dict[str, Span]] = {trace.trace_id: {} for trace in traces}
    for row in store.query(_statement("spans_of_traces"), _keys(traces)):
        spans = newest.get(row["TraceId"])
        if spans is None:
            continue
        span = span_from_row(row)
        known = spans.get(span.span_id)
        if known is None or span.arrived_ms >= known.arrived_ms:
            spans[span.span_id] = span
    return {trace_id: list(spans.values()) for trace_id, spans in newest.items()}


def remembered(store: Store, traces: Sequence[Trace]) -> dict[str, Remembered]:
    """What was assembled before of those traces that were seen before."""
    return {
        row["TraceId"]: Remembered(
            last_ms=row["LastMs"],
            pending=bool(row["Pending"]),
            version=row["Version"],
            written=tuple(
                WrittenRequest(
                    service_name=service,
                    timestamp=timestamp,
                    root_span_id=root,
                    span_count=count,
                    late=bool(late),
                )
                for service, timestamp, root, count, late in zip(
                    row["KeyServiceName"],
                    row["KeyTimestamp"],
                    row["KeyRootSpanId"],
                    row["KeySpanCount"],
                    row["KeyLate"],
                    strict=True,
                )
            ),
        )
        for row in store.query(_statement("remembered_traces"), _keys(traces))
    }


def stored_requests(store: Store, traces: Sequence[Trace]) -> dict[str, Remembered]:
    """The rows of those traces that have some, whether they are remembered or not."""
    found: dict[str, Remembered] = {}
    for row in store.query(_statement("stored_requests"), _keys(traces)):
        known = found.get(row["TraceId"], Remembered())
        written = WrittenRequest(
            service_name=row["ServiceName"],
            timestamp=row["Timestamp"],
            root_span_id=row["RootSpanId"],
        )
        found[row["TraceId"]] = Remembered(
            version=max(known.version, row["LastVersion"]), written=(*known.written, written)
        )
    return found


def registrations_of(store: Store, traces: Sequence[Trace]) -> dict[str, Registration]:
    """The places of those traces that a run has registered."""
    return {
        row["TraceId"]: Registration(
            run_id=row["RunId"], case_id=row["CaseId"], repeat=row["Repeat"]
        )
        for row in store.query(_statement("registrations_of_traces"), _keys(traces))
    }


def stored_texts(store: Store, hashes: Iterable[bytes]) -> dict[bytes, date]:
    """When each of those texts that are stored was last seen."""
    parameters = {"hashes": [content.hex() for content in hashes]}
    rows = store.query(_statement("stored_texts"), parameters)
    return {row["Hash"]: row["LastSeen"] for row in rows}


@cache
def _statement(name: str) -> str:
    folder = resources.files("retrospan_collector.assembler") / "queries"
    return (folder / f"{name}.sql").read_text(encoding="utf-8")


def _keys(traces: Sequence[Trace]) -> Mapping[str, object]:
    return {"sample_keys": [trace.sample_key for trace in traces]}
