"""Requests that fail for a known reason, recorded, replayed and labelled, all through the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from retrospan import BoundSystem
from retrospan_collector.clickhouse.connection import Store
from retrospan_evaluator.errors import RefusedError
from retrospan_evaluator.identifiers import Identifiers
from retrospan_evaluator.replay.arms import Intervention
from retrospan_evaluator.replay.execution import Replayer
from retrospan_evaluator.replay.findings import report_of
from retrospan_evaluator.replay.replaying import replay_requests
from retrospan_evaluator.replay.report import ReplayReport
from retrospan_evaluator.replay.subjects import subject_of
from retrospan_evaluator.replay.verdict import Label, Reason, Strength
from retrospan_evaluator.systems import load_system
from retrospan_evaluator.traces.reader import TraceReader
from retrospan_evaluator.traffic import PlannedRequest, traffic

RIGHT = "The answer is forty-two, says a file."
EXPECTED = "forty-two"


def library(name: str) -> BoundSystem:
    """One of the systems beside this file."""
    return load_system(f"shelf_systems:{name}", folder=Path(__file__).parent)


Shelves = tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A request to record, and how to replay it."""

    id: str
    shelf: Shelves
    reads: str = "all"
    recorded_by: str = "Library"
    replayed_by: str = "ClosedLibrary"
    expect: str | None = EXPECTED
    gold: tuple[str, ...] = ("right",)
    gold_text: Mapping[str, str] = field(default_factory=dict)
    asked: tuple[Intervention, ...] = ()
    repeats: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A scenario whose cause is known."""

    scenario: Scenario
    label: Label
    reason: Reason
    strength: Strength | None
    position: int | None = None
    implicated: tuple[str, ...] = ()
    recovered: bool = True


FAILURES = (
    Failure(
        scenario=Scenario(
            id="never retrieved",
            shelf=(("a", 5), ("b", 5)),
            gold_text={"right": RIGHT},
            asked=(Intervention("top-k", 4),),
        ),
        label=Label.RETRIEVAL_MISS,
        reason=Reason.RELEVANT_NOT_RETRIEVED,
        strength=Strength.INTERVENTION_RECOVERY,
        implicated=("retrieval",),
        recovered=False,
    ),
    Failure(
        scenario=Scenario(
            id="ranked below the cut",
            shelf=(("a", 5), ("b", 5), ("right", 5)),
            asked=(Intervention("top-k", 3),),
        ),
        label=Label.RANKED_OUT,
        reason=Reason.RELEVANT_BELOW_TOP_K,
        strength=Strength.REPLAY_CONFIRMED,
        position=3,
        implicated=("top_k",),
    ),
    Failure(
        scenario=Scenario(
            id="over the budget",
            shelf=(("a", 15), ("right", 10)),
            asked=(Intervention("token-budget", 25),),
        ),
        label=Label.CONTEXT_ASSEMBLY_LOSS,
        reason=Reason.RELEVANT_DROPPED,
        strength=Strength.REPLAY_CONFIRMED,
        position=2,
        implicated=("context_budget",),
    ),
    Failure(
        scenario=Scenario(
            id="over the budget, and a larger one is not enough",
            shelf=(("a", 15), ("right", 10)),
            reads="first",
            asked=(Intervention("token-budget", 25),),
        ),
        label=Label.CONTEXT_ASSEMBLY_LOSS,
        reason=Reason.RELEVANT_DROPPED,
        strength=Strength.INTERVENTION_RECOVERY,
        position=2,
        implicated=("context_budget",),
        recovered=False,
    ),
    Failure(
        scenario=Scenario(
            id="not read",
            shelf=(("right", 10), ("a", 5)),
            reads="none",
            asked=(Intervention("top-k", 1),),
        ),
        label=Label.GENERATION_FAILURE,
        reason=Reason.FAILS_WITH_GOLD_CONTEXT,
        strength=Strength.INTERVENTION_NON_RECOVERY,
        position=1,
        implicated=("generator",),
        recovered=False,
    ),
    Failure(
        scenario=Scenario(
            id="in the prompt beside something that distracts",
            shelf=(("a", 5), ("right", 5)),
            reads="first",
            asked=(Intervention("top-k", 1),),
        ),
        label=Label.UNRESOLVED,
        reason=Reason.RECOVERED_WITH_RELEVANT_IN_CONTEXT,
        strength=None,
        position=2,
        recovered=False,
    ),
)

LOST: Shelves = (("a", 15), ("right", 10))
"""The relevant passage is second and over the budget of 20."""

RESTORED = Scenario(
    id="restored in vain", shelf=LOST, reads="first", asked=(Intervention("token-budget", None),)
)
UNJUDGED = Scenario(id="nothing judges", shelf=(("a", 5),), expect=None, gold=("a",))
NO_GOLD = Scenario(id="no gold text", shelf=(("a", 5),), asked=(Intervention("top-k", 1),))
MOODY = Scenario(
    id="not declared deterministic",
    shelf=LOST,
    replayed_by="MoodyLibrary",
    asked=(Intervention("token-budget", 25),),
)
FORGETFUL = Scenario(
    id="not deterministic after all",
    shelf=LOST,
    recorded_by="ForgetfulLibrary",
    replayed_by="later_forgetful_library",
    repeats=1,
)
COIN = Scenario(
    id="passes now and then",
    shelf=(("a", 5),),
    recorded_by="CoinLibrary",
    replayed_by="CoinLibrary",
    gold=("a",),
)
RAISING = Scenario(id="raises", shelf=(("a", 5),), reads="raises", gold=("a",))

SCENARIOS = (
    *(failure.scenario for failure in FAILURES),
    *(RESTORED, UNJUDGED, NO_GOLD, MOODY, FORGETFUL, COIN, RAISING),
)


@pytest.fixture(scope="module")
def originals(store: Store, otlp_grpc: str, identifiers: Identifiers) -> dict[str, str]:
    """The recorded requests' trace ids, by scenario."""
    now = datetime.now(UTC)
    requests = {
        scenario.id: PlannedRequest(trace_id=identifiers.trace_id(), run_id=identifiers.run_id(now))
        for scenario in SCENARIOS
    }
    with traffic(store, otlp_grpc, library("Library").settings) as sent:
        sent.register(list(requests.values()), kind="run", now=now)
        for scenario in SCENARIOS:
            question = {"shelf": [list(book) for book in scenario.shelf], "reads": scenario.reads}
            system = library(scenario.recorded_by)
            sent.make(requests[scenario.id], partial(system.answer, question))
        traces = {name: request.trace_id for name, request in requests.items()}
        sent.recorded(TraceReader(store), list(traces.values()))
    return traces


@pytest.fixture(scope="module")
def reports(
    store: Store, otlp_grpc: str, identifiers: Identifiers, originals: dict[str, str]
) -> dict[str, ReplayReport]:
    """What the replays found, by scenario; all of them wait for the store once."""
    with traffic(store, otlp_grpc, library("Library").settings) as sent:
        runs = {}
        for scenario in SCENARIOS:
            subject = subject_of(
                store,
                originals[scenario.id],
                expect=scenario.expect,
                gold=scenario.gold,
                gold_texts=scenario.gold_text,
            )
            system = library(scenario.replayed_by)
            replayer = Replayer(system, sent, identifiers, datetime.now(UTC), scenario.repeats)
            (runs[scenario.id],) = replayer.run([subject], scenario.asked)
        traces = [trace_id for run in runs.values() for trace_id in run.trace_ids]
        stored = sent.recorded(TraceReader(store), traces)
    return {
        scenario.id: report_of(runs[scenario.id], stored, library(scenario.replayed_by).settings)
        for scenario in SCENARIOS
    }


@pytest.mark.parametrize("failure", FAILURES, ids=lambda failure: str(failure.scenario.id))
def test_each_way_to_fail_gets_its_label(
    failure: Failure, reports: dict[str, ReplayReport]
) -> None:
    report = reports[failure.scenario.id]
    verdict = report.verdict
    assert verdict is not None
    assert (verdict.label, verdict.reason, verdict.strength) == (
        failure.label,
        failure.reason,
        failure.strength,
    )
    assert report.best_relevant_position == verdict.best_relevant_position == failure.position
    assert verdict.implicated == failure.implicated
    gold, asked = report.arms
    assert (report.control.passed, report.control.n) == (0, 1)
    assert gold.prompt == ("right",)
    assert asked.recovered is failure.recovered


def test_a_restored_passage_that_does_not_help_is_said_in_so_many_words(
    reports: dict[str, ReplayReport],
) -> None:
    report = reports[RESTORED.id]
    assert [arm.prompt for arm in report.arms] == [("right",), ("a", "right")]
    assert report.notes == (
        "token-budget none puts right back into the prompt and does not recover the answer: "
        "that setting alone is not the fix",
    )


def test_the_arms_are_shown_without_a_label_where_nothing_judges(
    reports: dict[str, ReplayReport],
) -> None:
    report = reports[UNJUDGED.id]
    assert report.verdict is None
    assert report.to_json()["label"] is None
    assert (report.control.passed, report.control.n) == (None, 1)
    assert report.control.answers == ("Book a.",)
    assert [arm.recovered for arm in report.arms] == [None]


def test_without_gold_the_label_is_open_and_the_arms_are_shown(
    reports: dict[str, ReplayReport],
) -> None:
    report = reports[NO_GOLD.id]
    assert report.verdict is not None
    assert report.verdict.reason is Reason.EVIDENCE_MISSING
    gold, top_k = report.arms
    assert gold.n == 0
    assert gold.cannot_answer == (
        "the text of right is not stored: give it with --gold-passage ID=FILE"
    )
    assert (top_k.passed, top_k.n) == (0, 1)


def test_a_system_that_is_not_declared_deterministic_is_run_five_times(
    reports: dict[str, ReplayReport],
) -> None:
    report = reports[MOODY.id]
    assert [(arm.passed, arm.n) for arm in (report.control, *report.arms)] == [
        (0, 5),
        (5, 5),
        (5, 5),
    ]
    assert report.verdict is not None
    assert report.verdict.label is Label.CONTEXT_ASSEMBLY_LOSS


def test_a_declared_determinism_that_does_not_hold_is_run_five_times_and_said(
    reports: dict[str, ReplayReport],
) -> None:
    report = reports[FORGETFUL.id]
    assert (report.control.passed, report.control.n) == (0, 5)
    assert "the control did not give the recorded answer again" in report.notes[0]


def test_a_control_that_passes_now_and_then_leaves_the_label_open(
    reports: dict[str, ReplayReport],
) -> None:
    report = reports[COIN.id]
    assert (report.control.passed, report.control.n) == (2, 5)
    assert report.verdict is not None
    assert report.verdict.reason is Reason.UNSTABLE_UNDER_CONTROL


def test_a_generator_that_raises_is_not_a_wrong_answer(reports: dict[str, ReplayReport]) -> None:
    report = reports[RAISING.id]
    assert (report.control.passed, report.control.n) == (0, 0)
    assert report.control.errors == ("RuntimeError: the model is away",)
    assert report.control.answers == (None,) * 5
    assert report.verdict is not None
    assert report.verdict.reason is Reason.EVIDENCE_MISSING


def test_replays_are_stored_and_one_of_their_own_traces_leads_to_the_original(
    store: Store, otlp_grpc: str, identifiers: Identifiers, originals: dict[str, str]
) -> None:
    trace_id = originals[RESTORED.id]
    (report,) = replay_requests(
        [subject_of(store, trace_id, expect=EXPECTED, gold=["right"])],
        (),
        library("ClosedLibrary"),
        store,
        otlp_grpc,
        identifiers=identifiers,
        now=datetime.now(UTC),
    )
    rows = store.query(
        "SELECT Arm, Repeat, RunId, TraceId, Passed FROM replays FINAL "
        "WHERE ReplayId = {id:String} ORDER BY Arm",
        {"id": report.replay_id},
    )
    assert [(row["Arm"], row["Repeat"], row["Passed"]) for row in rows] == [
        ("control", 0, False),
        ("gold-context", 0, True),
    ]
    assert {row["RunId"] for row in rows} == {f"replay:{report.replay_id}"}
    with pytest.raises(RefusedError, match=f"replay the original {trace_id} instead"):
        subject_of(store, rows[0]["TraceId"])
