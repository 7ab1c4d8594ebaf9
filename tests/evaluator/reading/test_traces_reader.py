"""The read side on the real engine: rows of the real tables come back as requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from retrospan_collector.clickhouse.connection import Store, open_store
from retrospan_collector.clickhouse.request_row import RequestRow
from retrospan_evaluator.traces.errors import SeveralRequests, UnknownTrace
from retrospan_evaluator.traces.reader import RequestFilter, TraceReader

Record = Callable[..., None]
MakeRow = Callable[..., RequestRow]

WEEK = timedelta(days=7)


@pytest.fixture
def store(store_url: str, record: Record) -> Iterator[Store]:
    record()
    with open_store(store_url) as opened:
        yield opened


def a_week_ago() -> datetime:
    return datetime.now(UTC) - WEEK


def named(number: int) -> str:
    return f"{number:032x}"


def test_a_request_comes_back_with_texts_and_metadata(store: Store, make_row: MakeRow) -> None:
    row = make_row()
    store.insert("requests", [row])
    request = TraceReader(store).request(row.trace_id)
    assert request.question == "How long can I return an annual plan?"
    assert request.started_at == row.timestamp
    assert [passage.id for passage in request.passages] == ["kb-01#1", "kb-07", "kb-03", "kb-ar"]
    assert request.passages[3].text == "كم يوماً لاسترداد المبلغ؟ أربعة عشر يوماً."
    assert request.passages[0].metadata == {"topic": "billing"}
    assert request.passages[1].metadata is None
    assert [stage.kind for stage in request.stages] == ["retrieve", "assemble", "generate"]


def test_the_newest_version_of_a_request_is_read(store: Store, make_row: MakeRow) -> None:
    row = make_row()
    store.insert("requests", [replace(row, answer="new", version=2)])
    store.insert("requests", [row])
    reader = TraceReader(store)
    assert reader.request(row.trace_id).answer == "new"
    assert [summary.answer for summary in reader.latest(5, a_week_ago())] == ["new"]


def test_a_request_that_was_taken_back_is_gone(store: Store, make_row: MakeRow) -> None:
    orphan = make_row(root_span_id="0000000000000001", service_name="unknown")
    store.insert("requests", [orphan])
    store.insert("requests", [replace(orphan, is_deleted=1, version=2), make_row(version=2)])
    reader = TraceReader(store)
    assert reader.request(orphan.trace_id).service == "help-desk"
    assert [summary.service for summary in reader.latest(5, a_week_ago())] == ["help-desk"]


def test_many_requests_come_in_a_few_statements_and_unknown_ones_are_left_out(
    store: Store, make_row: MakeRow
) -> None:
    store.insert("requests", [make_row(named(n), answer=str(n)) for n in range(1200)])
    asked = [named(n) for n in range(0, 1300, 2)]
    found = TraceReader(store).requests(asked)
    assert found.keys() == set(asked[:600])
    assert all(int(request.answer or "-1") == int(key, 16) for key, request in found.items())
    assert all(request.passages[0].text is not None for request in found.values())


def test_an_unknown_trace_says_what_to_do(store: Store) -> None:
    with pytest.raises(UnknownTrace, match="retrospan traces") as refused:
        TraceReader(store).request(named(7))
    assert refused.value.exit_code == 1


def test_a_trace_that_was_received_and_not_assembled_is_told_from_an_unknown_one(
    store: Store,
) -> None:
    store.command(
        "INSERT INTO otel_traces (Timestamp, TraceId, SpanId, ServiceName)"
        " VALUES (now64(9), {trace_id:String}, '00f067aa0ba902b7', 'help-desk')",
        {"trace_id": named(8)},
    )
    with pytest.raises(UnknownTrace, match="was received"):
        TraceReader(store).request(named(8))


def test_several_requests_of_a_trace_are_listed_and_chosen_by_root(
    store: Store, make_row: MakeRow
) -> None:
    first = make_row(root_span_id="0000000000000001", answer="one")
    later = first.timestamp + timedelta(seconds=1)
    second = replace(first, root_span_id="0000000000000002", timestamp=later, answer="two")
    store.insert("requests", [second, first])
    reader = TraceReader(store)
    with pytest.raises(SeveralRequests, match="--root") as several:
        reader.request(first.trace_id)
    assert [root.root_span_id for root in several.value.roots] == [
        "0000000000000001",
        "0000000000000002",
    ]
    assert reader.request(first.trace_id, "0000000000000002").answer == "two"
    assert reader.requests([first.trace_id])[first.trace_id].answer == "one"
    with pytest.raises(UnknownTrace, match="0000000000000001, 0000000000000002"):
        reader.request(first.trace_id, "0000000000000003")


def test_the_newest_come_first_and_only_as_many_as_asked(store: Store, make_row: MakeRow) -> None:
    now = datetime.now(UTC)
    rows = [make_row(named(n), timestamp=now - timedelta(minutes=n)) for n in range(30)]
    store.insert("requests", rows)
    summaries = TraceReader(store).latest(4, a_week_ago())
    assert [summary.trace_id for summary in summaries] == [named(n) for n in range(4)]
    assert [(summary.kept, summary.candidates) for summary in summaries] == [(1, 4)] * 4


def test_rewritten_requests_do_not_shorten_the_list(store: Store, make_row: MakeRow) -> None:
    now = datetime.now(UTC)
    rows = [make_row(named(n), timestamp=now - timedelta(minutes=n)) for n in range(6)]
    store.insert("requests", rows)
    for version in range(2, 9):
        store.insert("requests", [replace(row, version=version) for row in rows[:2]])
    summaries = TraceReader(store).latest(4, a_week_ago())
    assert [summary.trace_id for summary in summaries] == [named(n) for n in range(4)]


def test_a_list_can_be_narrowed(store: Store, make_row: MakeRow) -> None:
    rows = [
        make_row(named(1)),
        make_row(named(2), service_name="shop"),
        make_row(named(3), run_id="run-1", case_id="a"),
        make_row(named(4), run_id="replay:x", case_id="a"),
        make_row(named(5), timestamp=datetime.now(UTC) - 2 * WEEK),
    ]
    store.insert("requests", rows)
    reader = TraceReader(store)

    def listed(only: RequestFilter | None = None, since: datetime | None = None) -> set[int]:
        found = reader.latest(10, since or a_week_ago(), only)
        return {int(summary.trace_id, 16) for summary in found}

    assert listed() == {1, 2, 3}
    assert listed(RequestFilter(service="shop")) == {2}
    assert listed(RequestFilter(run_id="run-1")) == {3}
    assert listed(RequestFilter(run_id="replay:x")) == {4}
    assert listed(RequestFilter(replays=True)) == {1, 2, 3, 4}
    assert listed(since=a_week_ago() - 2 * WEEK) == {1, 2, 3, 5}


def test_a_request_whose_assembly_was_not_recorded_has_no_count_of_kept(
    store: Store, make_row: MakeRow
) -> None:
    store.insert("requests", [make_row(budget_rule="", passage_prompt_position=(None,) * 4)])
    assert TraceReader(store).latest(1, a_week_ago())[0].kept is None


def test_the_newest_moment_is_found_however_long_ago(store: Store, make_row: MakeRow) -> None:
    reader = TraceReader(store)
    assert reader.newest() is None
    row = make_row(timestamp=datetime.now(UTC) - 9 * WEEK)
    store.insert("requests", [row])
    assert reader.newest() == row.timestamp
