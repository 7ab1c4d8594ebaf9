"""Turns rows of the store into recorded requests: every sentinel becomes None here."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from retrospan_collector.clickhouse.request_row import (
    NO_HASH,
    UNKNOWN_TOKENS,
    Completeness,
    RequestRow,
)
from retrospan_evaluator.traces.request import (
    RecordedPassage,
    RecordedRequest,
    RecordedSettings,
    RecordedStage,
    RequestSummary,
)


@dataclass(frozen=True, slots=True)
class StoredText:
    """What `passage_texts` holds under one hash."""

    text: str
    metadata: Mapping[str, object] | None


def recorded_request(row: RequestRow, texts: Mapping[str, StoredText]) -> RecordedRequest:
    """The request a row holds, its passages' texts found by the hex of their hash."""
    return RecordedRequest(
        trace_id=row.trace_id,
        root_span_id=row.root_span_id,
        service=row.service_name,
        started_at=row.timestamp,
        duration_s=None if row.duration_ns is None else row.duration_ns / 1e9,
        environment=row.environment or None,
        system_name=row.system_name or None,
        system_version=row.system_version or None,
        dialect=row.dialect,
        replay_class=row.replay_class,
        retrieval_status=row.retrieval_status,
        completeness=Completeness(row.completeness).names,
        input=_parsed(row.input),
        question=row.question or None,
        answer=_answer(row),
        citations=tuple(row.citations),
        cited_positions=tuple(row.cited_positions),
        dangling_citations=tuple(row.dangling_citations),
        index_version=row.index_version or None,
        prompt_version=row.prompt_version or None,
        model=row.model or None,
        run_id=row.run_id or None,
        case_id=row.case_id or None,
        repeat=row.repeat if row.run_id else None,
        status=row.status,
        error_type=row.error_type or None,
        settings=_settings(row),
        passages=tuple(_passage(row, index, texts) for index in range(len(row.passage_id))),
        stages=_stages(row),
    )


def request_summary(row: Mapping[str, Any]) -> RequestSummary:
    """The line of a list that a row of `summaries.sql` holds."""
    return RequestSummary(
        trace_id=row["TraceId"],
        root_span_id=row["RootSpanId"],
        service=row["ServiceName"],
        started_at=row["Timestamp"],
        system_name=row["SystemName"] or None,
        run_id=row["RunId"] or None,
        case_id=row["CaseId"] or None,
        status=row["Status"],
        error_type=row["ErrorType"] or None,
        replay_class=row["ReplayClass"],
        question=row["Question"] or None,
        answer=row["Answer"] or None,
        candidates=row["Candidates"],
        kept=row["Kept"] if row["AssemblyRecorded"] else None,
    )


def stored_text(row: Mapping[str, Any]) -> StoredText:
    """The text and metadata that a row of `texts_by_hash.sql` holds."""
    metadata = _parsed(row["Metadata"])
    return StoredText(row["Text"], metadata if isinstance(metadata, dict) else None)


def passage_hashes(row: RequestRow) -> set[str]:
    """The hashes of a row's passages in hex, unknown ones left out."""
    return {digest.hex() for digest in row.passage_hash if digest != NO_HASH}


def _passage(row: RequestRow, index: int, texts: Mapping[str, StoredText]) -> RecordedPassage:
    digest = row.passage_hash[index]
    stored = texts.get(digest.hex())
    score, tokens = row.passage_score[index], row.passage_tokens[index]
    return RecordedPassage(
        position=index + 1,
        id=row.passage_id[index],
        document_id=row.passage_document_id[index] or row.passage_id[index],
        hash=None if digest == NO_HASH else digest.hex(),
        score=None if math.isnan(score) else score,
        tokens=None if tokens == UNKNOWN_TOKENS else tokens,
        cumulative_tokens=row.cum_tokens[index] if index < len(row.cum_tokens) else None,
        prompt_position=row.passage_prompt_position[index],
        dropped_reason=row.passage_dropped_reason[index] or None,
        text=None if stored is None else stored.text,
        metadata=None if stored is None else stored.metadata,
        source_version=row.passage_source_version[index] or None,
        updated_at=row.passage_updated_at[index] or None,
        acl=row.passage_acl[index] or None,
    )


def _settings(row: RequestRow) -> RecordedSettings:
    return RecordedSettings(
        depth=row.depth,
        top_k=row.top_k,
        token_budget=row.token_budget,
        budget_rule=row.budget_rule or None,
        context_tokens=row.context_tokens,
        tokenizer=row.tokenizer or None,
        score_kind=row.score_kind or None,
    )


def _stages(row: RequestRow) -> tuple[RecordedStage, ...]:
    columns = (
        row.stage_span_id,
        row.stage_kind,
        row.stage_name,
        row.stage_error_type,
        row.stage_ids,
    )
    return tuple(
        RecordedStage(
            span_id=span_id, kind=kind, name=name, error_type=error or None, ids=tuple(ids)
        )
        for span_id, kind, name, error, ids in zip(*columns, strict=True)
    )


def _answer(row: RequestRow) -> str | None:
    """The answer; an empty one is an answer where a generation ended without an error."""
    if row.answer:
        return row.answer
    steps = zip(row.stage_kind, row.stage_error_type, strict=True)
    return "" if ("generate", "") in steps else None


def _parsed(text: str) -> object:
    """The value a JSON text holds, the text itself when it holds none, None when it is empty."""
    if not text:
        return None
    try:
        return json.loads(text)
    except ValueError:
        return text
