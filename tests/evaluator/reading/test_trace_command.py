"""`retrospan trace` on a real store."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from dirty_equals import IsPartialDict, IsStr
from typer.testing import CliRunner, Result

from retrospan_collector.clickhouse.request_row import RequestRow
from retrospan_evaluator.cli.app import app

Record = Callable[..., None]
MakeRow = Callable[..., RequestRow]
Trace = Callable[..., Result]


@pytest.fixture
def trace(store_url: str) -> Trace:
    """Runs the command on the store."""
    return lambda *words: CliRunner().invoke(app, ["trace", *words, "--store", store_url])


def test_a_request_is_shown_as_a_ladder(trace: Trace, record: Record, make_row: MakeRow) -> None:
    row = make_row()
    record(row)
    result = trace(row.trace_id)
    assert result.exit_code == 0
    assert "kept, 1st in prompt" in result.stdout
    assert "── token budget 40 cuts here" in result.stdout
    assert "── top-k 2 cuts here" in result.stdout
    assert "\u2068كم يوماً لاسترداد المبلغ؟ أربعة عشر يوماً.\u2069" in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert result.stderr == ""


def test_an_id_in_capitals_is_the_same_id(trace: Trace, record: Record, make_row: MakeRow) -> None:
    row = make_row()
    record(row)
    assert trace(row.trace_id.upper()).exit_code == 0


def test_text_shows_passages_whole(
    trace: Trace, record: Record, make_row: MakeRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = make_row()
    record(row)
    monkeypatch.setenv("COLUMNS", "60")
    ending = "the renewal."
    assert ending not in trace(row.trace_id).stdout
    assert ending in trace(row.trace_id, "--text").stdout


def test_json_is_the_documented_shape(trace: Trace, record: Record, make_row: MakeRow) -> None:
    row = make_row()
    record(row)
    document = json.loads(trace(row.trace_id, "--json").stdout)
    assert document == IsPartialDict(
        trace_id=row.trace_id,
        service="help-desk",
        started_at=IsStr(regex=r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"),
        dialect="retrospan",
        replay_class="full",
        completeness=[],
        input={"question": "How long can I return an annual plan?"},
        question="How long can I return an annual plan?",
        answer="14 days",
        citations=["kb-01"],
        index_version="kb-2026-11",
        settings=IsPartialDict(depth=6, top_k=2, token_budget=40, budget_rule="stop"),
    )
    assert document["passages"][1] == IsPartialDict(
        position=2,
        id="kb-07",
        document_id="kb-07",
        score=0.5,
        tokens=31,
        prompt_position=0,
        dropped_reason="budget",
        text="Refunds are paid back to the card that was charged.",
    )
    assert document["passages"][3] == IsPartialDict(
        score=0.25, tokens=None, cumulative_tokens=None, text=IsStr(regex="كم يوماً.*")
    )


def test_what_was_not_recorded_is_null_in_json(
    trace: Trace, record: Record, make_row: MakeRow
) -> None:
    row = make_row(
        budget_rule="",
        top_k=None,
        token_budget=None,
        passage_prompt_position=(None,) * 4,
        passage_dropped_reason=("",) * 4,
        completeness=5,
        input="",
        question="",
        index_version="",
    )
    record(row)
    document = json.loads(trace(row.trace_id, "--json").stdout)
    assert document["completeness"] == ["root_missing", "attributes_dropped"]
    assert document["settings"] == IsPartialDict(top_k=None, token_budget=None, budget_rule=None)
    assert document["passages"][0] == IsPartialDict(prompt_position=None, dropped_reason=None)
    assert document["input"] is document["question"] is document["index_version"] is None


def test_a_trace_of_several_requests_lists_their_roots(
    trace: Trace, record: Record, make_row: MakeRow
) -> None:
    first = make_row(root_span_id="0000000000000001")
    later = first.timestamp + timedelta(seconds=1)
    record(first, replace(first, root_span_id="0000000000000002", timestamp=later, answer="two"))
    listed = trace(first.trace_id)
    assert listed.exit_code == 0
    assert "--root 0000000000000001" in listed.stdout
    document = json.loads(trace(first.trace_id, "--json").stdout)
    roots = [request["root_span_id"] for request in document["requests"]]
    assert roots == ["0000000000000001", "0000000000000002"]
    chosen = json.loads(trace(first.trace_id, "--root", roots[1], "--json").stdout)
    assert chosen["answer"] == "two"


@pytest.mark.parametrize("trace_id", ["0" * 32, "a" * 32])
def test_an_unknown_trace_is_one_sentence_and_exit_1(
    trace: Trace, record: Record, trace_id: str
) -> None:
    record()
    result = trace(trace_id)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.count("\n") == 1
    assert "no trace" in result.stderr and "retrospan traces" in result.stderr
    assert "\x1b" not in result.stderr


def test_hostile_text_reaches_no_terminal(trace: Trace, record: Record, make_row: MakeRow) -> None:
    bad = "x\x1b]0;owned\x07 \u202eevil [bold]not markup[/bold] :smile:"
    row = make_row(question=bad, answer=bad, system_name=bad, index_version=bad, citations=(bad,))
    ids = (bad, *row.passage_id[1:])
    record(replace(row, passage_id=ids, dangling_citations=(bad,), status="error", error_type=bad))
    for words in ([row.trace_id], [row.trace_id, "--text"], [row.trace_id, "--json"]):
        printed = trace(*words).stdout
        assert not {"\x1b", "\x07", "\u202e"} & set(printed)
        assert "[bold]not markup[/bold] :smile:" in " ".join(printed.split())
