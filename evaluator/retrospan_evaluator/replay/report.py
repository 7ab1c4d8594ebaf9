"""What a replay found: the verdict, every arm, and what could be tried next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from retrospan_evaluator.replay.arms import Intervention
from retrospan_evaluator.replay.verdict import Verdict
from retrospan_evaluator.traces.request import RecordedRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedPassage:
    """A passage that an arm left out of the prompt."""

    id: str
    position: int
    reason: str

    def to_json(self) -> dict[str, object]:
        """As in `replay --json`."""
        return {"id": self.id, "position": self.position, "reason": self.reason}


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmReport:
    """One arm as the store has it: the prompt, the answers, how many of them passed."""

    intervention: Intervention
    prompt: tuple[str, ...] = ()
    prompt_tokens: int | None = None
    dropped: tuple[DroppedPassage, ...] = ()
    answers: tuple[str | None, ...] = ()
    """One a repeat; None where generation gave none."""
    passed: int | None = None
    """None where nothing says what a right answer is."""
    n: int = 0
    """Repeats that could be judged, or all of them where nothing judges."""
    recovered: bool | None = None
    """None for the control, and where nothing judges."""
    cannot_answer: str | None = None
    """Why the arm was not run."""
    errors: tuple[str, ...] = ()
    """What the system raised, once each."""
    answer_missing: str | None = None
    """Why a repeat that ended without an exception gave no answer."""

    def with_recovered(self, recovered: bool) -> ArmReport:
        """The same arm, compared with its control."""
        return replace(self, recovered=recovered)

    def to_json(self) -> dict[str, object]:
        """As in `replay --json`."""
        return {
            "intervention": self.intervention.name,
            "prompt": list(self.prompt),
            "prompt_tokens": self.prompt_tokens,
            "dropped": [dropped.to_json() for dropped in self.dropped],
            "passed": self.passed,
            "n": self.n,
            "recovered": self.recovered,
            "answers": list(self.answers),
            "cannot_answer": self.cannot_answer,
            "errors": list(self.errors),
            "answer_missing": self.answer_missing,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """Something that may be worth trying; never more than a candidate."""

    text: str
    command: str | None
    """A command to paste; None where none can be printed safely."""

    def to_json(self) -> dict[str, object]:
        """As in `replay --json`."""
        return {"text": self.text, "command": self.command}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayReport:
    """One replayed request."""

    replay_id: str
    request: RecordedRequest
    system: str
    criterion: str | None
    """What judged the answers: a criterion's name; None where nothing did."""
    expected: str | None
    recorded_passed: bool | None
    """Whether the recorded answer passes; None where nothing judges, or none was recorded."""
    passes_unchanged: bool = False
    """Whether the control, shown the recorded prompt, passes every time: nothing to explain."""
    verdict: Verdict | None
    """None where nothing says what a right answer is: the arms are shown without a label."""
    best_relevant_position: int | None
    control: ArmReport
    arms: tuple[ArmReport, ...]
    notes: tuple[str, ...] = ()
    """What a reader must know about the evidence."""
    experiments: tuple[Experiment, ...] = ()

    def to_json(self) -> Mapping[str, object]:
        """The stable machine output of `retrospan replay --json`."""
        verdict = self.verdict
        return {
            "version": 1,
            "trace_id": self.request.trace_id,
            "replay_id": self.replay_id,
            "system": self.system,
            "criterion": self.criterion,
            "label": verdict.label if verdict else None,
            "reason": verdict.reason if verdict else None,
            "strength": verdict.strength if verdict else None,
            "best_relevant_position": self.best_relevant_position,
            "recorded_passed": self.recorded_passed,
            "passes_unchanged": self.passes_unchanged,
            "control": self.control.to_json(),
            "arms": [arm.to_json() for arm in self.arms],
            "implicated": list(verdict.implicated) if verdict else [],
            "candidate_experiments": [experiment.to_json() for experiment in self.experiments],
            "notes": list(self.notes),
        }
