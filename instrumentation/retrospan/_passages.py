"""What a retriever returns: passages in its own order, and how a passage is recognised again."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from retrospan._encoding import Json, canonical_json, clean_text, plain


@dataclass(frozen=True, slots=True)
class Passage:
    """One retrieved piece of text."""

    id: str
    """The retriever's id of this piece; citations and labels name it."""

    text: str = ""
    """What the generator reads."""

    score: float | None = None
    """The retriever's score; None when it gives none. Positions are never derived from it."""

    document_id: str | None = None
    """The document the piece was cut from; the passage's own id when not given."""

    tokens: int | None = None
    """Tokens of the text by the system's own tokenizer; None when unknown, never estimated."""

    metadata: Mapping[str, object] | None = None
    """Anything else worth recording. The keys `source_version`, `updated_at` and `acl` are
    also recorded for each passage on their own."""

    def __post_init__(self) -> None:
        if self.document_id is None:
            object.__setattr__(self, "document_id", self.id)


@dataclass(frozen=True, slots=True)
class Retrieval:
    """What one call of the retriever found, in the retriever's own order."""

    query: str
    """The query the retriever searched with, after any rewriting."""

    candidates: Sequence[Passage]
    """All passages returned, best first; kept as a tuple and never sorted again."""

    depth: int | None = None
    """How many passages were really asked for, where the retriever changed the number."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "candidates", tuple(self.candidates))


def passage_hash(text: str, metadata: Mapping[str, object] | None = None) -> str:
    """Return the content hash of a passage: 16 bytes of SHA-256, as 32 hexadecimal digits.

    It covers the text and the canonical JSON of the metadata, so a passage whose text stayed
    and whose permissions changed is another passage. Empty metadata counts as none.
    """
    described = plain(metadata)
    return _digest(clean_text(text), None if described == {} else described)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedPassage:
    """A passage as it is recorded: valid Unicode, JSON types, and its hash."""

    id: str
    document_id: str
    text: str
    metadata: Json
    """None where there is none, or nothing in it."""

    hash: str
    """Empty for a passage without content."""


def describe(passage: Passage) -> DescribedPassage:
    """Return what is recorded of a passage, whatever the host put into it."""
    text = "" if passage.text is None else clean_text(passage.text)
    metadata = plain(passage.metadata)
    if metadata == {}:
        metadata = None
    return DescribedPassage(
        id=_text_or_empty(passage.id),
        document_id=_text_or_empty(passage.document_id),
        text=text,
        metadata=metadata,
        hash=_digest(text, metadata) if text or metadata is not None else "",
    )


def identity(passages: Sequence[DescribedPassage]) -> str:
    """Return one hash for a list of passages: equal ids and contents in equal order, no more."""
    named: Json = [[passage.id, passage.hash] for passage in passages]
    return hashlib.sha256(canonical_json(named).encode()).digest()[:16].hex()


def _text_or_empty(value: object) -> str:
    return "" if value is None else clean_text(value)


def _digest(text: str, metadata: Json) -> str:
    canonical = "" if metadata is None else canonical_json(metadata)
    return hashlib.sha256(text.encode() + b"\0" + canonical.encode()).digest()[:16].hex()
