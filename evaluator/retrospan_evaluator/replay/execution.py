"""Runs the arms of a replay: the system's own generator, never its retriever."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from retrospan import BoundSystem
from retrospan_evaluator.errors import UsageError
from retrospan_evaluator.identifiers import Identifiers
from retrospan_evaluator.replay.arms import (
    CONTROL,
    GOLD_CONTEXT,
    Arm,
    Intervention,
    gold_arm,
    recorded_arm,
)
from retrospan_evaluator.replay.gold import Gold
from retrospan_evaluator.replay.judge import Judge
from retrospan_evaluator.traces.request import RecordedRequest
from retrospan_evaluator.traffic import Made, PlannedRequest, Traffic
from retrospan_evaluator.unanswered import answer_not_found

REPEATS = 5
"""Runs of each arm where one run does not decide: the fewest that can show an arm failing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A request to be replayed, with everything that is known about its right answer."""

    request: RecordedRequest
    judge: Judge | None
    gold: Gold
    case_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmRun:
    """The requests that an arm made."""

    intervention: Intervention
    planned: tuple[PlannedRequest, ...] = ()
    cannot_answer: str | None = None
    errors: tuple[str, ...] = ()
    """What the system raised, once each."""
    unanswered: frozenset[str] = frozenset()
    """Traces of requests that ended without an exception, and without an answer."""
    answer_missing: str | None = None
    """Why those gave none."""

    def followed_by(self, more: ArmRun) -> ArmRun:
        """Both parts of an arm that was run in two goes."""
        return replace(
            self,
            planned=(*self.planned, *more.planned),
            errors=tuple(dict.fromkeys((*self.errors, *more.errors))),
            unanswered=self.unanswered | more.unanswered,
            answer_missing=self.answer_missing or more.answer_missing,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRun:
    """A replay whose requests are made and may not yet be stored."""

    replay_id: str
    subject: Subject
    single_run_decides: bool
    """Declared deterministic, and the control gave the recorded answer again."""
    differs_though_deterministic: bool = False
    control: ArmRun
    arms: tuple[ArmRun, ...]

    @property
    def trace_ids(self) -> list[str]:
        """The traces of all arms."""
        return [planned.trace_id for arm in (self.control, *self.arms) for planned in arm.planned]

    def answered(self, stored: Mapping[str, RecordedRequest]) -> Mapping[str, RecordedRequest]:
        """The requests of the arms, without an answer where they gave none.

        The store keeps one empty text for an empty answer and for none.
        """
        unanswered = {trace for arm in (self.control, *self.arms) for trace in arm.unanswered}
        return {
            trace: replace(stored[trace], answer=None) if trace in unanswered else stored[trace]
            for trace in self.trace_ids
        }


class Replayer:
    """Replays requests with one system.

    Args:
        repeats: runs of each arm; None takes one where one decides, else five.
    """

    def __init__(
        self,
        system: BoundSystem,
        sent: Traffic,
        identifiers: Identifiers,
        now: datetime,
        repeats: int | None = None,
    ) -> None:
        check_repeats(repeats, deterministic=system.settings.deterministic)
        self._system = system
        self._sent = sent
        self._identifiers = identifiers
        self._now = now
        self._repeats = repeats

    def run(
        self,
        subjects: Sequence[Subject],
        interventions: Sequence[Intervention],
        advance: Callable[[], None] = lambda: None,
    ) -> tuple[ReplayRun, ...]:
        """Make the requests of the control, the gold context and each intervention.

        Args:
            advance: called after each subject.
        """
        # One control of each comes first: how often the arms run depends on what it answers.
        begun = [_Begun(subject, self._identifiers.replay_id(self._now)) for subject in subjects]
        controls = [self._plan(each, CONTROL, range(1)) for each in begun]
        self._register(controls)
        first = [self._make(control) for control in controls]
        plans = [
            self._plan_rest(each, made, interventions)
            for each, made in zip(begun, first, strict=True)
        ]
        self._register([arm for plan in plans for arm in plan.arms])
        runs = []
        for each, made, plan in zip(begun, first, plans, strict=True):
            more, *arms = [self._make(arm) for arm in plan.arms]
            runs.append(
                ReplayRun(
                    replay_id=each.replay_id,
                    subject=each.subject,
                    single_run_decides=plan.single_run_decides,
                    differs_though_deterministic=plan.differs_though_deterministic,
                    control=made.arm.followed_by(more.arm),
                    arms=tuple(arm.arm for arm in arms),
                )
            )
            advance()
        return tuple(runs)

    def _plan_rest(
        self, begun: _Begun, control: _MadeArm, interventions: Sequence[Intervention]
    ) -> _Plan:
        declared = self._system.settings.deterministic
        answers = [m.outcome.answer for m in control.made if m.outcome is not None]
        same = declared and answers == [begun.subject.request.answer]
        # A declared determinism that does not hold is no reason to run less often.
        repeats = self._repeats or 1 if same else max(self._repeats or REPEATS, REPEATS)
        if control.arm.cannot_answer is not None:
            repeats = 0
        arms = [self._plan(begun, CONTROL, range(1, repeats))]
        arms += [self._plan(begun, each, range(repeats)) for each in (GOLD_CONTEXT, *interventions)]
        return _Plan(
            arms=tuple(arms),
            single_run_decides=same and repeats == 1,
            differs_though_deterministic=(
                declared and not same and repeats > 0 and answers != [None]
            ),
        )

    def _plan(self, begun: _Begun, intervention: Intervention, repeats: range) -> _PlannedArm:
        arm = _arm(begun.subject, intervention)
        refusal = arm if isinstance(arm, str) else arm.unanswerable(self._system.settings)
        if refusal is None and not repeats and intervention != CONTROL:
            refusal = "the control cannot be run"
        requests = [
            PlannedRequest(
                trace_id=self._identifiers.trace_id(),
                run_id=f"replay:{begun.replay_id}",
                case_id=begun.subject.case_id,
                repeat=repeat,
            )
            for repeat in (repeats if refusal is None else ())
        ]
        run = ArmRun(intervention=intervention, planned=tuple(requests), cannot_answer=refusal)
        return _PlannedArm(begun.subject, None if isinstance(arm, str) else arm, run)

    def _register(self, arms: Sequence[_PlannedArm]) -> None:
        requests = [planned for arm in arms for planned in arm.run.planned]
        self._sent.register(requests, kind="replay", now=self._now)

    def _make(self, planned: _PlannedArm) -> _MadeArm:
        arm, question = planned.arm, planned.subject.request.input
        if arm is None:
            return _MadeArm(planned.run, ())
        call = partial(
            self._system.replay,
            question,
            arm.passages,
            top_k=arm.top_k,
            token_budget=arm.token_budget,
            budget_rule=arm.budget_rule,
            ineligible=arm.ineligible,
        )
        made = tuple(self._sent.make(request, call) for request in planned.run.planned)
        errors = [f"{type(m.error).__name__}: {m.error}" for m in made if m.error is not None]
        silent = {
            request.trace_id: answer_not_found(m.outcome, self._system.settings)
            for request, m in zip(planned.run.planned, made, strict=True)
            if m.outcome is not None and m.outcome.answer is None
        }
        run = replace(
            planned.run,
            errors=tuple(dict.fromkeys(errors)),
            unanswered=frozenset(silent),
            answer_missing=next(iter(silent.values()), None),
        )
        return _MadeArm(run, made)


def check_repeats(repeats: int | None, *, deterministic: bool) -> None:
    """Refuse a number of repeats that could not show anything."""
    if repeats is None or repeats >= REPEATS or (repeats == 1 and deterministic):
        return
    fewer = " or, for this deterministic system, 1" if deterministic else ""
    raise UsageError(
        f"--repeats expects at least {REPEATS}{fewer}, got {repeats}: "
        "fewer runs of a generator cannot show that an arm fails or recovers"
    )


@dataclass(frozen=True, slots=True)
class _Begun:
    """A subject under the id of its replay."""

    subject: Subject
    replay_id: str


@dataclass(frozen=True, slots=True)
class _PlannedArm:
    """An arm with its requests; no arm where the evidence for it is missing."""

    subject: Subject
    arm: Arm | None
    run: ArmRun


@dataclass(frozen=True, slots=True)
class _MadeArm:
    """An arm whose requests are made."""

    arm: ArmRun
    made: tuple[Made, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What remains of a replay after its first control: the control's other repeats come first."""

    arms: tuple[_PlannedArm, ...]
    single_run_decides: bool
    differs_though_deterministic: bool


def _arm(subject: Subject, intervention: Intervention) -> Arm | str:
    """What an arm is given, or why there is nothing to give it."""
    if intervention == CONTROL:
        return _not_replayable(subject.request) or recorded_arm(subject.request, intervention)
    if intervention == GOLD_CONTEXT:
        if not subject.gold.passages:
            return _gold_missing(subject.gold)
        return gold_arm(subject.gold.passages, subject.request)
    return recorded_arm(subject.request, intervention)


def _not_replayable(request: RecordedRequest) -> str | None:
    if request.replay_class == "none":
        return "the stages of the request were not recorded"
    if request.input is None:
        return "the input of the request is not stored"
    return None


def _gold_missing(gold: Gold) -> str:
    if gold.without_text:
        return (
            f"the text of {', '.join(gold.without_text)} is not stored: "
            "give it with --gold-passage ID=FILE"
        )
    return "no gold passage is known: name it with --gold ID or --gold-passage ID=FILE"
