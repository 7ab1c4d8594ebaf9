"""What a replay rests on: gold passages, judges, and arms that change one thing."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from retrospan import SystemSettings, assemble
from retrospan_evaluator.errors import UsageError
from retrospan_evaluator.replay.arms import (
    CONTROL,
    Arm,
    Intervention,
    gold_arm,
    interventions,
    recorded_arm,
)
from retrospan_evaluator.replay.execution import check_repeats
from retrospan_evaluator.replay.gold import Gold, read_gold_files, resolve_gold
from retrospan_evaluator.replay.judge import judge_of
from retrospan_evaluator.testsets.case import Case, GoldPassage, Relevant
from retrospan_evaluator.traces.request import RecordedPassage, RecordedRequest, RecordedSettings

PASSAGES = (
    RecordedPassage(
        position=1, id="a#1", document_id="a", text="first of a", tokens=10, prompt_position=1
    ),
    RecordedPassage(
        position=2,
        id="b",
        document_id="b",
        text="copy",
        tokens=10,
        prompt_position=0,
        dropped_reason="duplicate",
    ),
    RecordedPassage(
        position=3,
        id="a#2",
        document_id="a",
        text="second of a",
        tokens=25,
        prompt_position=0,
        dropped_reason="budget",
    ),
    RecordedPassage(
        position=4,
        id="c",
        document_id="c",
        text="last",
        tokens=5,
        prompt_position=0,
        dropped_reason="top_k",
    ),
)
REQUEST = RecordedRequest(
    trace_id="1" * 32,
    root_span_id="2" * 16,
    service="shop",
    started_at=datetime(2026, 1, 1, tzinfo=UTC),
    input={"question": "where?"},
    question="where?",
    answer="here",
    replay_class="full",
    settings=RecordedSettings(depth=4, top_k=3, token_budget=30, budget_rule="stop"),
    passages=PASSAGES,
)
SYSTEM = SystemSettings(name="shop", version="1", depth=4, top_k=3, token_budget=30)


def prompt_of(arm: Arm) -> list[str]:
    assembly = assemble(
        arm.passages,
        top_k=arm.top_k,
        token_budget=arm.token_budget,
        rule=arm.budget_rule,
        ineligible=arm.ineligible,
    )
    return [passage.id for passage in assembly.context]


def test_the_control_shows_the_recorded_prompt_and_each_arm_changes_one_setting() -> None:
    assert prompt_of(recorded_arm(REQUEST, CONTROL)) == ["a#1"]
    assert prompt_of(recorded_arm(REQUEST, Intervention("top-k", 4))) == ["a#1"]
    assert prompt_of(recorded_arm(REQUEST, Intervention("token-budget", 35))) == ["a#1", "a#2"]
    assert prompt_of(recorded_arm(REQUEST, Intervention("token-budget", None))) == ["a#1", "a#2"]


def test_the_gold_arm_cuts_nothing() -> None:
    gold = resolve_gold(REQUEST, None, ["a", "c"], {})
    assert prompt_of(gold_arm(gold.passages, REQUEST)) == ["a#1", "a#2", "c"]


def test_a_flag_is_an_intervention_and_a_repeated_one_is_the_same() -> None:
    asked = interventions([4, 8, 4], ["120", "none"])
    assert [each.name for each in asked] == [
        "top-k 4",
        "top-k 8",
        "token-budget 120",
        "token-budget none",
    ]


@pytest.mark.parametrize("typed", ["0", "-1", "many", ""])
def test_a_budget_that_is_no_number_is_wrong_usage(typed: str) -> None:
    with pytest.raises(UsageError, match="--token-budget expects"):
        interventions([], [typed])


def test_gold_is_a_passage_id_first_and_a_document_id_second() -> None:
    by_passage = resolve_gold(REQUEST, None, ["a#2"], {})
    assert [p.id for p in by_passage.passages] == ["a#2"]
    assert by_passage.relevant == (Relevant(chunk_id="a#2"),)
    by_document = resolve_gold(REQUEST, None, ["a"], {})
    assert [p.id for p in by_document.passages] == ["a#1", "a#2"]
    assert by_document.relevant == (Relevant(document_id="a"),)


def test_gold_that_was_not_retrieved_needs_its_text_from_a_file_or_the_case(
    tmp_path: Path,
) -> None:
    nowhere = resolve_gold(REQUEST, None, ["a#1", "z"], {})
    assert nowhere.passages == ()
    assert nowhere.without_text == ("z",)
    (tmp_path / "z.txt").write_text("\ufeffthe text of z\n", "utf-8")
    texts = read_gold_files([f"z={tmp_path / 'z.txt'}"])
    given = resolve_gold(REQUEST, None, [], texts)
    assert [(p.id, p.text) for p in given.passages] == [("z", "the text of z")]
    assert given.relevant == (Relevant(document_id="z"),)
    case = Case(id="1", input="?", gold_context=(GoldPassage(document_id="z", text="z in case"),))
    assert [p.text for p in resolve_gold(REQUEST, case, ["z"], {}).passages] == ["z in case"]


def test_without_a_flag_gold_is_the_case_s_own() -> None:
    relevant = (Relevant(document_id="a"), Relevant(document_id="c", grade=0))
    labelled = Case(id="1", input="?", relevant=relevant)
    found = resolve_gold(REQUEST, labelled, [], {})
    assert [p.id for p in found.passages] == ["a#1", "a#2"]
    assert found.relevant == relevant
    written = replace(labelled, gold_context=(GoldPassage(chunk_id="a#9", text="whole"),))
    assert [p.text for p in resolve_gold(REQUEST, written, [], {}).passages] == ["whole"]
    assert resolve_gold(REQUEST, None, [], {}) == Gold()


@pytest.mark.parametrize("typed", ["z", "=file", "z=", "z=nowhere.txt"])
def test_a_gold_passage_without_a_readable_file_is_wrong_usage(typed: str) -> None:
    with pytest.raises(UsageError, match="--gold-passage"):
        read_gold_files([typed])


def test_an_arm_that_would_need_an_unknown_count_cannot_be_answered() -> None:
    passages = (*PASSAGES[:2], replace(PASSAGES[2], tokens=None), PASSAGES[3])
    request = replace(REQUEST, passages=passages)
    refusal = recorded_arm(request, Intervention("token-budget", 60)).unanswerable(SYSTEM)
    assert refusal is not None and "no recorded token count" in refusal
    assert recorded_arm(request, Intervention("token-budget", None)).unanswerable(SYSTEM) is None
    counting = replace(SYSTEM, has_token_counter=True)
    assert recorded_arm(request, Intervention("token-budget", 60)).unanswerable(counting) is None


def test_an_arm_that_would_show_a_text_that_is_not_stored_cannot_be_answered() -> None:
    passages = (*PASSAGES[:2], replace(PASSAGES[2], text=None), PASSAGES[3])
    request = replace(REQUEST, passages=passages)
    assert recorded_arm(request, CONTROL).unanswerable(SYSTEM) is None
    refusal = recorded_arm(request, Intervention("token-budget", 60)).unanswerable(SYSTEM)
    assert refusal == "1 passage it shows is stored without text"


def test_what_was_typed_judges_before_the_case_and_nothing_judges_without_either() -> None:
    case = Case(id="1", input="?", expected_answer="there")
    by_case, by_flag = judge_of(case), judge_of(case, "HERE")
    assert by_case is not None and by_case.passed(REQUEST) is False
    assert by_flag is not None and by_flag.passed(REQUEST) is True
    assert by_flag.passed(replace(REQUEST, answer=None)) is None
    assert judge_of(None) is None
    assert judge_of(Case(id="1", input="?")) is None


def test_citations_can_judge_a_replay_of_a_case_without_an_expected_answer() -> None:
    judge = judge_of(Case(id="1", input="?"), criterion="citations_valid")
    assert judge is not None
    assert judge.passed(replace(REQUEST, citations=("a#1",))) is True
    assert judge.passed(replace(REQUEST, citations=("b",), dangling_citations=("b",))) is False
    assert judge.passed(REQUEST) is None


def test_only_a_criterion_of_the_answer_can_judge_a_replay() -> None:
    with pytest.raises(UsageError, match="hit_rate_at_2"):
        judge_of(None, criterion="hit_rate_at_2")
    with pytest.raises(UsageError, match="--expect"):
        judge_of(None, " ")


def test_fewer_repeats_than_could_show_anything_are_refused() -> None:
    for repeats, deterministic in ((None, False), (5, False), (20, True), (1, True)):
        check_repeats(repeats, deterministic=deterministic)
    for repeats, deterministic in ((1, False), (4, False), (2, True), (0, True)):
        with pytest.raises(UsageError, match="--repeats expects at least 5"):
            check_repeats(repeats, deterministic=deterministic)
