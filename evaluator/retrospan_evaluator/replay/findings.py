"""Reads a replay's arms back from the store and turns them into a verdict and a report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from retrospan import SystemSettings
from retrospan_evaluator.metrics.relevance import judge_ranking
from retrospan_evaluator.replay.execution import ArmRun, ReplayRun, Subject
from retrospan_evaluator.replay.judge import Judge
from retrospan_evaluator.replay.report import ArmReport, DroppedPassage, ReplayReport
from retrospan_evaluator.replay.verdict import (
    Arm,
    ArmKind,
    Evidence,
    Label,
    RankedPassage,
    Runs,
    Verdict,
    recovers,
    verdict,
)
from retrospan_evaluator.scoring import candidates
from retrospan_evaluator.traces.request import RecordedRequest

_KINDS: Mapping[str, ArmKind] = {"top-k": "top_k", "token-budget": "token_budget"}


def report_of(
    run: ReplayRun, stored: Mapping[str, RecordedRequest], system: SystemSettings
) -> ReplayReport:
    """What a replay found.

    Args:
        stored: the requests of its arms, as the store has them.
        system: the settings of the system that was replayed with.
    """
    subject = run.subject
    stored = run.answered(stored)
    control = _arm_report(run.control, stored, subject.judge)
    arms = tuple(_arm_report(arm, stored, subject.judge) for arm in run.arms)
    judged = _runs(control) if subject.judge and _same_prompt(control, subject.request) else None
    compared = tuple(_with_recovery(arm, judged, run.single_run_decides) for arm in arms)
    found = None if subject.judge is None else _verdict(run, judged, arms)
    position = judge_ranking(
        candidates(subject.request.passages), subject.gold.relevant
    ).best_position
    return ReplayReport(
        replay_id=run.replay_id,
        request=subject.request,
        system=system.name,
        criterion=None if subject.judge is None else subject.judge.criterion,
        expected=None if subject.judge is None else subject.judge.case.expected_answer,
        recorded_passed=_recorded_passed(subject),
        passes_unchanged=judged is not None and judged.passed == judged.n,
        verdict=found,
        best_relevant_position=position,
        control=control,
        arms=compared,
        notes=(
            *_evidence_notes(run, control),
            *_verdict_notes(subject.request, found, compared),
            *_drift_notes(subject.request, system),
        ),
    )


def _arm_report(
    arm: ArmRun, stored: Mapping[str, RecordedRequest], judge: Judge | None
) -> ArmReport:
    requests = [stored[planned.trace_id] for planned in arm.planned]
    if not requests:
        return ArmReport(intervention=arm.intervention, cannot_answer=arm.cannot_answer)
    first = requests[0]
    verdicts = [None if judge is None else judge.passed(request) for request in requests]
    measured = [passed for passed in verdicts if passed is not None]
    return ArmReport(
        intervention=arm.intervention,
        prompt=tuple(passage.id for passage in first.prompt),
        prompt_tokens=first.settings.context_tokens,
        dropped=tuple(
            DroppedPassage(id=p.id, position=p.position, reason=p.dropped_reason or "")
            for p in first.passages
            if p.prompt_position == 0
        ),
        answers=tuple(request.answer for request in requests),
        passed=None if judge is None else sum(measured),
        n=len(measured) if judge is not None else sum(r.answer is not None for r in requests),
        errors=arm.errors,
        answer_missing=arm.answer_missing,
    )


def _recorded_passed(subject: Subject) -> bool | None:
    """Whether the recorded answer passes; an empty text may be no answer, and says nothing."""
    if subject.judge is None or not subject.request.answer:
        return None
    return subject.judge.passed(subject.request)


def _same_prompt(control: ArmReport, request: RecordedRequest) -> bool:
    """Whether the control showed the generator what the original request showed it."""
    if not request.assembly_recorded:
        return False
    return control.prompt == tuple(passage.id for passage in request.prompt)


def _verdict(run: ReplayRun, control: Runs | None, arms: tuple[ArmReport, ...]) -> Verdict:
    request, gold = run.subject.request, run.subject.gold
    return verdict(
        Evidence(
            replayable=request.replay_class != "none",
            control=control,
            gold=_runs(arms[0]),
            single_run_decides=run.single_run_decides,
            arms=tuple(
                Arm(
                    intervention=arm.intervention.name,
                    kind=_KINDS[arm.intervention.kind],
                    runs=Runs(passed=arm.passed or 0, n=arm.n),
                    prompt=arm.prompt,
                )
                for arm in arms[1:]
                if arm.n > 0
            ),
            relevant=gold.relevant,
            passages=tuple(
                RankedPassage(
                    id=passage.id or None,
                    document_id=passage.document_id or None,
                    prompt_position=passage.prompt_position,
                    dropped_reason=passage.dropped_reason,
                )
                for passage in request.passages
            ),
            assembly_recorded=request.assembly_recorded,
            top_k=request.settings.top_k,
        )
    )


def _runs(arm: ArmReport) -> Runs | None:
    return Runs(passed=arm.passed or 0, n=arm.n) if arm.n > 0 else None


def _with_recovery(arm: ArmReport, control: Runs | None, single_run_decides: bool) -> ArmReport:
    runs = _runs(arm)
    if control is None or runs is None:
        return arm
    recovered = recovers(runs, control, single_run_decides=single_run_decides)
    return arm.with_recovered(recovered)


def _evidence_notes(run: ReplayRun, control: ArmReport) -> Iterator[str]:
    """What is missing from the evidence, or weakens it."""
    request = run.subject.request
    if control.cannot_answer is not None:
        yield f"the control cannot be run: {control.cannot_answer}"
    elif not request.assembly_recorded:
        yield "the prompt of the original was not recorded, so the control proves nothing"
    elif not _same_prompt(control, request):
        yield "the control did not show the recorded prompt, so it proves nothing"
    elif run.differs_though_deterministic:
        yield "declared deterministic, yet the control did not give the recorded answer again"
    if run.subject.judge is None:
        yield "nothing says what a right answer is, so the arms have no label"


def _verdict_notes(
    request: RecordedRequest, found: Verdict | None, arms: tuple[ArmReport, ...]
) -> Iterator[str]:
    """What stands beside the label: other ways to recover, and restorations that did not."""
    if found is None:
        return
    if found.missing_from_prompt is not None:
        yield f"the relevant {found.missing_from_prompt} was missing from the prompt as well"
    for intervention in found.also_recovered_by:
        yield f"{intervention} alone recovers the answer too"
    position = found.best_relevant_position
    if found.label not in (Label.RANKED_OUT, Label.CONTEXT_ASSEMBLY_LOSS) or position is None:
        return
    lost = request.passages[position - 1].id
    for arm in arms[1:]:
        if arm.recovered is False and lost in arm.prompt:
            yield (
                f"{arm.intervention.name} puts {lost} back into the prompt and does not recover "
                "the answer: that setting alone is not the fix"
            )


def _drift_notes(request: RecordedRequest, system: SystemSettings) -> Iterator[str]:
    """Where the system is not the one that was recorded."""
    for what, recorded, now in (
        ("system", request.system_name, system.name),
        ("system version", request.system_version, system.version),
        ("prompt version", request.prompt_version, system.prompt_version),
    ):
        if recorded != now:
            yield f"{what}: recorded {recorded or 'none'}, replayed with {now or 'none'}"
