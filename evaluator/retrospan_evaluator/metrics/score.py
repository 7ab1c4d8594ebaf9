"""A score: what one metric found for one request, or why it found nothing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum


class ScoreState(StrEnum):
    """Whether a metric has a value; the three are never mixed in one figure."""

    MEASURED = "measured"
    UNDEFINED = "undefined"
    """The metric does not apply (no gold, no citation): left out and counted."""
    FAILED = "failed"
    """It applies and could not be measured (a failed retrieval): counted, never a zero."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One metric's result for one request, stored as a row of `scores`."""

    name: str
    value: float | None = None
    """Between 0 and 1, higher is better; None when there is no value."""
    label: str = ""
    """`pass` or `fail` where the metric is a yes or no."""
    explanation: str = ""
    failure: str | None = None
    """Why the score could not be measured; None unless it failed."""

    def __post_init__(self) -> None:
        if self.value is not None and not math.isfinite(self.value):
            raise ValueError(f"{self.name}: a score is a finite number, got {self.value!r}")
        if self.value is not None and self.failure is not None:
            raise ValueError(f"{self.name}: a failed score has no value, got {self.value!r}")

    @classmethod
    def measured(cls, name: str, value: float, explanation: str = "") -> Score:
        """A number on the metric's scale."""
        return cls(name=name, value=float(value), explanation=explanation)

    @classmethod
    def verdict(cls, name: str, passed: bool, explanation: str = "") -> Score:
        """A yes or no, as 1 or 0 with its label."""
        label = "pass" if passed else "fail"
        return cls(name=name, value=float(passed), label=label, explanation=explanation)

    @classmethod
    def undefined(cls, name: str, explanation: str) -> Score:
        """The metric does not apply to this request."""
        return cls(name=name, explanation=explanation)

    @classmethod
    def failed(cls, name: str, failure: str) -> Score:
        """The metric applies and could not be measured."""
        return cls(name=name, failure=failure)

    @property
    def state(self) -> ScoreState:
        """Which of the three kinds of result this is."""
        if self.failure is not None:
            return ScoreState.FAILED
        return ScoreState.UNDEFINED if self.value is None else ScoreState.MEASURED

    @property
    def passed(self) -> bool | None:
        """Whether a yes-or-no metric said yes; None when nothing was measured."""
        return None if self.value is None else self.value >= 1
