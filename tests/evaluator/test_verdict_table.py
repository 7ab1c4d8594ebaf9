"""The label table row by row."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from retrospan_evaluator.replay.verdict import (
    Arm,
    Evidence,
    Label,
    RankedPassage,
    Reason,
    Runs,
    Strength,
    verdict,
)
from retrospan_evaluator.testsets.case import Relevant

PASSED, FAILED = Runs(passed=1, n=1), Runs(passed=0, n=1)


def passage(name: str, prompt_position: int | None, reason: str | None = None) -> RankedPassage:
    return RankedPassage(
        id=name, document_id=name, prompt_position=prompt_position, dropped_reason=reason
    )


BUDGET_DROP = (passage("x", 1), passage("gold", 0, "budget"), passage("y", 0, "top_k"))

BASE = Evidence(
    replayable=True,
    control=FAILED,
    gold=PASSED,
    single_run_decides=True,
    relevant=(Relevant(document_id="gold"),),
    passages=BUDGET_DROP,
    top_k=2,
)


def arm(kind: str, runs: Runs, *prompt: str) -> Arm:
    return Arm(intervention=f"{kind} 9", kind=kind, runs=runs, prompt=prompt)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Row:
    name: str
    evidence: Evidence
    label: Label
    reason: Reason
    strength: Strength | None = None
    position: int | None = 2
    implicated: tuple[str, ...] = field(default=())


UNRESOLVED = Label.UNRESOLVED
RECOVERY = Strength.INTERVENTION_RECOVERY
CHUNK_LABEL = (Relevant(document_id="gold", chunk_id="gold#1"),)
UNNAMED = RankedPassage(id=None, document_id="gold", prompt_position=1)
RANKED_OUT = (passage("x", 1), passage("y", 2), passage("gold", 0, "top_k"))

ROWS = [
    Row(
        "1 stages not recorded",
        replace(BASE, replayable=False, control=None),
        UNRESOLVED,
        Reason.NOT_REPLAYABLE,
    ),
    Row(
        "2 no gold",
        replace(BASE, gold=None),
        UNRESOLVED,
        Reason.EVIDENCE_MISSING,
    ),
    Row(
        "2 no control",
        replace(BASE, control=None),
        UNRESOLVED,
        Reason.EVIDENCE_MISSING,
    ),
    Row(
        "3 the control passes",
        replace(BASE, control=PASSED),
        UNRESOLVED,
        Reason.UNSTABLE_UNDER_CONTROL,
    ),
    Row(
        "3 the control passes before gold is looked at",
        replace(BASE, control=Runs(passed=1, n=5), gold=Runs(passed=0, n=5)),
        UNRESOLVED,
        Reason.UNSTABLE_UNDER_CONTROL,
    ),
    Row(
        "4 fails with gold",
        replace(BASE, gold=FAILED),
        Label.GENERATION_FAILURE,
        Reason.FAILS_WITH_GOLD_CONTEXT,
        Strength.INTERVENTION_NON_RECOVERY,
        implicated=("generator",),
    ),
    Row(
        "5 gold undecided",
        replace(BASE, control=Runs(passed=0, n=5), gold=Runs(passed=3, n=5)),
        UNRESOLVED,
        Reason.INCONCLUSIVE_UNDER_REPEATS,
    ),
    Row(
        "6 no relevance known",
        replace(BASE, relevant=()),
        UNRESOLVED,
        Reason.NO_RELEVANCE_LABELS,
        position=None,
    ),
    Row(
        "6 only irrelevance known",
        replace(BASE, relevant=(Relevant(document_id="gold", grade=0),)),
        UNRESOLVED,
        Reason.NO_RELEVANCE_LABELS,
        position=None,
    ),
    Row(
        "7 a chunk label against a document",
        replace(BASE, relevant=CHUNK_LABEL, passages=(UNNAMED,)),
        UNRESOLVED,
        Reason.RELEVANCE_UNIT_MISMATCH,
        position=None,
    ),
    Row(
        "7 a doubtful passage before the first sure match",
        replace(BASE, relevant=CHUNK_LABEL, passages=(UNNAMED, passage("gold#1", 2))),
        UNRESOLVED,
        Reason.RELEVANCE_UNIT_MISMATCH,
    ),
    Row(
        "8 nowhere among the candidates",
        replace(BASE, passages=(passage("x", 1), passage("y", 2))),
        Label.RETRIEVAL_MISS,
        Reason.RELEVANT_NOT_RETRIEVED,
        RECOVERY,
        position=None,
        implicated=("retrieval",),
    ),
    Row(
        "8 nothing retrieved at all",
        replace(BASE, passages=()),
        Label.RETRIEVAL_MISS,
        Reason.RELEVANT_NOT_RETRIEVED,
        RECOVERY,
        position=None,
        implicated=("retrieval",),
    ),
    Row(
        "9 prompt positions not recorded",
        replace(BASE, passages=(passage("x", None), passage("gold", None))),
        UNRESOLVED,
        Reason.ASSEMBLY_NOT_RECORDED,
    ),
    Row(
        "9 top_k not recorded",
        replace(BASE, assembly_recorded=False),
        UNRESOLVED,
        Reason.ASSEMBLY_NOT_RECORDED,
    ),
    Row(
        "10 below top_k",
        replace(BASE, passages=RANKED_OUT),
        Label.RANKED_OUT,
        Reason.RELEVANT_BELOW_TOP_K,
        RECOVERY,
        position=3,
        implicated=("top_k",),
    ),
    Row(
        "10 confirmed by a top-k replay",
        replace(BASE, passages=RANKED_OUT, arms=(arm("top_k", PASSED, "x", "y", "gold"),)),
        Label.RANKED_OUT,
        Reason.RELEVANT_BELOW_TOP_K,
        Strength.REPLAY_CONFIRMED,
        position=3,
        implicated=("top_k",),
    ),
    Row(
        "10 not confirmed by a replay that did not bring it back",
        replace(BASE, passages=RANKED_OUT, arms=(arm("top_k", PASSED, "x"),)),
        Label.RANKED_OUT,
        Reason.RELEVANT_BELOW_TOP_K,
        RECOVERY,
        position=3,
        implicated=("top_k",),
    ),
    Row(
        "11 dropped by the budget",
        BASE,
        Label.CONTEXT_ASSEMBLY_LOSS,
        Reason.RELEVANT_DROPPED,
        RECOVERY,
        implicated=("context_budget",),
    ),
    Row(
        "11 a larger budget that does not recover confirms nothing",
        replace(BASE, arms=(arm("token_budget", FAILED, "x", "gold"),)),
        Label.CONTEXT_ASSEMBLY_LOSS,
        Reason.RELEVANT_DROPPED,
        RECOVERY,
        implicated=("context_budget",),
    ),
    Row(
        "11 confirmed by a budget replay",
        replace(BASE, arms=(arm("token_budget", PASSED, "x", "gold"),)),
        Label.CONTEXT_ASSEMBLY_LOSS,
        Reason.RELEVANT_DROPPED,
        Strength.REPLAY_CONFIRMED,
        implicated=("context_budget",),
    ),
    Row(
        "11 dropped by a filter, which no setting undoes",
        replace(BASE, passages=(passage("x", 1), passage("gold", 0, "filter"))),
        Label.CONTEXT_ASSEMBLY_LOSS,
        Reason.RELEVANT_DROPPED,
        RECOVERY,
    ),
    Row(
        "12 in the prompt",
        replace(BASE, passages=(passage("x", 1), passage("gold", 2))),
        UNRESOLVED,
        Reason.RECOVERED_WITH_RELEVANT_IN_CONTEXT,
    ),
    Row(
        "12 in the prompt as a later copy",
        replace(BASE, passages=(passage("gold", 0, "duplicate"), passage("gold", 1))),
        UNRESOLVED,
        Reason.RECOVERED_WITH_RELEVANT_IN_CONTEXT,
        position=1,
    ),
    Row(
        "12 in the prompt of a system without a top_k",
        replace(BASE, top_k=None, passages=(passage("x", 1), passage("gold", 2))),
        UNRESOLVED,
        Reason.RECOVERED_WITH_RELEVANT_IN_CONTEXT,
    ),
    Row(
        "judged relevance weakens a label",
        replace(BASE, relevance_judged=True),
        Label.CONTEXT_ASSEMBLY_LOSS,
        Reason.RELEVANT_DROPPED,
        Strength.JUDGED,
        implicated=("context_budget",),
    ),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_first_row_that_matches_decides(row: Row) -> None:
    found = verdict(row.evidence)

    assert (found.label, found.reason, found.strength) == (row.label, row.reason, row.strength)
    assert found.best_relevant_position == row.position
    assert found.implicated == row.implicated


def test_every_label_and_every_reason_has_a_row() -> None:
    assert {row.label for row in ROWS} == set(Label)
    assert {row.reason for row in ROWS} == set(Reason)
    assert {row.strength for row in ROWS} == {None, *Strength}


def test_a_generation_failure_names_a_relevant_passage_that_was_missing_as_well() -> None:
    assert verdict(replace(BASE, gold=FAILED)).missing_from_prompt == "gold"

    in_prompt = replace(BASE, gold=FAILED, passages=(passage("gold", 1),))
    assert verdict(in_prompt).missing_from_prompt is None

    unknown = replace(BASE, gold=FAILED, passages=(passage("gold", None),))
    assert verdict(unknown).missing_from_prompt is None


def test_an_unresolved_request_says_which_single_change_recovers_it_too() -> None:
    shown = replace(
        BASE,
        passages=(passage("x", 1), passage("gold", 2)),
        arms=(arm("top_k", PASSED, "x"), arm("token_budget", FAILED, "x", "gold")),
    )

    assert verdict(shown).also_recovered_by == ("top_k 9",)


def test_single_runs_decide_only_where_they_are_declared_to() -> None:
    doubtful = replace(BASE, single_run_decides=False)

    assert verdict(doubtful).reason is Reason.UNSTABLE_UNDER_CONTROL
