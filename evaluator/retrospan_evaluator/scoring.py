"""Recorded requests as the metrics read them, and their scores as the store keeps them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from retrospan_collector.clickhouse.evaluation_rows import ScoreRow
from retrospan_collector.clickhouse.sample_key import sample_key
from retrospan_evaluator.metrics.request import Candidate, ScoredRequest
from retrospan_evaluator.metrics.score import Score
from retrospan_evaluator.testsets.case import Case
from retrospan_evaluator.traces.request import RecordedPassage, RecordedRequest


def scored_request(
    request: RecordedRequest, case: Case, answer_missing: str | None = None
) -> ScoredRequest:
    """A stored request beside the case it answered.

    Args:
        answer_missing: why there is no answer, where more is known of it than the record says.
    """
    return ScoredRequest(
        case=case,
        candidates=candidates(request.passages),
        answer=request.answer,
        answer_missing=answer_missing or _answer_missing(request),
        citations=len(request.citations),
        dangling_citations=request.dangling_citations,
        # An empty list is a result only where a retrieval is on record that returned it.
        retrieval_failed=request.retrieval_status != "recorded",
    )


def _answer_missing(request: RecordedRequest) -> str:
    ended = f": the request ended with {request.error_type}" if request.error_type else ""
    return f"no answer was recorded{ended}"


def candidates(passages: Sequence[RecordedPassage]) -> tuple[Candidate, ...]:
    """Recorded passages by name, in their recorded order."""
    return tuple(
        Candidate(id=passage.id or None, document_id=passage.document_id or None)
        for passage in passages
    )


def score_row(request: RecordedRequest, score: Score, now: datetime) -> ScoreRow:
    """A score of a run's request as a row of `scores`."""
    return ScoreRow(
        service_name=request.service,
        timestamp=request.started_at,
        sample_key=sample_key(request.trace_id),
        trace_id=request.trace_id,
        root_span_id=request.root_span_id,
        name=score.name,
        value=score.value,
        label=score.label,
        explanation=score.explanation,
        failure=score.failure or "",
        evaluator_name=score.name,
        evaluator_version="1",
        run_id=request.run_id or "",
        scored_at=now,
    )
