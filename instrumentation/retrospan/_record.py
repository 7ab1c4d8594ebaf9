"""Turn what a step did into span attributes. Pure functions that take any host value."""

import math
from collections.abc import Sequence
from typing import Final

from opentelemetry.util.types import AttributeValue

from retrospan import attributes
from retrospan._assembly import Assembly
from retrospan._capture import Capture
from retrospan._encoding import LEFT_OUT, Json, canonical_json, clean_text, quoted, to_json, to_text
from retrospan._facts import PromptFacts, RequestFacts, RetrievalFacts
from retrospan._guard import note_once
from retrospan._output import Citation
from retrospan._passages import (
    FULL,
    RECORDED_METADATA,
    RecordedPassage,
    Retrieval,
    identity,
)
from retrospan._settings import index_version_text

Attributes = dict[str, AttributeValue]

_MAX_INTEGER: Final = 2**63 - 1
_MAX_NAME_LENGTH: Final = 1_000
"""Characters of an id or a name; a longer one is somebody's mistake."""

_MAX_DOCUMENTS_LENGTH: Final = 8_000_000
"""Characters of all passages of one span; texts beyond it are left out."""

_METADATA_ARRAYS: Final = tuple(
    zip(
        RECORDED_METADATA,
        (
            attributes.PASSAGES_SOURCE_VERSION,
            attributes.PASSAGES_UPDATED_AT,
            attributes.PASSAGES_ACL,
        ),
        strict=True,
    )
)


def request_attributes(facts: RequestFacts, capture: Capture = FULL) -> Attributes:
    """Return the record of what was asked of which system, and for which run."""
    name = clean_text(facts.name)
    recorded: Attributes = {
        attributes.OPERATION_NAME: "invoke_workflow",
        attributes.WORKFLOW_NAME: name,
        attributes.SYSTEM_NAME: name,
    }
    if capture.keeps_question:
        recorded[attributes.INPUT] = shown = capture.json(facts.input)
        if LEFT_OUT in shown:
            recorded[attributes.TRUNCATED] = True
    elif capture.hashes_question:
        recorded[attributes.INPUT_HASH] = capture.json_hash(facts.input)
    if facts.run is not None:
        recorded[attributes.RUN_ID] = clean_text(facts.run.run_id)
        if facts.run.case_id:
            recorded[attributes.CASE_ID] = clean_text(facts.run.case_id)
    recorded |= _declared((attributes.SYSTEM_VERSION, facts.version))
    return recorded | caller_attributes(
        capture,
        conversation_id=facts.conversation_id,
        user_id=facts.user_id,
        user_roles=facts.user_roles,
    )


def caller_attributes(
    capture: Capture, *, conversation_id: object, user_id: object, user_roles: Sequence[object]
) -> Attributes:
    """Return the record of who asked."""
    recorded: Attributes = {}
    if user_roles:
        roles = [user_roles] if isinstance(user_roles, str) else list(user_roles)
        recorded[attributes.USER_ROLES] = [clean_text(role) for role in roles]
    if conversation_id is not None:
        recorded[attributes.CONVERSATION_ID] = clean_text(conversation_id)
    if user_id is not None and capture.has_key:
        recorded[attributes.USER_HASH] = capture.digest(clean_text(user_id).encode())
    elif user_id is not None:
        note_once(
            "user_id",
            "a user's id is recorded only as an HMAC, and there is no key for it: give hash_key",
        )
    return recorded


def retrieval_attributes(
    retrieval: Retrieval,
    facts: RetrievalFacts,
    candidates: Sequence[RecordedPassage] | None,
    capture: Capture = FULL,
) -> Attributes:
    """Return the record of one retrieval; for None, without the passages nobody could read."""
    if candidates is not None and facts.depth is not None and len(candidates) > facts.depth:
        note_once(
            f"depth: {facts.system}",
            f"the retriever of {clean_text(facts.system)} returned {len(candidates)} candidates"
            f" where {facts.depth} were asked for; all are recorded",
        )
    index_version = index_version_text(retrieval.index_version or facts.index_version)
    recorded: Attributes = {attributes.OPERATION_NAME: "retrieval"}
    recorded |= _asked(retrieval, facts, index_version, capture)
    recorded |= _declared(
        (attributes.INDEX_VERSION, index_version),
        (attributes.DATA_SOURCE_ID, facts.data_source_id),
        (attributes.REQUEST_MODEL, facts.embedding_model),
        (attributes.RETRIEVAL_SCORE_KIND, facts.score_kind),
        (attributes.TOKENIZER, facts.tokenizer),
    )
    if candidates is None:
        return recorded
    recorded |= _passage_arrays(candidates)
    if capture.keeps_passages:
        recorded[attributes.RETRIEVAL_DOCUMENTS] = _documents(candidates)
    return recorded


def _asked(
    retrieval: Retrieval, facts: RetrievalFacts, index_version: str | None, capture: Capture
) -> Attributes:
    """Return what the index was asked: in words where those are kept, and as one identity."""
    depth = facts.depth if retrieval.depth is None else retrieval.depth
    asked_for = None if depth is None else _integer(depth)
    query = None if retrieval.query is None else capture.whole(retrieval.query)
    restriction = facts.filter if retrieval.filter is None else retrieval.filter
    restricted = None if restriction is None else capture.plain(restriction)
    identity_of: Json = [
        query,
        asked_for,
        _clean(index_version),
        _clean(facts.system_version),
        _clean(facts.data_source_id),
        restricted,
    ]
    recorded: Attributes = {
        attributes.RETRIEVAL_IDENTITY: capture.digest(canonical_json(identity_of).encode())
    }
    if asked_for is not None:
        recorded[attributes.RETRIEVAL_TOP_K] = asked_for
    if query is not None and capture.keeps_question:
        recorded[attributes.RETRIEVAL_QUERY_TEXT] = shown = capture.cut(query)
        if shown is not query:
            recorded[attributes.TRUNCATED] = True
    elif query is not None and capture.hashes_question:
        recorded[attributes.RETRIEVAL_QUERY_HASH] = capture.digest(query.encode())
    if restriction is not None and capture.keeps_question:
        recorded[attributes.RETRIEVAL_FILTER] = capture.json(restriction)
    return recorded


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
        attributes.ASSEMBLY_ID: [clean_text(item.passage.id) for item in placements],
        attributes.ASSEMBLY_POSITION: [item.position for item in placements],
        attributes.ASSEMBLY_PROMPT_POSITION: [item.prompt_position for item in placements],
        attributes.ASSEMBLY_DROPPED_REASON: [item.dropped_reason or "" for item in placements],
    }
    if assembly.rule is not None:
        recorded[attributes.ASSEMBLY_RULE] = assembly.rule
    for name, number in (
        (attributes.ASSEMBLY_TOP_K, assembly.top_k),
        (attributes.ASSEMBLY_TOKEN_BUDGET, assembly.token_budget),
        (attributes.ASSEMBLY_CONTEXT_TOKENS, assembly.context_tokens),
    ):
        if number is not None:
            recorded[name] = _integer(number)
    return recorded


def context_attributes(context: Sequence[RecordedPassage], capture: Capture = FULL) -> Attributes:
    """Return the record of a generation that has begun."""
    return {
        attributes.COMPLETED: False,
        attributes.CONTEXT_IDENTITY: identity(context, capture),
    }


def generation_attributes(
    answer: str | None, citations: Sequence[Citation] | None, capture: Capture = FULL
) -> Attributes:
    """Return the record of a generation that came to its end."""
    return {attributes.COMPLETED: True} | answer_attributes(answer, citations, capture)


def answer_attributes(
    answer: str | None, citations: Sequence[Citation] | None, capture: Capture = FULL
) -> Attributes:
    """Return the record of an answer, or of the part of one that there is."""
    recorded: Attributes = {}
    if answer is not None and capture.keeps_question:
        whole = capture.whole(answer)
        recorded[attributes.ANSWER] = shown = capture.cut(whole)
        if shown is not whole:
            recorded[attributes.TRUNCATED] = True
    elif answer is not None and capture.hashes_question:
        recorded[attributes.ANSWER_HASH] = capture.text_hash(answer)
    if citations is not None:
        cited = [_citation(item, capture) for item in citations]
        texts = [quoted(item) if isinstance(item, str) else to_json(item) for item in cited]
        recorded[attributes.CITATIONS] = f"[{', '.join(texts)}]"
    return recorded


def error_description(error: BaseException, capture: Capture = FULL) -> str:
    """Return what a span's status says of an exception: its message may quote the question."""
    name = clean_text(type(error).__qualname__)
    return f"{name}: {capture.text(error)}" if capture.keeps_passages else name


def _citation(citation: Citation, capture: Capture) -> Citation:
    """Return the citation as given; one with a space in it is no id but a text."""
    if not isinstance(citation, str):
        return citation
    if " " not in citation:
        return clean_text(citation)[:_MAX_NAME_LENGTH]
    return capture.text(citation) if capture.keeps_question else capture.text_hash(citation)


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


def _clean(text: str | None) -> str | None:
    return None if text is None else clean_text(text)


def _passage_arrays(passages: Sequence[RecordedPassage]) -> Attributes:
    recorded: Attributes = {
        attributes.PASSAGES_ID: [item.id for item in passages],
        attributes.PASSAGES_DOCUMENT_ID: [item.document_id for item in passages],
        attributes.PASSAGES_SCORE: [item.score for item in passages],
        attributes.PASSAGES_TOKENS: [
            -1 if item.tokens is None else _integer(item.tokens) for item in passages
        ],
        attributes.PASSAGES_HASH: [item.hash for item in passages],
    }
    if any(item.metadata is not None for item in passages):
        for key, name in _METADATA_ARRAYS:
            values = [_metadata_value(item.metadata, key) for item in passages]
            if any(values):
                recorded[name] = values
    return recorded


def _metadata_value(metadata: Json, key: str) -> str:
    value = metadata.get(key) if isinstance(metadata, dict) else None
    if value is None or isinstance(value, str):
        return value or ""
    return to_json(value)


def _documents(candidates: Sequence[RecordedPassage]) -> str:
    """Return the passages as a JSON array; put together here, at half of an encoder's cost."""
    documents: list[str] = []
    left = _MAX_DOCUMENTS_LENGTH
    for item in candidates:
        left -= len(item.text)
        content = quoted(item.text) if left >= 0 else '""'
        score = "null" if math.isnan(item.score) else repr(item.score)
        document = f'{{"id": {quoted(item.id)}, "score": {score}, "content": {content}'
        if item.metadata is not None:
            document += f', "metadata": {to_text(item.metadata)}'
        if item.is_cut or left < 0:
            document += ', "truncated": true'
        documents.append(document)
    return f"[{'}, '.join(documents)}}}]" if documents else "[]"


def _integer(value: object) -> int:
    """Return an integer that fits the wire, else -1."""
    if type(value) is int and -1 <= value <= _MAX_INTEGER:
        return value
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
        named.setdefault(item.id, position)
    return [same.get(id(item.passage)) or named.get(item.id, 0) for item in after]
