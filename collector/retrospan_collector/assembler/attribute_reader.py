"""Read typed values out of a span's attributes, which the store keeps as text.

A value that is there and cannot be read gives None and is marked; it is never guessed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any, Final

import orjson

from retrospan_collector.assembler.span import Span
from retrospan_collector.clickhouse.request_row import Completeness

LARGEST_COUNT: Final = 0xFFFFFFFE
"""The largest number a UInt32 column holds beside the sentinel."""

REDACTION_MARK: Final = "__REDACTED__"
"""What instrumentations of several makers send in place of a text they withhold."""


class AttributeReader:
    """Reads the attributes of one request's spans and remembers what it could not read."""

    __slots__ = ("completeness",)

    def __init__(self) -> None:
        self.completeness: int = 0
        """Bits of `Completeness` found so far."""

    def mark(self, flag: Completeness) -> None:
        """Note that something is wrong with the record."""
        self.completeness |= flag.value

    def text(self, span: Span, name: str) -> str:
        """The text of an attribute; empty when it is not there."""
        value = span.attributes.get(name, "")
        if value == REDACTION_MARK:
            self.mark(Completeness.REDACTED)
        return value

    def integer(self, span: Span, name: str, largest: int = LARGEST_COUNT) -> int | None:
        """The number of an attribute from 0 to the largest its column holds."""
        text = span.attributes.get(name)
        if text is None:
            return None
        try:
            number = int(text)
        except ValueError:
            number = -1
        if 0 <= number <= largest:
            return number
        self.mark(Completeness.UNREADABLE)
        return None

    def seconds_as_ns(self, span: Span, name: str) -> int | None:
        """A duration given in seconds, in nanoseconds."""
        text = span.attributes.get(name)
        if text is None:
            return None
        try:
            seconds = float(text)
        except ValueError:
            seconds = -1.0
        if 0 <= seconds < 1e9:
            return round(seconds * 1e9)
        self.mark(Completeness.UNREADABLE)
        return None

    def json(self, span: Span, name: str) -> Any:
        """The JSON value of an attribute; None when it is not there, unreadable or null."""
        text = span.attributes.get(name)
        if text is None:
            return None
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            return self._lenient(text)

    def array(self, span: Span, name: str) -> list[Any] | None:
        """The list of an attribute."""
        value = self.json(span, name)
        if value is None or isinstance(value, list):
            return value
        self.mark(Completeness.UNREADABLE)
        return None

    def texts(self, span: Span, name: str) -> tuple[str, ...] | None:
        """A list of texts."""
        value = self._array_of(span, name, str)
        return None if value is None else tuple(value)

    def integers(self, span: Span, name: str) -> tuple[int, ...] | None:
        """A list of whole numbers, negative ones allowed."""
        value = self._array_of(span, name, int)
        return None if value is None else tuple(value)

    def scores(self, span: Span, name: str) -> tuple[float, ...] | None:
        """A list of numbers, NaN where one is missing."""
        value = self.array(span, name)
        if value is None:
            return None
        try:
            if None in value:
                value = [math.nan if item is None else item for item in value]
            return tuple(map(float, value))
        except (TypeError, ValueError):
            self.mark(Completeness.UNREADABLE)
            return None

    def objects(self, span: Span, name: str) -> Sequence[dict[str, Any]] | None:
        """A list of JSON objects."""
        return self._array_of(span, name, dict)

    def _array_of(self, span: Span, name: str, kind: type) -> list[Any] | None:
        value = self.array(span, name)
        if not value or set(map(type, value)) == {kind}:
            return value
        self.mark(Completeness.UNREADABLE)
        return None

    def _lenient(self, text: str) -> Any:
        """Python's own parser reads what other writers put out: NaN, half a character."""
        try:
            return _whole_characters(json.loads(text))
        except (ValueError, RecursionError):
            self.mark(Completeness.UNREADABLE)
            return None


def _whole_characters(value: Any) -> Any:
    """The value with half characters, which no store takes, as U+FFFD."""
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, list):
        return [_whole_characters(item) for item in value]
    if isinstance(value, dict):
        return {_whole_characters(key): _whole_characters(item) for key, item in value.items()}
    return value
