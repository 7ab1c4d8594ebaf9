"""Put the items of a stream together again: the answer a reader saw, piece by piece."""

import codecs
from collections.abc import Mapping, Sequence
from typing import Final

from retrospan._guard import guarded

MAX_CHARACTERS: Final = 1_000_000
MAX_ITEMS: Final = 100_000
"""Beyond these the beginning of a stream and its last item are kept: it may never end."""

_TEXT_NAMES: Final = ("answer", "content", "text", "delta")


class Chunks:
    """The items of one stream, and the text in them."""

    __slots__ = ("_characters", "_decoder", "_last", "_only_text", "_texts", "items")

    def __init__(self) -> None:
        self.items: list[object] = []
        self._last: object = None
        self._texts: list[str] = []
        self._characters = 0
        self._only_text = True
        # A character of several bytes may be spread over two items.
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, item: object) -> None:
        """Take one item."""
        self._last = item
        if self._characters > MAX_CHARACTERS or len(self.items) >= MAX_ITEMS:
            return
        self.items.append(item)
        self._only_text = self._only_text and isinstance(item, str | bytes)
        with guarded("read the text of a stream's item"):
            text = self._decoder.decode(item) if isinstance(item, bytes) else text_of(item)
            if text:
                self._texts.append(text)
                self._characters += len(text)

    @property
    def text(self) -> str | None:
        """The text of all items; None when there is none in them."""
        return "".join(self._texts) if self._texts or self._only_text else None

    @property
    def output(self) -> object:
        """The whole text where the items are texts, else the list of the items."""
        return self.text if self._only_text else self.items

    def telling(self) -> Sequence[object]:
        """The items in which a provider tells about the response: the first and the last ones."""
        if self._only_text:
            return ()
        told = self.items if len(self.items) <= 6 else [*self.items[:2], *self.items[-4:]]
        return told if not told or told[-1] is self._last else [*told, self._last]


def text_of(item: object) -> str | None:
    """Return the text in one item: of a provider's chunk or event, a message, a mapping."""
    if isinstance(item, str):
        return item
    choices = _field(item, "choices")
    if isinstance(choices, Sequence) and choices and not isinstance(choices, str):
        first = choices[0]
        return _text(_field(_field(first, "delta"), "content")) or _text(_field(first, "text"))
    for name in _TEXT_NAMES:
        found = _field(item, name)
        if isinstance(found, str):
            return found
    return _text(_field(_field(item, "delta"), "text"))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _field(item: object, name: str) -> object:
    if isinstance(item, Mapping):
        return item.get(name)
    return None if item is None else getattr(item, name, None)
