"""Runs the arms of a replay: the system's own generator, never its retriever."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from retrospan import BoundSystem, Outcome
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

    def run(self, subject: Subject, interventions: Sequence[Intervention]) -> ReplayRun:
        """Make the requests of the control, the gold context and each intervention."""
        replay_id = self._identifiers.replay_id(self._now)
        control = recorded_arm(subject.request, CONTROL)
        refusal = _not_replayable(subject.request) or control.unanswerable(self._system.settings)
        if refusal is not None:
            skipped = [GOLD_CONTEXT, *interventions]
            return ReplayRun(
                replay_id=replay_id,
                subject=subject,
                single_run_decides=False,
                control=ArmRun(intervention=CONTROL, cannot_answer=refusal),
                arms=tuple(
                    ArmRun(intervention=each, cannot_answer="the control cannot be run")
                    for each in skipped
                ),
            )
        first, made = self._repeat(replay_id, subject, control, range(1))
        single = (
            self._system.settings.deterministic
            and made[0].outcome is not None
            and made[0].outcome.answer == subject.request.answer
        )
        # A declared determinism that does not hold is no reason to run less often.
        repeats = self._repeats or 1 if single else max(self._repeats or REPEATS, REPEATS)
        rest, more = self._repeat(replay_id, subject, control, range(1, repeats))
        return ReplayRun(
            replay_id=replay_id,
            subject=subject,
            single_run_decides=single and repeats == 1,
            differs_though_deterministic=self._system.settings.deterministic and not single,
            control=_arm_run(control, [*first, *rest], [*made, *more]),
            arms=tuple(
                self._arm(replay_id, subject, each, repeats)
                for each in (GOLD_CONTEXT, *interventions)
            ),
        )

    def _arm(
        self, replay_id: str, subject: Subject, intervention: Intervention, repeats: int
    ) -> ArmRun:
        if intervention == GOLD_CONTEXT:
            if not subject.gold.passages:
                return ArmRun(intervention=intervention, cannot_answer=_gold_missing(subject.gold))
            arm = gold_arm(subject.gold.passages, subject.request)
        else:
            arm = recorded_arm(subject.request, intervention)
        refusal = arm.unanswerable(self._system.settings)
        if refusal is not None:
            return ArmRun(intervention=intervention, cannot_answer=refusal)
        planned, made = self._repeat(replay_id, subject, arm, range(repeats))
        return _arm_run(arm, planned, made)

    def _repeat(
        self, replay_id: str, subject: Subject, arm: Arm, repeats: range
    ) -> tuple[list[PlannedRequest], list[Made]]:
        planned = [
            PlannedRequest(
                trace_id=self._identifiers.trace_id(),
                run_id=f"replay:{replay_id}",
                case_id=subject.case_id,
                repeat=repeat,
            )
            for repeat in repeats
        ]
        self._sent.register(planned, kind="replay", now=self._now)
        return planned, [
            self._sent.make(each, lambda: self._call(subject, arm)) for each in planned
        ]

    def _call(self, subject: Subject, arm: Arm) -> Outcome:
        return self._system.replay(
            subject.request.input,
            arm.passages,
            top_k=arm.top_k,
            token_budget=arm.token_budget,
            budget_rule=arm.budget_rule,
            ineligible=arm.ineligible,
        )


def check_repeats(repeats: int | None, *, deterministic: bool) -> None:
    """Refuse a number of repeats that could not show anything."""
    if repeats is None or repeats >= REPEATS or (repeats == 1 and deterministic):
        return
    fewer = " or, for this deterministic system, 1" if deterministic else ""
    raise UsageError(
        f"--repeats expects at least {REPEATS}{fewer}, got {repeats}: "
        "fewer runs of a generator cannot show that an arm fails or recovers"
    )


def _arm_run(arm: Arm, planned: Sequence[PlannedRequest], made: Sequence[Made]) -> ArmRun:
    errors = [f"{type(m.error).__name__}: {m.error}" for m in made if m.error is not None]
    return ArmRun(
        intervention=arm.intervention, planned=tuple(planned), errors=tuple(dict.fromkeys(errors))
    )


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
