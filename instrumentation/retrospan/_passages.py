"""What a retriever returns: passages in its own order, and how a passage is recognised again."""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from retrospan._capture import Capture
from retrospan._encoding import Json, canonical_json, clean_text, plain, quoted
from retrospan._guard import note_once

RECORDED_METADATA: Final = ("source_version", "updated_at", "acl")
"""The keys of a passage's metadata that are also recorded on their own, in every capture mode."""


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

    filter: object = None
    """What the search was restricted by, where it differs from one request to the next."""

    index_version: str | Mapping[str, str] | None = None
    """Version of the index that was really searched, where the declared one may be another."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "candidates", tuple(self.candidates))


FULL: Final = Capture()
"""Everything is recorded, as it is."""


def passage_hash(text: str, metadata: Mapping[str, object] | None = None) -> str:
    """Return the content hash of a passage: 16 bytes of SHA-256, as 32 hexadecimal digits.

    It covers the text and the canonical JSON of the metadata, so a passage whose text stayed
    and whose permissions changed is another passage. Empty metadata counts as none.
    """
    described = plain(metadata)
    return _digest(FULL, clean_text(text), None if described == {} else described)


class RecordedPassage(NamedTuple):
    """A passage as it is recorded: valid Unicode, JSON types, and its hash.

    Worked out once a request; a tuple, because a frozen dataclass takes five times as long to
    make, and there is one for every passage of every request.
    """

    passage: Passage
    id: str
    document_id: str
    text: str
    """Redacted, and cut where it is longer than the limit."""

    metadata: Json
    """None where there is none, or nothing in it."""

    hash: str
    """Over the redacted text and metadata, whole; empty for a passage without content."""

    is_cut: bool
    """Whether the text or the metadata is not recorded whole."""

    score: float
    """NaN where there is none, or none that is finite."""

    tokens: int | None


def describe(
    passage: Passage, capture: Capture = FULL, tokens: int | None = None
) -> RecordedPassage:
    """Return what is recorded of a passage, whatever the host put into it."""
    text = passage.text
    if type(text) is not str or not text.isascii() or capture.redact is not None:
        text = "" if text is None else capture.whole(text)
    metadata = None if passage.metadata is None else capture.plain(passage.metadata)
    if metadata == {}:
        metadata = None
    if metadata is not None:
        digest = _digest(capture, text, metadata)
        shown_metadata = _cut(metadata, capture)
    else:
        digest = capture.digest(text.encode() + b"\0") if text else ""
        shown_metadata = None
    shown = capture.cut(text)
    return RecordedPassage(
        passage,
        "" if passage.id is None else clean_text(passage.id),
        "" if passage.document_id is None else clean_text(passage.document_id),
        shown,
        shown_metadata,
        digest,
        shown is not text or shown_metadata is not metadata,
        _score(passage.score),
        tokens,
    )


def identity(passages: Sequence[RecordedPassage], capture: Capture = FULL) -> str:
    """Return one hash for a list of passages: equal ids and contents in equal order, no more."""
    named = ",".join([f'[{quoted(passage.id)},"{passage.hash}"]' for passage in passages])
    return capture.digest(f"[{named}]".encode())


def _cut(metadata: Json, capture: Capture) -> Json:
    """Return the metadata within the limit: whole, else with its texts cut."""
    limit = capture.max_metadata_length
    if len(canonical_json(metadata)) <= limit:
        return metadata
    return plain(metadata, max_text=limit // 4, max_total=limit)


def _digest(capture: Capture, text: str, metadata: Json) -> str:
    canonical = "" if metadata is None else canonical_json(metadata)
    return capture.digest(text.encode() + b"\0" + canonical.encode())


def _score(value: object) -> float:
    """Return the score as a finite double, else NaN; numpy's numbers are numbers."""
    if value is None:
        return math.nan
    if type(value) is float and math.isfinite(value):
        return value
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
