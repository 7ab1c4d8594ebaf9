"""Turn what a step did into span attributes. Pure functions that take any host value."""

import json
import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from opentelemetry.util.types import AttributeValue

from retrospan import attributes
from retrospan._assembly import Assembly
from retrospan._encoding import Json, clean_text, to_json
from retrospan._facts import PromptFacts, RequestFacts, RetrievalFacts
from retrospan._guard import note_once
from retrospan._output import Citation
from retrospan._passages import DescribedPassage, Passage, Retrieval, identity

Attributes = dict[str, AttributeValue]

_MAX_INTEGER: Final = 2**63 - 1

_METADATA_ARRAYS: Final = (
    ("source_version", attributes.PASSAGES_SOURCE_VERSION),
    ("updated_at", attributes.PASSAGES_UPDATED_AT),
    ("acl", attributes.PASSAGES_ACL),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedPassage:
    """A passage with what the record needs of it, worked out once a request."""

    passage: Passage
    described: DescribedPassage
    tokens: int | None


def request_attributes(facts: RequestFacts) -> Attributes:
    """Return the record of what was asked of which system, and for which run."""
    name = clean_text(facts.name)
    recorded: Attributes = {
        attributes.OPERATION_NAME: "invoke_workflow",
        attributes.WORKFLOW_NAME: name,
        attributes.SYSTEM_NAME: name,
        attributes.INPUT: to_json(facts.input),
    }
    if facts.user_roles:
        recorded[attributes.USER_ROLES] = [clean_text(role) for role in facts.user_roles]
    if facts.run is not None:
        recorded[attributes.RUN_ID] = clean_text(facts.run.run_id)
        if facts.run.case_id:
            recorded[attributes.CASE_ID] = clean_text(facts.run.case_id)
    return recorded | _declared(
        (attributes.SYSTEM_VERSION, facts.version),
        (attributes.CONVERSATION_ID, facts.conversation_id),
        (attributes.USER_HASH, facts.user_hash),
    )


def retrieval_attributes(
    retrieval: Retrieval, facts: RetrievalFacts, candidates: Sequence[RecordedPassage]
) -> Attributes:
    """Return the record of one retrieval."""
    depth = facts.depth if retrieval.depth is None else retrieval.depth
    if facts.depth is not None and len(candidates) > facts.depth:
        note_once(
            f"depth: {facts.system}",
            f"the retriever of {clean_text(facts.system)} returned {len(candidates)} candidates"
            f" where {facts.depth} were asked for; all are recorded",
        )
    recorded: Attributes = {
        attributes.OPERATION_NAME: "retrieval",
        attributes.RETRIEVAL_QUERY_TEXT: clean_text(retrieval.query),
        attributes.RETRIEVAL_DOCUMENTS: _documents(candidates),
        attributes.RETRIEVAL_IDENTITY: identity([item.described for item in candidates]),
    }
    if depth is not None:
        recorded[attributes.RETRIEVAL_TOP_K] = _integer(depth)
    if facts.filter is not None:
        recorded[attributes.RETRIEVAL_FILTER] = to_json(facts.filter)
    recorded |= _declared(
        (attributes.INDEX_VERSION, facts.index_version),
        (attributes.DATA_SOURCE_ID, facts.data_source_id),
        (attributes.REQUEST_MODEL, facts.embedding_model),
        (attributes.RETRIEVAL_SCORE_KIND, facts.score_kind),
        (attributes.TOKENIZER, facts.tokenizer),
    )
    return recorded | _passage_arrays(candidates)


def rerank_attributes(
    before: Sequence[RecordedPassage], after: Sequence[RecordedPassage]
) -> Attributes:
    """Return the record of one rerank: the new order, and where each passage came from."""
    return {
        attributes.OPERATION_NAME: "rerank",
        attributes.RERANK_INPUT_POSITION: _input_positions(before, after),
        **_passage_arrays(after),
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


def context_attributes(context: Sequence[RecordedPassage]) -> Attributes:
    """Return the record of a generation that has begun."""
    return {
        attributes.COMPLETED: False,
        attributes.CONTEXT_IDENTITY: identity([item.described for item in context]),
    }


def generation_attributes(answer: str | None, citations: Sequence[Citation] | None) -> Attributes:
    """Return the record of a generation that came to its end."""
    recorded: Attributes = {attributes.COMPLETED: True}
    if answer is not None:
        recorded[attributes.ANSWER] = clean_text(answer)
    if citations is not None:
        recorded[attributes.CITATIONS] = to_json(list(citations))
    return recorded


def prompt_attributes(facts: PromptFacts) -> Attributes:
    """Return what identifies the prompt, and the model where it is declared."""
    recorded = _declared(
        (attributes.PROMPT_NAME, facts.name),
        (attributes.PROMPT_VERSION, facts.version),
        (attributes.REQUEST_MODEL, facts.model),
    )
    if facts.model is not None:
        recorded[attributes.OPERATION_NAME] = "chat"
    return recorded


def _declared(*named: tuple[str, str | None]) -> Attributes:
    """Return the texts somebody declared; what nobody did is absent, never empty."""
    return {name: clean_text(text) for name, text in named if text is not None}


def _passage_arrays(passages: Sequence[RecordedPassage]) -> Attributes:
    described = [item.described for item in passages]
    recorded: Attributes = {
        attributes.PASSAGES_ID: [item.id for item in described],
        attributes.PASSAGES_DOCUMENT_ID: [item.document_id for item in described],
        attributes.PASSAGES_SCORE: [_score(item.passage.score) for item in passages],
        attributes.PASSAGES_TOKENS: [
            -1 if item.tokens is None else _integer(item.tokens) for item in passages
        ],
        attributes.PASSAGES_HASH: [item.hash for item in described],
    }
    for key, name in _METADATA_ARRAYS:
        values = [_metadata_value(item.metadata, key) for item in described]
        if any(values):
            recorded[name] = values
    return recorded


def _metadata_value(metadata: Json, key: str) -> str:
    value = metadata.get(key) if isinstance(metadata, dict) else None
    if value is None or isinstance(value, str):
        return value or ""
    return to_json(value)


def _documents(candidates: Sequence[RecordedPassage]) -> str:
    documents: list[dict[str, object]] = []
    for item in candidates:
        score = _score(item.passage.score)
        document: dict[str, object] = {
            "id": item.described.id,
            "score": score if math.isfinite(score) else None,
            "content": item.described.text,
        }
        if item.described.metadata is not None:
            document["metadata"] = item.described.metadata
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


def _input_positions(
    before: Sequence[RecordedPassage], after: Sequence[RecordedPassage]
) -> list[int]:
    """Return each passage's place before: the same object, else the first with the same id."""
    same: dict[int, int] = {}
    named: dict[str, int] = {}
    for position, item in enumerate(before, start=1):
        same.setdefault(id(item.passage), position)
        named.setdefault(item.described.id, position)
    return [same.get(id(item.passage)) or named.get(item.described.id, 0) for item in after]
