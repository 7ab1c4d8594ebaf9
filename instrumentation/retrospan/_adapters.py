"""Understand what a retriever of any framework returned, without importing the framework.

Passages are recognised by the names of their parts: LangChain's and Haystack's `Document`,
LlamaIndex's `NodeWithScore`, hits of a vector store, dicts, tuples and strings. What is missing
stays missing: an id is never made up, and nothing that can be read only once is read.
"""

import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, TypeGuard

from retrospan._encoding import clean_text
from retrospan._guard import guarded
from retrospan._output import text_in
from retrospan._passages import RECORDED_METADATA, Passage, Retrieval

_IDS: Final = ("id", "id_", "_id", "passage_id", "chunk_id", "node_id", "uuid")
_TEXTS: Final = ("text", "content", "page_content", "passage", "chunk", "body", "document")
_SCORES: Final = ("score", "_score", "relevance_score", "similarity", "distance")
_DOCUMENT_IDS: Final = ("document_id", "doc_id", "ref_doc_id", "source_id", "source")
_TOKENS: Final = ("tokens", "token_count", "n_tokens")
_METADATA: Final = ("metadata", "meta", "payload", "_source")
_LISTS: Final = (
    "passages",
    "candidates",
    "documents",
    "docs",
    "source_nodes",
    "nodes",
    "chunks",
    "results",
    "matches",
    "hits",
    "points",
    "context",
)

_ABSENT: Final = object()

Read = Callable[[str], object]
"""Returns a part of a thing by its name, else `_ABSENT`."""


def passages_of(
    value: object, convert: Callable[..., object] | None = None
) -> tuple[Passage, ...] | None:
    """Return the passages in what a retriever returned; None when it is not understood.

    Args:
        convert: turns the value into passages, or into something that is understood.
    """
    return _passages(value if convert is None else convert(value))


def _passages(value: object) -> tuple[Passage, ...] | None:
    if isinstance(value, Retrieval):
        return _each(value.candidates)
    if isinstance(value, str):
        return (Passage("", value),)
    if isinstance(value, tuple) and value and _is_list(value[0]):
        return _passages(value[0])  # the passages, and something about them
    if _is_list(value):
        return _each(value)
    one = _passage(value)
    if one is not None:
        return (one,)
    read = _reader(value)
    columns = _columns(read)
    if columns is not None:
        return columns
    for name in _LISTS:
        inner = read(name)
        if _is_list(inner):
            return _each(inner)
    return None


def _is_list(value: object) -> TypeGuard[Iterable[object]]:
    """Whether a value holds several things and can be read again."""
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return False
    return isinstance(value, Sequence | AbstractSet) and not isinstance(value, str | bytes)


def _each(items: Iterable[object]) -> tuple[Passage, ...] | None:
    given = list(items)
    if all(isinstance(item, Passage) for item in given):
        return tuple(given)  # type: ignore[arg-type]  # as just checked
    found = [_guarded_passage(item) for item in given]
    if given and not any(found):
        return None
    # A place that is not understood is kept, or every position after it would be wrong.
    return tuple(passage or Passage("") for passage in found)


def _guarded_passage(item: object) -> Passage | None:
    with guarded("read a passage"):
        return _passage(item)
    return None


def _passage(item: object) -> Passage | None:
    if isinstance(item, Passage):
        return item
    if isinstance(item, str | bytes):
        return Passage("", clean_text(item))
    if item is None or isinstance(item, bool):
        return None
    if isinstance(item, numbers.Integral):
        return Passage(str(item))  # a place in an index
    if isinstance(item, tuple) and not hasattr(item, "_fields"):
        return _from_tuple(item)
    return _from_parts(item)


def _from_tuple(parts: tuple[object, ...]) -> Passage | None:
    """Return the passage of (thing, score), (id, text) or (id, text, score)."""
    if not parts or len(parts) > 3:
        return None
    score = parts[-1] if _is_score(parts[-1]) or (parts[-1] is None and len(parts) > 1) else _ABSENT
    rest = parts if score is _ABSENT else parts[:-1]
    if len(rest) == 2 and isinstance(rest[0], str | int) and isinstance(rest[1], str):
        return _built(rest[0], rest[1], score, _ABSENT, _ABSENT, _ABSENT)
    if len(rest) != 1:
        return None
    passage = _passage(rest[0])
    if passage is None or score is _ABSENT:
        return passage
    return Passage(
        passage.id,
        passage.text,
        score,  # type: ignore[arg-type]  # the record reads every kind of number
        passage.document_id,
        passage.tokens,
        passage.metadata,
    )


def _is_score(value: object) -> bool:
    if isinstance(value, bool | str | bytes):
        return False
    return isinstance(value, numbers.Real) or hasattr(type(value), "__float__")


def _from_parts(item: object) -> Passage | None:
    """Return the passage of a dict or an object, by the names of its parts."""
    read = _reader(item)
    node = read("node")
    if node is not _ABSENT and node is not None:
        inner = _passage(node)
        if inner is None:
            return None
        return _with_score(inner, _first(read, _SCORES))
    metadata = _first(read, _METADATA)
    described = metadata if isinstance(metadata, Mapping) else {}
    inside = _reader(described)
    id, text = _first(read, _IDS), _text(read)
    if text is _ABSENT:
        text = _first(inside, _TEXTS)
        metadata = _without_text(metadata)
        described = metadata if isinstance(metadata, Mapping) else {}
    if text is _ABSENT and id is _ABSENT:
        return None
    score = _first(read, _SCORES)
    if isinstance(item, Mapping) and metadata is _ABSENT:
        metadata = {name: part for name, part in item.items() if name not in _KNOWN}
    else:
        beside = {name: read(name) for name in RECORDED_METADATA if name not in described}
        known = {name: part for name, part in beside.items() if part not in (_ABSENT, None)}
        metadata = {**described, **known} if known else metadata
    return _built(
        id if id is not _ABSENT else _first(inside, _IDS),
        text,
        score if score is not _ABSENT else _first(inside, _SCORES),
        _first_of(read, inside, _DOCUMENT_IDS),
        _first_of(read, inside, _TOKENS),
        metadata,
    )


def _without_text(metadata: object) -> object:
    """Return the metadata without the passage's text, which would be recorded twice."""
    if not isinstance(metadata, Mapping):
        return metadata
    return {name: part for name, part in metadata.items() if name not in _TEXTS}


_KNOWN: Final = frozenset((*_IDS, *_TEXTS, *_SCORES, *_DOCUMENT_IDS, *_TOKENS))


def _with_score(passage: Passage, score: object) -> Passage:
    return _built(
        passage.id, passage.text, score, passage.document_id, passage.tokens, passage.metadata
    )


def _text(read: Read) -> object:
    for name in _TEXTS:
        part = read(name)
        inner = _first(_reader(part), _TEXTS) if isinstance(part, Mapping) else text_in(part)
        if inner is not None and inner is not _ABSENT:
            return inner
    text = _first(read, _TEXTS)
    if text is _ABSENT:
        get_content = read("get_content")
        if callable(get_content):
            text = get_content()
    return text


def _built(
    id: object, text: object, score: object, document_id: object, tokens: object, metadata: object
) -> Passage:
    known_as = "" if id is _ABSENT or id is None else clean_text(id)
    cut_from = _ABSENT if document_id is None or document_id == "" else document_id
    return Passage(
        known_as,
        "" if text is _ABSENT or text is None else clean_text(text),
        None if score is _ABSENT else score,  # type: ignore[arg-type]  # the record reads every kind of number
        known_as if cut_from is _ABSENT else clean_text(cut_from),
        None if tokens is _ABSENT else tokens,  # type: ignore[arg-type]  # likewise
        metadata if isinstance(metadata, Mapping) else None,
    )


def _reader(item: object) -> Read:
    """Return how to read a thing's parts; a part that raises is absent."""

    def from_mapping(name: str) -> object:
        return item.get(name, _ABSENT) if isinstance(item, Mapping) else _ABSENT

    def from_object(name: str) -> object:
        try:
            return getattr(item, name, _ABSENT)
        except Exception:  # a host's property may raise anything
            return _ABSENT

    return from_mapping if isinstance(item, Mapping) else from_object


def _first(read: Read, names: Sequence[str]) -> object:
    for name in names:
        part = read(name)
        if part is not _ABSENT and part is not None and not callable(part) and not _is_many(part):
            return part
    return _ABSENT


def _is_many(part: object) -> bool:
    """Whether a part is no single thing, as the column of a table is not."""
    return hasattr(type(part), "__iter__") and not isinstance(part, str | bytes | Mapping)


def _first_of(read: Read, inside: Read, names: Sequence[str]) -> object:
    part = _first(read, names)
    return part if part is not _ABSENT else _first(inside, names)


def _columns(read: Read) -> tuple[Passage, ...] | None:
    """Return the passages of a result that holds ids, texts and scores as parallel lists."""
    ids = _unwrapped(read("ids"))
    if not _is_list(ids):
        return None
    listed = list(ids)
    columns = [_unwrapped(read(name)) for name in ("documents", "distances", "metadatas")]
    texts, scores, metadata = (
        list(column) if _is_list(column) else [_ABSENT] * len(listed) for column in columns
    )
    if not len(listed) == len(texts) == len(scores) == len(metadata):
        return None
    return tuple(
        _built(id, text, score, _ABSENT, _ABSENT, described)
        for id, text, score, described in zip(listed, texts, scores, metadata, strict=True)
    )


def _unwrapped(column: object) -> object:
    """Return the list for the one query of a batch of one."""
    if isinstance(column, list) and len(column) == 1 and isinstance(column[0], list):
        return column[0]
    return column
