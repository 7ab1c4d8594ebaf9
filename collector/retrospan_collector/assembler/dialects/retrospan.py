"""Our own convention: spans that carry `retrospan.schema.version`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import NoneType
from typing import Any, Final, Literal, TypeVar, cast

from retrospan import attributes
from retrospan_collector.assembler.attribute_reader import REDACTION_MARK, AttributeReader
from retrospan_collector.assembler.record import (
    AssemblyStep,
    GenerationStep,
    PassageList,
    Placements,
    RequestRecord,
    RetrievalStep,
    Stage,
)
from retrospan_collector.assembler.sampling import adjusted_count
from retrospan_collector.assembler.span import Span
from retrospan_collector.assembler.tree import SpanGroup
from retrospan_collector.clickhouse.request_row import (
    NO_HASH,
    UNKNOWN_TOKENS,
    BudgetRule,
    Completeness,
)

NAME: Final = "retrospan"

_STAGES: Final[dict[str, Stage]] = {
    "request": "request",
    "retrieve": "retrieve",
    "rerank": "rerank",
    "assemble": "assemble",
    "generate": "generate",
}
_LARGEST_PROMPT_POSITION: Final = 0xFFFF
_Column = TypeVar("_Column")


def stage_of(span: Span) -> Stage | None:
    """The step a span of ours records; None for a span of anybody else."""
    if attributes.SCHEMA_VERSION not in span.attributes:
        return None
    return _STAGES.get(span.attributes.get(attributes.STAGE, ""))


def read_request(group: SpanGroup) -> RequestRecord:
    """What the spans of one request say."""
    reader = AttributeReader()
    retrievals: list[RetrievalStep] = []
    assemblies: list[AssemblyStep] = []
    generations: list[GenerationStep] = []
    for span in group.spans:
        stage = stage_of(span)
        if stage == "retrieve" or stage == "rerank":
            retrievals.append(_retrieval(span, stage, reader))
        elif stage == "assemble":
            assemblies.append(_assembly(span, reader))
        elif stage == "generate":
            generations.append(_generation(span, reader))
        if span.dropped_attributes:
            reader.mark(Completeness.ATTRIBUTES_DROPPED)
        if _is_cut(span):
            reader.mark(Completeness.TEXT_CUT)
    root = group.root or group.spans[0]
    return RequestRecord(
        dialect=NAME,
        system_name=reader.text(root, attributes.SYSTEM_NAME),
        system_version=reader.text(root, attributes.SYSTEM_VERSION),
        run_id=reader.text(root, attributes.RUN_ID),
        input=_input(root, reader),
        input_cut=_is_cut(root),
        conversation_id=reader.text(root, attributes.CONVERSATION_ID),
        user_hash=reader.text(root, attributes.USER_HASH),
        caller_roles=reader.texts(root, attributes.USER_ROLES) or (),
        error_type=_error_type(group.root) if group.root else "",
        adjusted_count=adjusted_count(root),
        retrievals=retrievals,
        assemblies=assemblies,
        generations=generations,
        completeness=reader.completeness,
    )


def _is_cut(span: Span) -> bool:
    return span.attributes.get(attributes.TRUNCATED) == "true"


def _input(root: Span, reader: AttributeReader) -> str:
    text = reader.text(root, attributes.INPUT)
    if text:
        reader.json(root, attributes.INPUT)  # marks what cannot be parsed; the text is kept
    return text


def _error_type(span: Span) -> str:
    recorded = span.attributes.get(attributes.ERROR_TYPE, "")
    return recorded or ("_OTHER" if span.failed else "")


def _retrieval(
    span: Span, kind: Literal["retrieve", "rerank"], reader: AttributeReader
) -> RetrievalStep:
    return RetrievalStep(
        kind=kind,
        span=span,
        passages=_passages(span, reader),
        error_type=_error_type(span),
        query=reader.text(span, attributes.RETRIEVAL_QUERY_TEXT),
        depth=reader.integer(span, attributes.RETRIEVAL_TOP_K),
        index_version=reader.text(span, attributes.INDEX_VERSION),
        data_source_id=reader.text(span, attributes.DATA_SOURCE_ID),
        embedding_model=reader.text(span, attributes.REQUEST_MODEL),
        tokenizer=reader.text(span, attributes.TOKENIZER),
        score_kind=reader.text(span, attributes.RETRIEVAL_SCORE_KIND),
    )


def _passages(span: Span, reader: AttributeReader) -> PassageList | None:
    ids = reader.texts(span, attributes.PASSAGES_ID)
    if ids is None:
        return None
    n = len(ids)
    empty = ("",) * n
    documents = _documents(span, ids, reader)
    document_ids = _column(reader.texts(span, attributes.PASSAGES_DOCUMENT_ID), ids, reader)
    return PassageList(
        id=ids,
        document_id=tuple(map(_first_known, document_ids, ids)),
        hash=_hashes(_column(reader.texts(span, attributes.PASSAGES_HASH), empty, reader), reader),
        score=_column(reader.scores(span, attributes.PASSAGES_SCORE), (math.nan,) * n, reader),
        tokens=_tokens(
            _column(reader.integers(span, attributes.PASSAGES_TOKENS), (-1,) * n, reader)
        ),
        source_version=_column(
            reader.texts(span, attributes.PASSAGES_SOURCE_VERSION), empty, reader
        ),
        updated_at=_column(reader.texts(span, attributes.PASSAGES_UPDATED_AT), empty, reader),
        acl=_column(reader.texts(span, attributes.PASSAGES_ACL), empty, reader),
        text=_texts(documents, reader),
        metadata=_metadata(documents),
    )


def _first_known(document_id: str, passage_id: str) -> str:
    return document_id or passage_id


def _column(
    recorded: tuple[_Column, ...] | None, missing: tuple[_Column, ...], reader: AttributeReader
) -> tuple[_Column, ...]:
    """The recorded column; the one for a missing record where lengths disagree."""
    if recorded is None:
        return missing
    if len(recorded) != len(missing):
        reader.mark(Completeness.TRUNCATED)
        return missing
    return recorded


def _documents(
    span: Span, ids: tuple[str, ...], reader: AttributeReader
) -> Sequence[Mapping[str, Any]]:
    """The recorded documents, one for each id; empty ones where they are not recorded."""
    documents = reader.objects(span, attributes.RETRIEVAL_DOCUMENTS)
    if documents is not None and tuple([item.get("id") for item in documents]) == ids:
        return documents
    if documents is not None:
        reader.mark(Completeness.TRUNCATED)
    return [{}] * len(ids)


def _texts(
    documents: Sequence[Mapping[str, Any]], reader: AttributeReader
) -> tuple[str | None, ...]:
    texts = tuple([document.get("content") for document in documents])
    if any(["truncated" in document for document in documents]):
        reader.mark(Completeness.TEXT_CUT)
        texts = tuple(
            [
                None if document.get("truncated") else text
                for document, text in zip(documents, texts, strict=True)
            ]
        )
    if REDACTION_MARK in texts:
        reader.mark(Completeness.REDACTED)
    elif set(map(type, texts)) <= {str, NoneType}:
        return texts
    return tuple([text if type(text) is str and text != REDACTION_MARK else None for text in texts])


def _metadata(documents: Sequence[Mapping[str, Any]]) -> tuple[Mapping[str, object] | None, ...]:
    values = [document.get("metadata") for document in documents]
    return tuple([value if type(value) is dict else None for value in values])


def _hashes(recorded: Sequence[str], reader: AttributeReader) -> tuple[bytes, ...]:
    try:
        hashes = tuple(map(bytes.fromhex, recorded))
    except ValueError:
        hashes = ()
    if set(map(len, hashes)) == {len(NO_HASH)}:
        return hashes
    return tuple(_hash(text, reader) if text else NO_HASH for text in recorded)


def _hash(text: str, reader: AttributeReader) -> bytes:
    try:
        content = bytes.fromhex(text)
    except ValueError:
        content = b""
    if len(content) == len(NO_HASH):
        return content
    reader.mark(Completeness.UNREADABLE)
    return NO_HASH


def _tokens(recorded: Sequence[int]) -> tuple[int, ...]:
    if recorded and 0 <= min(recorded) and max(recorded) < UNKNOWN_TOKENS:
        return tuple(recorded)
    return tuple(count if 0 <= count < UNKNOWN_TOKENS else UNKNOWN_TOKENS for count in recorded)


def _assembly(span: Span, reader: AttributeReader) -> AssemblyStep:
    return AssemblyStep(
        span=span,
        placements=_placements(span, reader),
        error_type=_error_type(span),
        top_k=reader.integer(span, attributes.ASSEMBLY_TOP_K),
        token_budget=reader.integer(span, attributes.ASSEMBLY_TOKEN_BUDGET),
        rule=_rule(span, reader),
        context_tokens=reader.integer(span, attributes.ASSEMBLY_CONTEXT_TOKENS),
        prompt_hash=reader.text(span, attributes.ASSEMBLY_PROMPT_HASH),
        prompt_version=reader.text(span, attributes.PROMPT_VERSION),
    )


def _rule(span: Span, reader: AttributeReader) -> BudgetRule:
    rule = span.attributes.get(attributes.ASSEMBLY_RULE, "")
    if rule in ("stop", "skip", ""):
        return cast(BudgetRule, rule)
    reader.mark(Completeness.UNREADABLE)
    return ""


def _placements(span: Span, reader: AttributeReader) -> Placements | None:
    ids = reader.texts(span, attributes.ASSEMBLY_ID)
    positions = reader.integers(span, attributes.ASSEMBLY_POSITION)
    places = reader.integers(span, attributes.ASSEMBLY_PROMPT_POSITION)
    reasons = reader.texts(span, attributes.ASSEMBLY_DROPPED_REASON)
    if ids is None or positions is None or places is None or reasons is None:
        return None
    if not len(ids) == len(positions) == len(places) == len(reasons):
        reader.mark(Completeness.TRUNCATED)
        return None
    if places and not 0 <= min(places) <= max(places) <= _LARGEST_PROMPT_POSITION:
        reader.mark(Completeness.UNREADABLE)
        return None
    return Placements(id=ids, position=positions, prompt_position=places, dropped_reason=reasons)


def _generation(span: Span, reader: AttributeReader) -> GenerationStep:
    model = reader.text(span, attributes.REQUEST_MODEL)
    reasons = reader.texts(span, attributes.FINISH_REASONS)
    has_answer = attributes.ANSWER in span.attributes
    return GenerationStep(
        span=span,
        error_type=_error_type(span),
        answer=reader.text(span, attributes.ANSWER) if has_answer else None,
        citations=_citations(span, reader),
        model=model or reader.text(span, attributes.RESPONSE_MODEL),
        prompt_hash=reader.text(span, attributes.ASSEMBLY_PROMPT_HASH),
        prompt_version=reader.text(span, attributes.PROMPT_VERSION),
        input_tokens=reader.integer(span, attributes.INPUT_TOKENS),
        output_tokens=reader.integer(span, attributes.OUTPUT_TOKENS),
        finish_reason=reasons[0] if reasons else "",
        first_chunk_ns=reader.seconds_as_ns(span, attributes.TIME_TO_FIRST_CHUNK),
    )


def _citations(span: Span, reader: AttributeReader) -> tuple[str | int, ...] | None:
    recorded = reader.array(span, attributes.CITATIONS)
    if recorded is None:
        return None
    if not all(type(item) in (str, int) for item in recorded):
        reader.mark(Completeness.UNREADABLE)
        return None
    return tuple(recorded)
