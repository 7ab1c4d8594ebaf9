"""Turn whatever a host hands us into text and JSON that survive the wire.

Everything here is total: any Python value gives a result, because a value that cannot be
written must cost its own place in the record and nothing else.
"""

import dataclasses
import json
import math
import sys
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Set
from enum import Enum
from typing import Final

LEFT_OUT: Final = "<left out: "
"""Begins every mark for a part of a value that is not written."""

MAX_DEPTH: Final = 32
"""Containers nested deeper than this are replaced by a mark."""

MAX_NODES: Final = 50_000
"""A value with more parts than this has the rest replaced by a mark: the host must not wait."""

_LONGEST_CHARACTER: Final = 32
_JOINER: Final = "\u200d"
"""Joins emoji into one: what stands on either side of it belongs together."""

Json = dict[str, object] | list[object] | str | int | float | bool | None
"""What `json.dumps` writes without asking: string keys, finite numbers, valid Unicode."""


def clean_text(value: object) -> str:
    """Return valid Unicode for any value: half a character becomes U+FFFD, bytes are decoded.

    A lone surrogate cannot be written as UTF-8; in a span's name or status it would cost the
    exporter the whole batch. A surrogate *pair* is the character it stands for.
    """
    if type(value) is str and value.isascii():  # nearly every text there is
        return value
    try:
        if isinstance(value, bytes | bytearray | memoryview):
            return bytes(value).decode("utf-8", "replace")
        text = str.__str__(value) if isinstance(value, str) else str.__str__(str(value))
    except Exception:  # a host's __str__ may raise anything
        return f"<unprintable {type(value).__name__}>"
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def cut_text(text: str, length: int) -> str:
    """Return the beginning of a text with a mark that tells how much more there was.

    What a reader sees as one character (a letter with its accents, a joined emoji) is not cut.
    """
    end = length
    while end > max(0, length - _LONGEST_CHARACTER) and _belongs_together(text, end):
        end -= 1
    return f"{text[:end]}{LEFT_OUT}{len(text) - end} more characters>"


def _belongs_together(text: str, end: int) -> bool:
    after = text[end]
    return (
        after == _JOINER
        or text[end - 1] == _JOINER
        or unicodedata.combining(after) != 0
        or unicodedata.category(after) in ("Mn", "Me", "Mc", "Sk")
    )


def plain(
    value: object,
    redact: Callable[[str], str] | None = None,
    max_text: int = sys.maxsize,
    max_total: int = sys.maxsize,
) -> Json:
    """Return the value as JSON types: string keys, finite numbers, everything else as text.

    Args:
        redact: gives what may be written of a text; numbers are shown to it as texts.
        max_text: characters of each text.
        max_total: characters of all texts together.
    """
    return _Plainer(redact, max_text, max_total).convert(value, 0)


def to_json(value: object) -> str:
    """Return the value as JSON text that keeps non-Latin scripts readable."""
    return to_text(plain(value))


to_text: Final = json.JSONEncoder(ensure_ascii=False).encode
"""Returns the JSON text of a `plain` value."""

_quoted_ascii: Final = json.encoder.encode_basestring_ascii
_quoted_any: Final = json.encoder.encode_basestring


def quoted(text: str) -> str:
    """Return the JSON text of a clean text, at half of an encoder's cost."""
    return _quoted_ascii(text) if text.isascii() else _quoted_any(text)


_canonical: Final = json.JSONEncoder(
    ensure_ascii=False, sort_keys=True, separators=(",", ":")
).encode


def canonical_json(value: Json) -> str:
    """Return the one JSON text of a `plain` value: sorted keys, no spaces.

    It is stable through a round trip: parsing the text and asking again gives the same text.
    """
    return _canonical(value)


class _Plainer:
    """One conversion: it remembers the containers it is inside of and how much it has written."""

    __slots__ = ("_characters_left", "_left", "_max_text", "_path", "_redact")

    def __init__(self, redact: Callable[[str], str] | None, max_text: int, max_total: int) -> None:
        self._left = MAX_NODES
        self._path: set[int] = set()
        self._redact = redact
        self._max_text = max_text
        self._characters_left = max_total

    def convert(self, value: object, depth: int) -> Json:
        self._left -= 1
        if self._left < 0:
            return f"{LEFT_OUT}too many parts>"
        try:
            scalar = _scalar(value)
            if scalar is _NOT_A_SCALAR:
                return self._container(value, depth)
        except Exception:  # a host's object may raise from any of its methods
            return f"<unreadable {type(value).__name__}>"
        if isinstance(scalar, str):
            return self._text(scalar)
        if self._redact is None or scalar is None or isinstance(scalar, bool):
            return scalar  # type: ignore[return-value]  # the sentinel is excluded above
        shown = str(scalar)
        redacted = self._redact(shown)
        return scalar if redacted == shown else redacted  # type: ignore[return-value]  # as above

    def _text(self, text: str) -> str:
        if self._redact is not None:
            text = self._redact(text)
        length = min(self._max_text, self._characters_left)
        if len(text) > length:
            text = cut_text(text, length)
        self._characters_left = max(0, self._characters_left - len(text))
        return text

    def _container(self, value: object, depth: int) -> Json:
        if depth >= MAX_DEPTH:
            return f"{LEFT_OUT}nested too deep>"
        if id(value) in self._path:
            return f"{LEFT_OUT}contains itself>"
        self._path.add(id(value))
        try:
            return self._open(value, depth + 1)
        finally:
            self._path.discard(id(value))

    def _open(self, value: object, depth: int) -> Json:
        if isinstance(value, Mapping):
            return {
                self._text(clean_text(key)): self.convert(item, depth)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return self._list(value, depth)
        if isinstance(value, Set):
            # A set has no order of its own, and Python's differs from one process to the next.
            return sorted(self._list(value, depth), key=lambda item: json.dumps(item))
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            names = [field.name for field in dataclasses.fields(value)]
            return {name: self.convert(getattr(value, name), depth) for name in names}
        for method in ("tolist", "model_dump"):  # numpy scalars and arrays; pydantic models
            unfold = getattr(value, method, None)
            if callable(unfold):
                return self.convert(unfold(), depth)
        return self._text(clean_text(value))

    def _list(self, items: Iterable[object], depth: int) -> list[object]:
        return [self.convert(item, depth) for item in items]


_NOT_A_SCALAR: Final = object()


def _scalar(value: object) -> object:
    """Return a JSON scalar for what is one, else `_NOT_A_SCALAR`."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):
        return _scalar(value.value)
    if isinstance(value, str | bytes | bytearray):
        return clean_text(value)
    if isinstance(value, int):
        # Beyond 4300 digits Python refuses to print an integer, and so would json.dumps.
        return int(value) if value.bit_length() <= 4096 else clean_text(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return _NOT_A_SCALAR
