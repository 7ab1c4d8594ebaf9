"""What says whether an answer is right: `--expect`, else the criterion of the request's case."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from retrospan_evaluator.errors import UsageError
from retrospan_evaluator.metrics.answer import answer_correct, citations_valid
from retrospan_evaluator.metrics.request import ScoredRequest
from retrospan_evaluator.metrics.score import Score
from retrospan_evaluator.scoring import scored_request
from retrospan_evaluator.testsets.case import Case
from retrospan_evaluator.traces.request import RecordedRequest

ANSWER_CORRECT = "answer_correct"

_CRITERIA: Mapping[str, Callable[[ScoredRequest], Score]] = {
    ANSWER_CORRECT: answer_correct,
    "citations_valid": citations_valid,
}
"""Criteria of the answer; those of the retrieval cannot change in a replay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Decides whether a request passed."""

    criterion: str
    case: Case

    def passed(self, request: RecordedRequest) -> bool | None:
        """Whether the stored request passed; None where that could not be measured."""
        return _CRITERIA[self.criterion](scored_request(request, self.case)).passed


def judge_of(
    case: Case | None, expect: str | None = None, criterion: str = ANSWER_CORRECT
) -> Judge | None:
    """The judge of a replay; None where nothing says what a right answer is.

    Args:
        expect: of `--expect`; text a right answer contains. It wins over the case.
    """
    if criterion not in _CRITERIA:
        raise UsageError(
            f"--criterion {criterion!r} does not judge an answer, and a replay repeats only "
            f"assembly and generation: take one of {', '.join(_CRITERIA)}"
        )
    if expect is not None:
        if not expect.strip():
            raise UsageError(
                f"--expect expects a text that a right answer contains, got {expect!r}: "
                'write for instance --expect "14 days"'
            )
        known = case if case is not None else Case(id="", input=None)
        return Judge(criterion=ANSWER_CORRECT, case=replace(known, expected_answer=expect))
    if case is None or (criterion == ANSWER_CORRECT and case.expected_answer is None):
        return None
    return Judge(criterion=criterion, case=case)
