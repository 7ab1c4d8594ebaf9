"""Turn what a step did into span attributes. Pure functions that take any host value."""

import json
import logging
import math
from collections.abc import Callable, Sequence
from typing import Final

from opentelemetry.util.types import AttributeValue

from retrospan import attributes
from retrospan._assembly import Assembly
from retrospan._encoding import clean_text, plain, to_json
from retrospan._guard import note_once
from retrospan._output import Citation
from retrospan._passages import Passage, Retrieval, identity, recorded_hash
from retrospan._run_scope import RunScope
from retrospan._settings import SystemSettings

Attributes = dict[str, AttributeValue]

_MAX_INTEGER: Final = 2**63 - 1

_METADATA_ARRAYS: Final = (
    ("source_version", attributes.PASSAGES_SOURCE_VERSION),
    ("updated_at", attributes.PASSAGES_UPDATED_AT),
    ("acl", attributes.PASSAGES_ACL),
)


def request_attributes(settings: SystemSettings, run: RunScope | None) -> Attributes:
    """Return what is known before a request runs; small enough for a sampler."""
    known: Attributes = {
        attributes.OPERATION_NAME: "invoke_workflow",
        attributes.WORKFLOW_NAME: clean_text(settings.name),
        attributes.SYSTEM_NAME: clean_text(settings.name),
        attributes.SYSTEM_VERSION: clean_text(settings.version),
    }
    if run is not None:
        known[attributes.RUN_ID] = clean_text(run.run_id)
        if run.case_id:
            known[attributes.CASE_ID] = clean_text(run.case_id)
    return known


def retrieval_attributes(
    retrieval: Retrieval, settings: SystemSettings, tokens: Sequence[int | None]
) -> Attributes:
    """Return the record of one retrieval; `tokens` has one count for each candidate."""
    candidates = retrieval.candidates
    depth = settings.depth if retrieval.depth is None else retrieval.depth
    if len(candidates) > settings.depth:
        note_once(
            f"depth: {settings.name}",
            f"the retriever of {clean_text(settings.name)} returned {len(candidates)} candidates"
            f" where {settings.depth} were asked for; all are recorded",
        )
    recorded: Attributes = {
        attributes.RETRIEVAL_TOP_K: _integer(depth),
        attributes.RETRIEVAL_QUERY_TEXT: clean_text(retrieval.query),
        attributes.RETRIEVAL_DOCUMENTS: _documents(candidates),
        attributes.RETRIEVAL_IDENTITY: identity(candidates),
    }
    if settings.index_version is not None:
        recorded[attributes.INDEX_VERSION] = clean_text(settings.index_version)
    return recorded | _passage_arrays(candidates, tokens)


def rerank_attributes(
    before: Sequence[Passage], after: Sequence[Passage], tokens: Sequence[int | None]
) -> Attributes:
    """Return the record of one rerank: the new order, and where each passage came from."""
    return {
        attributes.RERANK_INPUT_POSITION: _input_positions(before, after),
        **_passage_arrays(after, tokens),
    }


def assembly_attributes(assembly: Assembly) -> Attributes:
    """Return the record of one assembly."""
    placements = assembly.placements
    recorded: Attributes = {
        attributes.ASSEMBLY_RULE: assembly.rule,
        attributes.ASSEMBLY_ID: [clean_text(item.passage.id) for item in placements],
        attributes.ASSEMBLY_POSITION: [item.position for item in placements],
        attributes.ASSEMBLY_PROMPT_POSITION: [item.prompt_position for item in placements],
        attributes.ASSEMBLY_DROPPED_REASON: [item.dropped_reason or "" for item in placements],
    }
    for name, number in (
        (attributes.ASSEMBLY_TOP_K, assembly.top_k),
        (attributes.ASSEMBLY_TOKEN_BUDGET, assembly.token_budget),
        (attributes.ASSEMBLY_CONTEXT_TOKENS, assembly.context_tokens),
    ):
        if number is not None:
            recorded[name] = _integer(number)
    return recorded


def generation_attributes(answer: str | None, citations: Sequence[Citation] | None) -> Attributes:
    """Return the record of a generation that came to its end."""
    recorded: Attributes = {attributes.COMPLETED: True}
    if answer is not None:
        recorded[attributes.ANSWER] = clean_text(answer)
    if citations is not None:
        recorded[attributes.CITATIONS] = to_json(list(citations))
    return recorded


def _passage_arrays(passages: Sequence[Passage], tokens: Sequence[int | None]) -> Attributes:
    recorded: Attributes = {
        attributes.PASSAGES_ID: _texts(passages, lambda passage: passage.id),
        attributes.PASSAGES_DOCUMENT_ID: _texts(passages, lambda passage: passage.document_id),
        attributes.PASSAGES_SCORE: [_score(passage.score) for passage in passages],
        attributes.PASSAGES_TOKENS: [-1 if n is None else _integer(n) for n in tokens],
        attributes.PASSAGES_HASH: [recorded_hash(passage) for passage in passages],
    }
    metadata = [plain(passage.metadata) for passage in passages]
    for key, name in _METADATA_ARRAYS:
        values = [_metadata_value(item, key) for item in metadata]
        if any(values):
            recorded[name] = values
    return recorded


def _texts(passages: Sequence[Passage], read: Callable[[Passage], object]) -> list[str]:
    values = [read(passage) for passage in passages]
    return ["" if value is None else clean_text(value) for value in values]


def _metadata_value(metadata: object, key: str) -> str:
    value = metadata.get(key) if isinstance(metadata, dict) else None
    if value is None or isinstance(value, str):
        return value or ""
    return to_json(value)


def _documents(candidates: Sequence[Passage]) -> str:
    documents: list[dict[str, object]] = []
    for passage in candidates:
        score = _score(passage.score)
        document: dict[str, object] = {
            "id": clean_text(passage.id),
            "score": score if math.isfinite(score) else None,
            "content": clean_text(passage.text),
        }
        metadata = plain(passage.metadata)
        if metadata is not None and metadata != {}:
            document["metadata"] = metadata
        documents.append(document)
    return json.dumps(documents, ensure_ascii=False)


def _score(value: object) -> float:
    """Return the score as a finite double, else NaN; numpy's numbers are numbers."""
    if value is None:
        return math.nan
    try:
        score = math.nan if isinstance(value, str | bytes) else float(value)  # type: ignore[arg-type]  # anything with __float__
    except Exception:  # a host's object may raise anything
        score = math.nan
    if math.isfinite(score):
        return score
    note_once(
        "score",
        "a passage's score is not a finite number and is recorded as missing",
        logging.INFO,
    )
    return math.nan


def _integer(value: object) -> int:
    """Return an integer that fits the wire, else -1."""
    try:
        number = int(value)  # type: ignore[call-overload]  # anything with __int__
    except Exception:  # a host's object may raise anything
        return -1
    return number if -1 <= number <= _MAX_INTEGER else -1


def _input_positions(before: Sequence[Passage], after: Sequence[Passage]) -> list[int]:
    """Return each passage's place before: the same object, else the first with the same id."""
    same = {id(passage): position for position, passage in enumerate(before, start=1)}
    named: dict[str, int] = {}
    for position, passage in enumerate(before, start=1):
        named.setdefault(clean_text(passage.id), position)
    return [same.get(id(passage)) or named.get(clean_text(passage.id), 0) for passage in after]
