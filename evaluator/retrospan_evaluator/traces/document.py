"""The stable JSON shapes of recorded requests.

Keys may be added under the same version; a key that goes or changes its meaning needs a new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from retrospan_evaluator.traces.request import (
    RecordedPassage,
    RecordedRequest,
    RecordedSettings,
    RequestSummary,
)

VERSION = 1
"""Of every shape here, as `version` at its top."""


def request_document(request: RecordedRequest) -> dict[str, object]:
    """One request as `trace --json` prints it; unknown is null."""
    return {
        "version": VERSION,
        "trace_id": request.trace_id,
        "root_span_id": request.root_span_id,
        "service": request.service,
        "started_at": timestamp(request.started_at),
        "duration_s": request.duration_s,
        "environment": request.environment,
        "system": request.system_name,
        "system_version": request.system_version,
        "dialect": request.dialect,
        "replay_class": request.replay_class,
        "retrieval_status": request.retrieval_status,
        "completeness": list(request.completeness),
        "status": request.status,
        "error_type": request.error_type,
        "run_id": request.run_id,
        "case_id": request.case_id,
        "repeat": request.repeat,
        "input": request.input,
        "question": request.question,
        "answer": request.answer,
        "citations": list(request.citations),
        "cited_positions": list(request.cited_positions),
        "dangling_citations": list(request.dangling_citations),
        "index_version": request.index_version,
        "prompt_version": request.prompt_version,
        "model": request.model,
        "settings": _settings(request.settings),
        "passages": [_passage(passage) for passage in request.passages],
    }


def summary_document(summary: RequestSummary) -> dict[str, object]:
    """One request in a list of them."""
    return {
        "trace_id": summary.trace_id,
        "root_span_id": summary.root_span_id,
        "service": summary.service,
        "started_at": timestamp(summary.started_at),
        "system": summary.system_name,
        "run_id": summary.run_id,
        "case_id": summary.case_id,
        "status": summary.status,
        "error_type": summary.error_type,
        "replay_class": summary.replay_class,
        "question": summary.question,
        "answer": summary.answer,
        "candidates": summary.candidates,
        "kept": summary.kept,
    }


def roots_document(trace_id: str, roots: Sequence[RequestSummary]) -> dict[str, object]:
    """What `trace --json` prints for a trace of several requests."""
    return {
        "version": VERSION,
        "trace_id": trace_id,
        "requests": [summary_document(root) for root in roots],
    }


def list_document(since: datetime, found: Sequence[RequestSummary]) -> dict[str, object]:
    """What `traces --json` prints."""
    return {
        "version": VERSION,
        "since": timestamp(since),
        "requests": [summary_document(summary) for summary in found],
    }


def timestamp(moment: datetime) -> str:
    """A moment in UTC as ISO 8601 with a Z."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _settings(settings: RecordedSettings) -> dict[str, object]:
    return {
        "depth": settings.depth,
        "top_k": settings.top_k,
        "token_budget": settings.token_budget,
        "budget_rule": settings.budget_rule,
        "context_tokens": settings.context_tokens,
        "tokenizer": settings.tokenizer,
        "score_kind": settings.score_kind,
    }


def _passage(passage: RecordedPassage) -> dict[str, object]:
    return {
        "position": passage.position,
        "id": passage.id,
        "document_id": passage.document_id,
        "score": passage.score,
        "tokens": passage.tokens,
        "cumulative_tokens": passage.cumulative_tokens,
        "prompt_position": passage.prompt_position,
        "dropped_reason": passage.dropped_reason,
        "text": passage.text,
        "metadata": None if passage.metadata is None else dict(passage.metadata),
        "hash": passage.hash,
    }
