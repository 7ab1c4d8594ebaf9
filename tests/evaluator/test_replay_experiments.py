"""What a replay proposes next: nothing it has just refuted, and nothing where nothing failed."""

from __future__ import annotations

import json
import shlex
from datetime import datetime
from typing import Any

import pytest
from dirty_equals import IsPartialDict
from typer.testing import CliRunner

from retrospan_collector.clickhouse.connection import Store
from retrospan_evaluator.cli.app import app
from retrospan_evaluator.demo import SYSTEM, demo_dataset
from retrospan_evaluator.identifiers import Identifiers
from retrospan_evaluator.replay.arms import Intervention
from retrospan_evaluator.replay.experiments import TypedReplay, experiments
from retrospan_evaluator.replay.report import ArmReport, ReplayReport
from retrospan_evaluator.replay.verdict import Label, Reason, Verdict
from retrospan_evaluator.runs import RunReport, run_dataset
from retrospan_evaluator.systems import load_system
from retrospan_evaluator.traces.request import RecordedPassage, RecordedRequest, RecordedSettings

TYPED = TypedReplay(system="app:Shop")


@pytest.fixture(scope="module")
def run(store: Store, otlp_grpc: str, identifiers: Identifiers) -> RunReport:
    """A run of the example."""
    return run_dataset(
        demo_dataset(),
        load_system(SYSTEM),
        store,
        otlp_grpc,
        identifiers=identifiers,
        now=datetime.now().astimezone(),
    )


@pytest.fixture
def command(store_url: str) -> CliRunner:
    return CliRunner(env={"RETROSPAN_STORE": store_url, "COLUMNS": "100"})


def trace_of(run: RunReport, case_id: str) -> str:
    return next(r.request.trace_id for r in run.results if r.case.id == case_id)


def replayed(command: CliRunner, *arguments: str) -> Any:
    result = command.invoke(app, ["replay", *arguments, "--system", SYSTEM, "--json"])
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_a_budget_is_not_proposed_when_its_prompt_has_just_been_refuted(
    command: CliRunner, run: RunReport
) -> None:
    trace_id = trace_of(run, "upload_size")
    (proposed,) = replayed(command, trace_id)["candidate_experiments"]
    tried = replayed(command, trace_id, "--token-budget", "none")
    arm = tried["arms"][1]
    assert (arm["intervention"], arm["recovered"]) == ("token-budget none", False)
    assert tried["candidate_experiments"] == []
    # It is the very prompt that the proposal without that arm leads to.
    budget = shlex.split(proposed["command"])[-1]
    assert (
        replayed(command, trace_id, "--token-budget", budget)["arms"][1]["prompt"]
        == (arm["prompt"])
    )


def test_a_request_that_is_right_has_nothing_to_explain_and_nothing_to_recover(
    command: CliRunner, run: RunReport
) -> None:
    fine = next(r for r in run.results if (s := r.score("answer_correct")) and s.passed)
    trace_id = fine.request.trace_id
    report = replayed(command, trace_id, "--top-k", "1")
    assert report == IsPartialDict(
        label="UNRESOLVED",
        reason="unstable_under_control",
        passes_unchanged=True,
        recorded_passed=True,
        candidate_experiments=[],
    )
    assert [arm["recovered"] for arm in report["arms"]] == [False, False]
    page = " ".join(command.invoke(app, ["replay", trace_id, "--system", SYSTEM]).stdout.split())
    assert "the answer is right, as it was recorded: there is nothing to explain" in page
    assert "with nothing changed, it passes 1 of 1 (unstable_under_control)" in page
    assert "gold-context passed 1 of 1, as the control does" in page
    assert "recover" not in page and "lost the answer" not in page


def request(top_k: int, budget: int | None, *passages: tuple[int, str | None]) -> RecordedRequest:
    """A request whose passages are given as tokens and reason of being dropped."""
    total = 0
    recorded = []
    for position, (tokens, reason) in enumerate(passages, start=1):
        total += tokens
        recorded.append(
            RecordedPassage(
                position=position,
                id=f"p{position}",
                document_id=f"p{position}",
                text="…",
                tokens=tokens,
                cumulative_tokens=total,
                prompt_position=0 if reason else position,
                dropped_reason=reason,
            )
        )
    return RecordedRequest(
        trace_id="1" * 32,
        root_span_id="2" * 16,
        service="shop",
        started_at=datetime(2026, 1, 1).astimezone(),
        replay_class="full",
        settings=RecordedSettings(depth=4, top_k=top_k, token_budget=budget, budget_rule="stop"),
        passages=tuple(recorded),
    )


def arm(kind: Any, value: int | None, *prompt: str, passed: int = 0, runs: int = 1) -> ArmReport:
    return ArmReport(
        intervention=Intervention(kind, value),
        prompt=prompt,
        passed=passed,
        n=runs,
        recovered=None if kind == "control" else passed == 1,
    )


def proposals(
    recorded: RecordedRequest,
    label: Label,
    reason: Reason,
    position: int,
    *arms: ArmReport,
    runs: int = 1,
) -> list[tuple[str, str | None]]:
    prompt = [passage.id for passage in recorded.prompt]
    report = ReplayReport(
        replay_id="r",
        request=recorded,
        system="shop",
        criterion="answer_correct",
        expected="x",
        recorded_passed=False,
        verdict=Verdict(label=label, reason=reason, best_relevant_position=position),
        best_relevant_position=position,
        control=arm("control", None, *prompt, runs=runs),
        arms=(arm("gold-context", None, f"p{position}", passed=1), *arms),
    )
    return [(found.text, found.command) for found in experiments(report, TYPED)]


def test_a_setting_whose_prompt_recovered_under_another_name_is_to_be_run_on_all_questions() -> (
    None
):
    lost = request(2, 20, (15, None), (10, "budget"))
    none = arm("token-budget", None, "p1", "p2", passed=1)
    ((text, command),) = proposals(
        lost, Label.CONTEXT_ASSEMBLY_LOSS, Reason.RELEVANT_DROPPED, 2, none
    )
    assert "the prompt of token-budget none, and that recovers the answer" in text
    assert command == "retrospan run DATASET --system app:Shop --set token_budget=25"


def test_a_gold_context_of_the_same_ids_does_not_stand_for_the_setting() -> None:
    lost = request(2, 20, (25, "budget"), (10, "budget"))
    ((_, command),) = proposals(lost, Label.CONTEXT_ASSEMBLY_LOSS, Reason.RELEVANT_DROPPED, 1)
    assert command is not None and command.endswith("--token-budget 25")


def test_a_top_k_that_reaches_a_passage_the_budget_still_drops_is_not_proposed_alone() -> None:
    below = request(1, 20, (15, None), (10, "top_k"))
    ((text, command),) = proposals(below, Label.RANKED_OUT, Reason.RELEVANT_BELOW_TOP_K, 2)
    assert "alone does not bring the relevant passage into the prompt" in text
    assert command == (
        "retrospan run DATASET --system app:Shop --set top_k=2 --set token_budget=25"
    )
    roomy = request(1, 40, (15, None), (10, "top_k"))
    ((_, command),) = proposals(roomy, Label.RANKED_OUT, Reason.RELEVANT_BELOW_TOP_K, 2)
    assert command is not None and command.endswith("--top-k 2")


def test_a_passage_that_no_setting_brings_back_is_said_to_be_so_wherever_it_ranked() -> None:
    copy = request(1, None, (15, None), (10, "duplicate"))
    ((text, command),) = proposals(copy, Label.RANKED_OUT, Reason.RELEVANT_BELOW_TOP_K, 2)
    assert "left out as duplicate: no setting brings it back" in text
    assert command is None


def test_a_shorter_prompt_is_not_proposed_again_where_it_is_what_was_shown() -> None:
    shown = request(2, None, (15, None), (10, None))
    found = proposals(shown, Label.UNRESOLVED, Reason.RECOVERED_WITH_RELEVANT_IN_CONTEXT, 2)
    assert found == []


def test_more_runs_are_proposed_only_while_there_were_fewer() -> None:
    shown = request(2, None, (15, None), (10, None))
    found = proposals(shown, Label.UNRESOLVED, Reason.INCONCLUSIVE_UNDER_REPEATS, 1)
    assert found[0][1] is not None and found[0][1].endswith("--repeats 20")
    assert proposals(shown, Label.UNRESOLVED, Reason.INCONCLUSIVE_UNDER_REPEATS, 1, runs=20) == []
