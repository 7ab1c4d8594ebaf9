"""Build the stored request, and the texts it brings, from what its spans say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

import orjson

from retrospan_collector.assembler.candidates import Candidates, find_candidates
from retrospan_collector.assembler.citations import resolve_citations
from retrospan_collector.assembler.record import (
    AssemblyStep,
    GenerationStep,
    PassageList,
    RequestRecord,
    RetrievalStep,
    Step,
)
from retrospan_collector.assembler.script import script_of
from retrospan_collector.assembler.span import Span
from retrospan_collector.assembler.tree import SpanGroup
from retrospan_collector.assembler.trust import (
    completeness_of,
    replay_class_of,
    retrieval_status_of,
)
from retrospan_collector.clickhouse.request_row import (
    RequestRow,
    RequestStatus,
    StageKind,
)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_ListOrAnswer = TypeVar("_ListOrAnswer", RetrievalStep, GenerationStep)


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration:
    """The place of a trace in the run that registered it; empty for live traffic."""

    run_id: str = ""
    case_id: str = ""
    repeat: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """What a row says about its own writing."""

    now: datetime
    version: int
    late: bool = False
    """Whether another version of the request had been settled before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltRequest:
    """A request's row and the texts of its passages."""

    row: RequestRow
    lists: tuple[PassageList, ...]
    """The lists that hold them."""


def utc_from_ns(nanoseconds: int) -> datetime:
    """A time since 1970 as an aware datetime, cut to microseconds."""
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)


def build_request(
    group: SpanGroup,
    record: RequestRecord,
    *,
    sample_key: int,
    registration: Registration,
    writing: Writing,
) -> BuiltRequest:
    """The row of one request and the texts of its passages."""
    retrievals = _without_twins(record.retrievals, group.twins)
    generation = _answering(_without_twins(record.generations, group.twins))
    assembly = _last_before(record.assemblies, generation)
    candidates = find_candidates(retrievals, assembly)
    lists = tuple([step.passages for step in retrievals if step.passages is not None])
    completeness = completeness_of(group, record, candidates, late=writing.late)
    row = RequestRow(
        sample_key=sample_key,
        run_id=registration.run_id,
        case_id=registration.case_id,
        repeat=registration.repeat,
        completeness=completeness,
        retrieval_status=retrieval_status_of(candidates, retrievals, completeness),
        assembled_at=writing.now,
        version=writing.version,
        **_root_columns(group),
        **_request_columns(record, retrievals),
        **_retrieval_columns(retrievals),
        **_passage_columns(candidates),
        **_replay_columns(candidates, assembly, record, completeness, lists),
        **_assembly_columns(assembly),
        **_generation_columns(generation, candidates, assembly),
        **_stage_columns(record),
    )
    return BuiltRequest(row=row, lists=lists)


def _root_columns(group: SpanGroup) -> dict[str, Any]:
    first = group.root or group.spans[0]
    return {
        "service_name": first.service_name,
        "timestamp": utc_from_ns(first.start_ns),
        "trace_id": first.trace_id,
        "root_span_id": group.root_span_id,
        "environment": first.environment,
        "status": _status(group.root),
        "duration_ns": _duration_ns(group.root),
    }


def _without_twins(steps: Sequence[_ListOrAnswer], twins: Mapping[str, str]) -> list[_ListOrAnswer]:
    """The steps, those left out that lie inside another span of the same step.

    The outer one tells it; where it has nothing to tell, the inner ones are kept.
    """
    if not twins:
        return list(steps)
    telling = {step.span.span_id for step in steps if _tells(step)}
    return [step for step in steps if twins.get(step.span.span_id) not in telling]


def _tells(step: RetrievalStep | GenerationStep) -> bool:
    return (step.passages if isinstance(step, RetrievalStep) else step.answer) is not None


def _answering(generations: Sequence[GenerationStep]) -> GenerationStep | None:
    """The generation that ended last without an error, else the one that ended last."""
    if not generations:
        return None
    return max(generations, key=lambda step: (not step.error_type, step.span.end_ns))


def _last_before(
    assemblies: Sequence[AssemblyStep], generation: GenerationStep | None
) -> AssemblyStep | None:
    """The last assembly before the answer; one that left no record counts only alone."""
    before = [
        step
        for step in assemblies
        if generation is None or step.span.start_ns <= generation.span.start_ns
    ]
    recorded = [step for step in before if step.placements is not None] or before
    return recorded[-1] if recorded else None


def _status(root: Span | None) -> RequestStatus:
    if root is None:
        return "unknown"
    return "error" if root.failed else "ok"


def _duration_ns(root: Span | None) -> int | None:
    return None if root is None or root.has_impossible_duration else root.duration_ns


def _request_columns(record: RequestRecord, retrievals: Sequence[RetrievalStep]) -> dict[str, Any]:
    question = _question(record, retrievals)
    return {
        "adjusted_count": record.adjusted_count,
        "system_name": record.system_name,
        "system_version": record.system_version,
        "dialect": record.dialect,
        "error_type": record.error_type,
        "conversation_id": record.conversation_id,
        "user_hash": record.user_hash,
        "caller_roles": record.caller_roles,
        "input": record.input,
        "question": question,
        "script": script_of(question),
    }


def _question(record: RequestRecord, retrievals: Sequence[RetrievalStep]) -> str:
    """The input if it is a string, else its `question`, else what was searched for."""
    try:
        value = orjson.loads(record.input) if record.input else None
    except orjson.JSONDecodeError:
        value = None
    if isinstance(value, dict):
        value = value.get("question")
    if isinstance(value, str):
        return value
    return next((step.query for step in retrievals if step.query), "")


def _retrieval_columns(retrievals: Sequence[RetrievalStep]) -> dict[str, Any]:
    """What the last retrieval that worked says, and how long all of them took."""
    steps = [step for step in retrievals if step.kind == "retrieve"]
    if not steps:
        return {}
    step = max(steps, key=lambda step: (not step.error_type, step.span.start_ns))
    return {
        "depth": step.depth,
        "index_version": step.index_version,
        "data_source_id": step.data_source_id,
        "embedding_model": step.embedding_model,
        "tokenizer": step.tokenizer,
        "score_kind": step.score_kind,
        "retrieval_ns": sum(step.span.end_ns - step.span.start_ns for step in retrievals),
    }


def _passage_columns(candidates: Candidates | None) -> dict[str, Any]:
    if candidates is None:
        return {}
    passages = candidates.passages
    return {
        "passage_id": passages.id,
        "passage_document_id": passages.document_id,
        "passage_hash": passages.hash,
        "passage_score": passages.score,
        "passage_tokens": passages.tokens,
        "passage_prompt_position": candidates.prompt_position,
        "passage_dropped_reason": candidates.dropped_reason,
        "passage_source_version": passages.source_version,
        "passage_updated_at": passages.updated_at,
        "passage_acl": passages.acl,
    }


def _replay_columns(
    candidates: Candidates | None,
    assembly: AssemblyStep | None,
    record: RequestRecord,
    completeness: int,
    lists: Sequence[PassageList],
) -> dict[str, Any]:
    cum_tokens = candidates.cumulative_tokens() if candidates else ()
    replay_class = replay_class_of(
        None if record.input_cut else candidates,
        completeness=completeness,
        settings_known=assembly is not None and assembly.rule != "",
        tokens_known=candidates is not None and len(cum_tokens) == len(candidates.passages),
        lists=lists,
    )
    return {"cum_tokens": cum_tokens, "replay_class": replay_class}


def _assembly_columns(assembly: AssemblyStep | None) -> dict[str, Any]:
    if assembly is None:
        return {}
    return {
        "top_k": assembly.top_k,
        "token_budget": assembly.token_budget,
        "budget_rule": assembly.rule,
        "context_tokens": assembly.context_tokens,
    }


def _generation_columns(
    generation: GenerationStep | None,
    candidates: Candidates | None,
    assembly: AssemblyStep | None,
) -> dict[str, Any]:
    prompt_version = assembly.prompt_version if assembly else ""
    prompt_hash = assembly.prompt_hash if assembly else ""
    if generation is None:
        return {"prompt_version": prompt_version, "prompt_hash": prompt_hash}
    citations = resolve_citations(generation.citations or (), candidates)
    return {
        "prompt_version": prompt_version or generation.prompt_version,
        "prompt_hash": prompt_hash or generation.prompt_hash,
        "answer": generation.answer or "",
        "model": generation.model,
        "citations": citations.as_given,
        "cited_positions": citations.positions,
        "dangling_citations": citations.dangling,
        "input_tokens": generation.input_tokens,
        "output_tokens": generation.output_tokens,
        "finish_reason": generation.finish_reason,
        "generation_ns": generation.span.end_ns - generation.span.start_ns,
        "first_chunk_ns": generation.first_chunk_ns,
    }


def _stage_columns(record: RequestRecord) -> dict[str, Any]:
    steps: list[Step] = [*record.retrievals, *record.assemblies, *record.generations]
    steps.sort(key=lambda step: (step.span.start_ns, -step.span.end_ns))
    return {
        "stage_span_id": tuple(step.span.span_id for step in steps),
        "stage_kind": tuple(map(_kind, steps)),
        "stage_name": tuple(step.span.name for step in steps),
        "stage_error_type": tuple(step.error_type for step in steps),
        "stage_ids": tuple(map(_ids, steps)),
    }


def _kind(step: Step) -> StageKind:
    if isinstance(step, RetrievalStep):
        return step.kind
    return "assemble" if isinstance(step, AssemblyStep) else "generate"


def _ids(step: Step) -> tuple[str, ...]:
    if isinstance(step, RetrievalStep):
        return step.passages.id if step.passages is not None else ()
    if isinstance(step, AssemblyStep):
        return step.placements.id if step.placements is not None else ()
    return ()
