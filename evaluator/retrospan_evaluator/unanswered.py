"""Requests that gave no answer: why, and how many of a run for each reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retrospan import Outcome, SystemSettings
from retrospan_evaluator.traffic import Made

NOT_FOUND = "answer_not_found"
"""The kind of a request whose output holds no answer where the system says it stands."""

_SHOWN_KEYS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """Why a request gave no answer."""

    kind: str
    """The exception's type, or `NOT_FOUND`."""
    message: str

    @property
    def sentence(self) -> str:
        """The reason by itself, for a score that could not be measured."""
        return f"no answer was recorded: {self}"

    def __str__(self) -> str:
        if self.kind == NOT_FOUND:
            return self.message
        return f"raised {self.kind}" + (f": {self.message}" if self.message else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnansweredCount:
    """How many cases gave no answer for one kind of reason, with one of them to look at."""

    example: Unanswered
    cases: int
    messages: int
    """How many different messages they had."""
    case_id: str
    trace_id: str

    def to_json(self) -> dict[str, object]:
        """As in `run --json`."""
        return {
            "kind": self.example.kind,
            "cases": self.cases,
            "message": self.example.message,
            "case_id": self.case_id,
            "trace_id": self.trace_id,
        }


def why_unanswered(made: Made, settings: SystemSettings) -> Unanswered | None:
    """Why a request gave no answer; None where it gave one."""
    if made.error is not None:
        return Unanswered(kind=type(made.error).__name__, message=str(made.error))
    if made.outcome is None or made.outcome.answer is not None:
        return None
    return Unanswered(kind=NOT_FOUND, message=answer_not_found(made.outcome, settings))


def answer_not_found(outcome: Outcome, settings: SystemSettings) -> str:
    """What `generate` returned instead of an answer at the system's `answer_path`."""
    output = outcome.output
    keys = [repr(str(key)) for key in output] if isinstance(output, Mapping) else []
    shown = ", ".join(keys[:_SHOWN_KEYS]) + (", …" if len(keys) > _SHOWN_KEYS else "")
    return (
        f"generate returned a mapping with no answer at answer_path {settings.answer_path!r} "
        f"(its keys: {shown or 'none'}): set answer_path in @rag_system to where the answer stands"
    )


def count_unanswered(
    cases: Sequence[tuple[str, str, Unanswered]],
) -> tuple[UnansweredCount, ...]:
    """The kinds of reasons, commonest first; `cases` are case id, trace id and reason."""
    kinds: dict[str, list[tuple[str, str, Unanswered]]] = {}
    for case in cases:
        kinds.setdefault(case[2].kind, []).append(case)
    counts = [
        UnansweredCount(
            example=found[0][2],
            cases=len(found),
            messages=len({reason.message for _, _, reason in found}),
            case_id=found[0][0],
            trace_id=found[0][1],
        )
        for found in kinds.values()
    ]
    return tuple(sorted(counts, key=lambda count: -count.cases))
