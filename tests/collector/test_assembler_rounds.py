"""The assembler's rounds on the real engine: spans are inserted, requests are read back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from retrospan import attributes
from retrospan_collector.assembler.loop import Assembler
from retrospan_collector.assembler.reading import Shard
from retrospan_collector.assembler.texts import RETENTION
from retrospan_collector.clickhouse.connection import Store
from retrospan_collector.clickhouse.evaluation_rows import RunRow
from retrospan_collector.clickhouse.request_row import (
    AssembledRow,
    Completeness,
    PassageTextRow,
    ProgressRow,
    RequestRow,
)
from retrospan_collector.clickhouse.rows import columns, from_row
from retrospan_collector.clickhouse.sample_key import sample_key

# The engine drops spans by its own clock, so theirs cannot stand long before it.
T0 = datetime.now(UTC).replace(microsecond=0)
TRACE = "0af7651916cd43dd8448eb211c80319c"
OTHER = "1bf7651916cd43dd8448eb211c80319d"
HASH = "0123456789abcdef0123456789abcdef"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanRow:
    """A span as any writer of `otel_traces` inserts it."""

    timestamp: datetime
    trace_id: str
    span_id: str
    parent_span_id: str
    service_name: str
    duration: int = 1_000_000
    span_attributes: Mapping[str, str] = field(default_factory=dict)
    ingested_at: datetime


def span(
    span_id: str,
    stage: str,
    recorded: Mapping[str, object] | None = None,
    *,
    parent: str = "root",
    trace_id: str = TRACE,
    service: str = "support",
    started_s: float = 0.0,
    arrived_s: float = 0.0,
) -> SpanRow:
    known = {attributes.SCHEMA_VERSION: "1", attributes.STAGE: stage, **(recorded or {})}
    return SpanRow(
        timestamp=T0 + timedelta(seconds=started_s),
        trace_id=trace_id,
        span_id=span_id,
        parent_span_id="" if parent == span_id else parent,
        service_name=service,
        span_attributes={
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in known.items()
        },
        ingested_at=T0 + timedelta(seconds=arrived_s),
    )


def root(trace_id: str = TRACE, **place: Any) -> SpanRow:
    return span("root", "request", {attributes.INPUT: '"How long?"'}, trace_id=trace_id, **place)


def retrieved(trace_id: str = TRACE, text: str = "14 days", **place: Any) -> SpanRow:
    recorded = {
        attributes.PASSAGES_ID: ["p1"],
        attributes.PASSAGES_HASH: [HASH],
        attributes.PASSAGES_TOKENS: [2],
        attributes.RETRIEVAL_DOCUMENTS: [{"id": "p1", "content": text, "metadata": {"page": 3}}],
    }
    return span("found", "retrieve", recorded, trace_id=trace_id, **place)


def answered(text: str = "14 days", trace_id: str = TRACE, **place: Any) -> SpanRow:
    return span("said", "generate", {attributes.ANSWER: text}, trace_id=trace_id, **place)


def whole(trace_id: str = TRACE, **place: Any) -> list[SpanRow]:
    return [
        root(trace_id, **place),
        retrieved(trace_id, **place),
        answered(trace_id=trace_id, **place),
    ]


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


def requests(store: Store) -> list[RequestRow]:
    found = store.query("SELECT * FROM requests FINAL ORDER BY Timestamp, TraceId, RootSpanId")
    return [from_row(RequestRow, row) for row in found]


def flags(row: RequestRow) -> tuple[str, ...]:
    return Completeness(row.completeness).names


def registration(trace_id: str = TRACE) -> RunRow:
    return RunRow(
        run_id="run-1",
        case_id="refund_annual",
        repeat=2,
        trace_id=trace_id,
        sample_key=sample_key(trace_id),
        kind="run",
        system="support_rag",
        created_at=T0,
    )


@pytest.mark.parametrize(
    ("table", "row_type"),
    [
        ("requests", RequestRow),
        ("passage_texts", PassageTextRow),
        ("assembled", AssembledRow),
        ("assembler_progress", ProgressRow),
    ],
)
def test_the_columns_are_those_of_the_row(store: Store, table: str, row_type: Any) -> None:
    described = store.query(f"DESCRIBE TABLE {table}")
    assert sorted(row["name"] for row in described) == sorted(columns(row_type))


def test_a_request_comes_back_from_the_store_as_it_was_built(store: Store) -> None:
    store.insert("otel_traces", whole())
    Assembler(store).round(at(31))
    (row,) = requests(store)
    store.command("TRUNCATE TABLE requests")
    store.insert("requests", [row])
    assert repr(requests(store)) == repr([row])
    assert (row.question, row.answer, row.passage_id) == ("How long?", "14 days", ("p1",))
    assert row.passage_hash == (bytes.fromhex(HASH),)
    assert row.passage_prompt_position == (None,)


def test_a_request_settles_when_its_trace_is_quiet(store: Store) -> None:
    assembler = Assembler(store, settle_s=30)
    store.insert("otel_traces", whole())
    assert assembler.round(at(29)).waiting == 1
    store.insert("otel_traces", [answered("15 days", arrived_s=20)])
    assert assembler.round(at(31)).requests == 0
    report = assembler.round(at(51))
    assert (report.requests, report.waiting) == (1, 0)
    assert [row.answer for row in requests(store)] == ["15 days"]


def test_rounds_that_find_nothing_new_write_nothing(store: Store) -> None:
    store.insert("otel_traces", whole())
    assert Assembler(store).round(at(31)).requests == 1
    before = store.query("SELECT * FROM requests ORDER BY Version")
    for assembler in (Assembler(store), Assembler(store)):
        for seconds in (32, 100, 1000):
            report = assembler.round(at(seconds))
            assert (report.requests, report.tombstones, report.traces) == (0, 0, 0)
    assert repr(store.query("SELECT * FROM requests ORDER BY Version")) == repr(before)


def test_spans_sent_twice_do_not_make_a_late_request(store: Store) -> None:
    assembler = Assembler(store)
    store.insert("otel_traces", whole())
    assembler.round(at(31))
    store.insert("otel_traces", whole(arrived_s=40))
    assembler.round(at(100))
    (row,) = requests(store)
    assert flags(row) == ()


def test_a_span_that_comes_late_rewrites_its_request_and_says_so(store: Store) -> None:
    assembler = Assembler(store)
    store.insert("otel_traces", whole()[:2])
    assembler.round(at(31))
    assert [row.answer for row in requests(store)] == [""]
    store.insert("otel_traces", [answered(arrived_s=60)])
    assembler.round(at(95))
    (row,) = requests(store)
    assert (row.answer, flags(row)) == ("14 days", ("late_rewrite",))


def test_an_orphan_group_is_listed_after_its_time_under_the_missing_parent(store: Store) -> None:
    assembler = Assembler(store, orphan_s=600)
    store.insert("otel_traces", whole()[1:])
    assert assembler.round(at(599)).requests == 0
    assert assembler.round(at(601)).requests == 1
    (row,) = requests(store)
    assert (row.root_span_id, flags(row)) == ("root", ("root_missing",))
    assert row.passage_id == ("p1",)


def test_a_root_that_comes_late_takes_back_the_row_under_the_old_key(store: Store) -> None:
    assembler = Assembler(store)
    store.insert("otel_traces", whole()[1:])
    assembler.round(at(601))
    store.insert("otel_traces", [root(service="gateway", arrived_s=700)])
    assert assembler.round(at(710)).tombstones == 0
    report = assembler.round(at(731))
    assert (report.requests, report.tombstones) == (1, 1)
    (row,) = requests(store)
    assert (row.service_name, row.question) == ("gateway", "How long?")
    assert flags(row) == ("late_rewrite",)
    deleted = store.query("SELECT ServiceName FROM requests WHERE IsDeleted")
    assert [old["ServiceName"] for old in deleted] == ["support"]


def test_a_root_that_comes_after_a_restart_takes_back_the_old_row_too(store: Store) -> None:
    store.insert("otel_traces", whole()[1:])
    Assembler(store).round(at(601))
    store.insert("otel_traces", [root(service="gateway", arrived_s=700)])
    Assembler(store).round(at(731))
    assert [row.service_name for row in requests(store)] == ["gateway"]


def test_rows_of_a_process_that_died_before_remembering_them_are_found(store: Store) -> None:
    store.insert("otel_traces", whole()[1:])
    Assembler(store).round(at(601))
    store.command("TRUNCATE TABLE assembled")
    store.insert("otel_traces", [root(service="gateway", arrived_s=700)])
    Assembler(store).round(at(731))
    assert [row.service_name for row in requests(store)] == ["gateway"]


def test_what_waited_when_the_process_ended_is_assembled_by_the_next(store: Store) -> None:
    store.insert("otel_traces", whole(OTHER))
    Assembler(store).round(at(31))
    store.insert("otel_traces", whole(arrived_s=35))
    Assembler(store).round(at(40))
    report = Assembler(store).round(at(40 + 36 * 3600))
    assert report.requests == 1
    assert len(requests(store)) == 2


def test_a_backlog_that_was_left_half_done_is_finished_by_the_next_process(store: Store) -> None:
    traces = [f"{n:032x}" for n in range(8)]
    for hour, trace in enumerate(traces):
        store.insert("otel_traces", whole(trace, arrived_s=hour * 3600))
    now = at(9 * 3600)
    first = Assembler(store, traces_per_read=2, traces_per_round=4).round(now)
    assert (first.requests, first.behind) == (4, True)
    assert Assembler(store).round(now).requests == 4


def test_requests_of_one_trace_settle_and_change_on_their_own(store: Store) -> None:
    assembler = Assembler(store)
    store.insert("otel_traces", whole())
    assembler.round(at(31))
    second = span("root2", "request", {}, parent="http", started_s=50, arrived_s=51)
    store.insert("otel_traces", [second])
    assert assembler.round(at(90)).requests == 1
    assert [(row.root_span_id, flags(row)) for row in requests(store)] == [
        ("root", ()),
        ("root2", ()),
    ]


def test_a_registered_run_settles_at_once_and_brings_its_case(store: Store) -> None:
    assembler = Assembler(store)
    store.insert("runs", [registration()])
    store.insert("otel_traces", whole()[1:])
    assert assembler.round(at(1)).requests == 0
    store.insert("otel_traces", [root(arrived_s=1.5)])
    assert assembler.round(at(2)).requests == 1
    (row,) = requests(store)
    assert (row.run_id, row.case_id, row.repeat) == ("run-1", "refund_annual", 2)
    assert flags(row) == ()


def test_a_run_that_nobody_registered_counts_as_live(store: Store) -> None:
    spans = whole()
    named = {attributes.RUN_ID: "run-9", attributes.CASE_ID: "c"}
    store.insert("otel_traces", [span("root", "request", named), *spans[1:]])
    assembler = Assembler(store)
    assert assembler.round(at(5)).requests == 0
    report = assembler.round(at(31))
    assert (report.requests, report.unregistered) == (1, 1)
    (row,) = requests(store)
    assert (row.run_id, row.case_id) == ("", "")


def texts(store: Store) -> Sequence[Mapping[str, object]]:
    return store.query("SELECT Text, Metadata, LastSeen FROM passage_texts ORDER BY LastSeen")


def test_a_text_is_written_once_and_again_when_it_was_last_seen_long_ago(store: Store) -> None:
    assembler = Assembler(store)
    store.insert("otel_traces", whole())
    assert assembler.round(at(31)).texts == 1
    store.insert("otel_traces", whole(OTHER, arrived_s=60))
    assert assembler.round(at(100)).texts == 0
    days = 101 * 86400
    third = "2cf7651916cd43dd8448eb211c80319e"
    store.insert("otel_traces", whole(third, arrived_s=days))
    assert Assembler(store).round(at(days + 31)).texts == 1
    first, again = texts(store)
    assert (first["Text"], first["Metadata"]) == ("14 days", '{"page":3}')
    assert again["LastSeen"] == at(days).date()


def test_texts_are_kept_for_as_long_as_the_assembler_believes(store: Store) -> None:
    (table,) = store.query(
        "SELECT create_table_query AS text FROM system.tables WHERE name = 'passage_texts'"
    )
    assert f"LastSeen + toIntervalDay({RETENTION.days})" in table["text"]


def test_other_peoples_traces_make_no_request_and_are_looked_at_once(store: Store) -> None:
    foreign = SpanRow(
        timestamp=T0,
        trace_id=TRACE,
        span_id="s",
        parent_span_id="",
        service_name="shop",
        ingested_at=T0,
    )
    store.insert("otel_traces", [foreign])
    assembler = Assembler(store)
    assert [assembler.round(at(seconds)).traces for seconds in (31, 32, 100)] == [1, 0, 0]
    assert requests(store) == []


def test_shards_divide_the_traces_between_them(store: Store) -> None:
    traces = [f"{n:032x}" for n in range(20)]
    store.insert("otel_traces", [item for trace in traces for item in whole(trace)])
    reports = [Assembler(store, shard=Shard(index=i, count=2)).round(at(31)) for i in (0, 1)]
    assert sum(report.requests for report in reports) == 20
    assert all(report.requests for report in reports)
    assert len(requests(store)) == 20


def test_a_round_takes_no_more_than_it_was_told_and_says_so(store: Store) -> None:
    traces = [f"{n:032x}" for n in range(5)]
    store.insert("otel_traces", [item for trace in traces for item in whole(trace)])
    assembler = Assembler(store, traces_per_read=2, traces_per_round=3)
    reports = [assembler.round(at(31)) for _ in range(2)]
    assert [(report.requests, report.behind) for report in reports] == [(3, True), (2, False)]
