"""Rows become requests in which what is unknown is None and nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from dirty_equals import IsPartialDataclass

from retrospan_collector.clickhouse.request_row import NO_HASH, Completeness, RequestRow
from retrospan_evaluator.traces.request import RecordedRequest
from retrospan_evaluator.traces.stored import recorded_request

Recorded = Callable[..., RecordedRequest]
MakeRow = Callable[..., RequestRow]


def test_every_sentinel_of_a_passage_is_none(recorded: Recorded) -> None:
    first, second, third, fourth = recorded().passages
    assert first == IsPartialDataclass(
        position=1, id="kb-01#1", document_id="kb-01", score=0.8125, tokens=23, prompt_position=1
    )
    assert first.dropped_reason is None
    assert (second.prompt_position, second.dropped_reason) == (0, "budget")
    assert third.score is None
    assert (fourth.tokens, fourth.cumulative_tokens) == (None, None)
    assert fourth.document_id == "kb-ar"
    assert fourth.source_version is fourth.updated_at is fourth.acl is None


def test_a_text_that_is_not_stored_is_none_and_an_empty_one_is_empty(make_row: MakeRow) -> None:
    row = make_row(count=1)
    assert recorded_request(row, {}).passages[0].text is None
    unknown = recorded_request(replace(row, passage_hash=(NO_HASH,)), {}).passages[0]
    assert (unknown.hash, unknown.text) == (None, None)


def test_live_traffic_has_no_run(recorded: Recorded) -> None:
    live, tested = recorded(), recorded(run_id="run-1", case_id="c", repeat=0)
    assert (live.run_id, live.case_id, live.repeat) == (None, None, None)
    assert (tested.run_id, tested.case_id, tested.repeat) == ("run-1", "c", 0)


@pytest.mark.parametrize(
    ("stored", "read"),
    [
        ('{"question":"كم؟"}', {"question": "كم؟"}),
        ('"plain"', "plain"),
        ("not json", "not json"),
        ("", None),
        ("null", None),
    ],
)
def test_an_input_is_parsed_where_it_is_json(recorded: Recorded, stored: str, read: object) -> None:
    assert recorded(input=stored).input == read


def test_an_empty_answer_is_an_answer_only_where_something_was_generated(
    recorded: Recorded,
) -> None:
    failed = ("", "", "ValueError")
    assert recorded(answer="").answer == ""
    assert recorded(answer="", stage_error_type=failed).answer is None


def test_no_budget_and_an_unknown_budget_are_told_apart(recorded: Recorded) -> None:
    none = recorded(token_budget=None)
    unknown = recorded(token_budget=None, budget_rule="", passage_prompt_position=(None,) * 4)
    assert (none.settings.token_budget, none.assembly_recorded) == (None, True)
    assert (unknown.settings.budget_rule, unknown.assembly_recorded) == (None, False)


def test_an_empty_retrieval_with_an_assembly_is_recorded(recorded: Recorded) -> None:
    assert recorded(count=0).assembly_recorded


def test_the_prompt_stands_in_prompt_order(recorded: Recorded) -> None:
    request = recorded(passage_prompt_position=(2, 0, 1, 0))
    assert [passage.position for passage in request.prompt] == [3, 1]


def test_what_is_missing_has_names(recorded: Recorded) -> None:
    bits = Completeness.ROOT_MISSING | Completeness.ATTRIBUTES_DROPPED
    assert recorded(completeness=int(bits)).completeness == ("root_missing", "attributes_dropped")
