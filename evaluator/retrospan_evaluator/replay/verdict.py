"""What a replay's arms say about one request: a label, its reason and how strong it is.

Pure: everything is decided from the evidence handed in, by the first row of the table that
matches (the evaluator's README has the table).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from retrospan_evaluator.metrics.relevance import judge_ranking, matches
from retrospan_evaluator.metrics.request import Candidate
from retrospan_evaluator.statistics.fisher import fisher_greater
from retrospan_evaluator.statistics.interval import clopper_pearson_lower
from retrospan_evaluator.testsets.case import Relevant

SIGNIFICANCE = 0.05


class Label(StrEnum):
    """The stage that lost the answer, or that the evidence does not say."""

    RETRIEVAL_MISS = "RETRIEVAL_MISS"
    RANKED_OUT = "RANKED_OUT"
    CONTEXT_ASSEMBLY_LOSS = "CONTEXT_ASSEMBLY_LOSS"
    GENERATION_FAILURE = "GENERATION_FAILURE"
    UNRESOLVED = "UNRESOLVED"


class Reason(StrEnum):
    """Which row of the table decided."""

    NOT_REPLAYABLE = "not_replayable"
    EVIDENCE_MISSING = "evidence_missing"
    UNSTABLE_UNDER_CONTROL = "unstable_under_control"
    FAILS_WITH_GOLD_CONTEXT = "fails_with_gold_context"
    INCONCLUSIVE_UNDER_REPEATS = "inconclusive_under_repeats"
    NO_RELEVANCE_LABELS = "no_relevance_labels"
    RELEVANCE_UNIT_MISMATCH = "relevance_unit_mismatch"
    RELEVANT_NOT_RETRIEVED = "relevant_not_retrieved"
    ASSEMBLY_NOT_RECORDED = "assembly_not_recorded"
    RELEVANT_BELOW_TOP_K = "relevant_below_top_k"
    RELEVANT_DROPPED = "relevant_dropped"
    RECOVERED_WITH_RELEVANT_IN_CONTEXT = "recovered_with_relevant_in_context"


class Strength(StrEnum):
    """What the label rests on."""

    INTERVENTION_RECOVERY = "intervention_recovery"
    INTERVENTION_NON_RECOVERY = "intervention_non_recovery"
    REPLAY_CONFIRMED = "replay_confirmed"
    """Undoing the stage's own cut, and nothing else, recovers the answer too."""
    JUDGED = "judged"
    """A judge, not a person, said what is relevant."""


Implicated = Literal["retrieval", "top_k", "context_budget", "generator"]
ArmKind = Literal["top_k", "token_budget", "rerank", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Runs:
    """How an arm fared: how many of its repeats passed."""

    passed: int
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """An intervention beside control and gold."""

    intervention: str
    """As printed: `top-k 4`."""
    kind: ArmKind
    runs: Runs
    prompt: tuple[str, ...]
    """Ids of the passages that entered its prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedPassage:
    """A recorded candidate and its fate; its place in the list is its position."""

    id: str | None
    document_id: str | None
    prompt_position: int | None
    """None = not recorded, 0 = known to be left out."""
    dropped_reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All that a verdict is made of."""

    replayable: bool
    """Whether the request's stages were recorded (its replay class is not `none`)."""
    control: Runs | None
    gold: Runs | None
    single_run_decides: bool
    """The system is declared deterministic and the control gave the recorded answer again."""
    arms: tuple[Arm, ...] = ()
    relevant: tuple[Relevant, ...] = ()
    relevance_judged: bool = False
    """Whether relevance or gold came from a judge."""
    passages: tuple[RankedPassage, ...] = ()
    assembly_recorded: bool = True
    top_k: int | None = None
    """The cut of the recorded request; None means that there was none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A label with everything that is claimed beside it."""

    label: Label
    reason: Reason
    strength: Strength | None = None
    """None for UNRESOLVED: nothing is claimed."""
    best_relevant_position: int | None = None
    implicated: tuple[Implicated, ...] = ()
    missing_from_prompt: str | None = None
    """For a generation failure: a relevant passage that was missing from the prompt as well."""
    also_recovered_by: tuple[str, ...] = ()
    """Interventions other than gold that recover the answer by themselves."""


def shown_failing(runs: Runs, *, single_run_decides: bool) -> bool:
    """Whether an arm fails more often than not, beyond doubt.

    The one-sided 95 % Clopper–Pearson lower limit of its failure rate is above ½: at most 0
    passes of 5, 1 of 10, 5 of 20. A single run counts only where it decides.
    """
    if runs.n == 1 and single_run_decides:
        return runs.passed == 0
    return clopper_pearson_lower(runs.n - runs.passed, runs.n, 1 - SIGNIFICANCE) > 0.5


def recovers(runs: Runs, control: Runs, *, single_run_decides: bool) -> bool:
    """Whether an arm does better than the control: not shown failing, and Fisher's p < 0.05."""
    if runs.n == 1 and single_run_decides:
        # Where the control passes as well there was nothing to recover from.
        return runs.passed == 1 and control.passed == 0
    if shown_failing(runs, single_run_decides=single_run_decides):
        return False
    p = fisher_greater(
        passes=runs.passed, n=runs.n, control_passes=control.passed, control_n=control.n
    )
    return p < SIGNIFICANCE


def verdict(evidence: Evidence) -> Verdict:
    """The label of a replayed request, by the first row of the table that matches."""
    best = _best_relevant(evidence)
    position = None if best is None else best.position
    if not evidence.replayable:
        return _unresolved(Reason.NOT_REPLAYABLE, position)
    control, gold, single = evidence.control, evidence.gold, evidence.single_run_decides
    if control is None or gold is None:
        return _unresolved(Reason.EVIDENCE_MISSING, position)
    if not shown_failing(control, single_run_decides=single):
        return _unresolved(Reason.UNSTABLE_UNDER_CONTROL, position)
    recovering = tuple(
        arm for arm in evidence.arms if recovers(arm.runs, control, single_run_decides=single)
    )
    if shown_failing(gold, single_run_decides=single):
        return Verdict(
            label=Label.GENERATION_FAILURE,
            reason=Reason.FAILS_WITH_GOLD_CONTEXT,
            strength=_strength(evidence, Strength.INTERVENTION_NON_RECOVERY),
            best_relevant_position=position,
            implicated=("generator",),
            missing_from_prompt=_missing_from_prompt(evidence),
            also_recovered_by=_names(recovering),
        )
    if not recovers(gold, control, single_run_decides=single):
        return _unresolved(Reason.INCONCLUSIVE_UNDER_REPEATS, position, recovering)
    return _stage_verdict(evidence, best, recovering)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Best:
    """The best relevant passage, found at a position that is beyond doubt."""

    position: int
    passage: RankedPassage
    in_prompt: bool | None
    """Whether a copy of it stood in the prompt; None when that was not recorded."""


def _stage_verdict(evidence: Evidence, best: _Best | None, recovering: tuple[Arm, ...]) -> Verdict:
    """Rows 6 to 12, which presuppose that the gold context recovers the answer."""
    position = None if best is None else best.position
    if not any(entry.grade > 0 for entry in evidence.relevant):
        return _unresolved(Reason.NO_RELEVANCE_LABELS, position, recovering)
    if _unit_mismatch(evidence, best):
        return _unresolved(Reason.RELEVANCE_UNIT_MISMATCH, position, recovering)
    if best is None:
        return Verdict(
            label=Label.RETRIEVAL_MISS,
            reason=Reason.RELEVANT_NOT_RETRIEVED,
            strength=_strength(evidence, Strength.INTERVENTION_RECOVERY),
            implicated=("retrieval",),
            also_recovered_by=_names(recovering),
        )
    if not evidence.assembly_recorded or best.in_prompt is None:
        return _unresolved(Reason.ASSEMBLY_NOT_RECORDED, position, recovering)
    if evidence.top_k is not None and best.position > evidence.top_k:
        return _lost(evidence, best, recovering, Label.RANKED_OUT)
    if not best.in_prompt:
        return _lost(evidence, best, recovering, Label.CONTEXT_ASSEMBLY_LOSS)
    return _unresolved(Reason.RECOVERED_WITH_RELEVANT_IN_CONTEXT, position, recovering)


def _lost(evidence: Evidence, best: _Best, recovering: tuple[Arm, ...], label: Label) -> Verdict:
    """A relevant passage that was retrieved and cut: confirmed where undoing the cut recovers."""
    implicated: tuple[Implicated, ...]
    kinds: tuple[ArmKind, ...]
    if label is Label.RANKED_OUT:
        reason, implicated, kinds = Reason.RELEVANT_BELOW_TOP_K, ("top_k",), ("top_k", "rerank")
    elif best.passage.dropped_reason == "budget":
        reason, implicated, kinds = Reason.RELEVANT_DROPPED, ("context_budget",), ("token_budget",)
    else:
        # Dropped as ineligible: no setting that a replay can change brings it back.
        reason, implicated, kinds = Reason.RELEVANT_DROPPED, (), ()
    confirmed = any(
        arm.kind in kinds and best.passage.id is not None and best.passage.id in arm.prompt
        for arm in recovering
    )
    strength = Strength.REPLAY_CONFIRMED if confirmed else Strength.INTERVENTION_RECOVERY
    return Verdict(
        label=label,
        reason=reason,
        strength=_strength(evidence, strength),
        best_relevant_position=best.position,
        implicated=implicated,
        also_recovered_by=_names(recovering),
    )


def _unresolved(reason: Reason, position: int | None, recovering: tuple[Arm, ...] = ()) -> Verdict:
    return Verdict(
        label=Label.UNRESOLVED,
        reason=reason,
        best_relevant_position=position,
        also_recovered_by=_names(recovering),
    )


def _strength(evidence: Evidence, strength: Strength) -> Strength:
    return Strength.JUDGED if evidence.relevance_judged else strength


def _names(arms: tuple[Arm, ...]) -> tuple[str, ...]:
    return tuple(arm.intervention for arm in arms)


def _candidate(passage: RankedPassage) -> Candidate:
    return Candidate(id=passage.id, document_id=passage.document_id)


def _best_relevant(evidence: Evidence) -> _Best | None:
    candidates = [_candidate(passage) for passage in evidence.passages]
    position = judge_ranking(candidates, evidence.relevant).best_position
    if position is None:
        return None
    entries = [
        entry
        for entry in evidence.relevant
        if entry.grade > 0 and matches(candidates[position - 1], entry)
    ]
    copies = [
        passage.prompt_position
        for passage, candidate in zip(evidence.passages, candidates, strict=True)
        if any(matches(candidate, entry) for entry in entries)
    ]
    shown = any(place for place in copies)
    recorded = None not in copies
    return _Best(
        position=position,
        passage=evidence.passages[position - 1],
        in_prompt=True if shown else (False if recorded else None),
    )


def _unit_mismatch(evidence: Evidence, best: _Best | None) -> bool:
    """Whether a candidate before the first sure match may be the relevant chunk unrecognised."""
    end = len(evidence.passages) if best is None else best.position - 1
    before = [_candidate(passage) for passage in evidence.passages[:end]]
    return bool(judge_ranking(before, evidence.relevant).unsure)


def _missing_from_prompt(evidence: Evidence) -> str | None:
    """A relevant passage known not to have been in the prompt, by the name its gold gives it."""
    shown = [_candidate(p) for p in evidence.passages if p.prompt_position]
    if any(passage.prompt_position is None for passage in evidence.passages):
        return None
    for entry in evidence.relevant:
        if entry.grade > 0 and not any(matches(candidate, entry) for candidate in shown):
            return entry.chunk_id or entry.document_id
    return None
