"""Which passage texts have to be written: each once, and again before its retention ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from typing import Final

import orjson

from retrospan_collector.assembler.reading import stored_texts
from retrospan_collector.assembler.record import PassageContent
from retrospan_collector.clickhouse.connection import Store
from retrospan_collector.clickhouse.request_row import PassageTextRow

RETENTION: Final = timedelta(days=400)
"""How long `passage_texts` keeps a text that nobody retrieves."""

_REWRITE_AFTER: Final = RETENTION / 4
_MOST_KNOWN: Final = 200_000


class KnownTexts:
    """Remembers which texts are stored, so that a text in every request is not written with each.

    Args:
        store: asked about texts that were not met before.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last_seen: dict[bytes, date] = {}

    def missing(
        self, found: Iterable[Mapping[bytes, PassageContent]], today: date
    ) -> list[PassageTextRow]:
        """Those of the texts that are not stored, or were last seen long ago; each once."""
        contents: dict[bytes, PassageContent] = {}
        for texts in found:
            contents |= texts
        unknown = contents.keys() - self._last_seen.keys()
        if unknown:
            self._remember(stored_texts(self._store, unknown))
        return [
            _row(known_as, content, today)
            for known_as, content in contents.items()
            if self._is_stale(known_as, today)
        ]

    def written(self, rows: Iterable[PassageTextRow]) -> None:
        """Note texts that are stored from now on."""
        self._remember({row.hash: row.last_seen for row in rows})

    def _is_stale(self, known_as: bytes, today: date) -> bool:
        last_seen = self._last_seen.get(known_as)
        return last_seen is None or today - last_seen > _REWRITE_AFTER

    def _remember(self, seen: Mapping[bytes, date]) -> None:
        self._last_seen |= seen
        while len(self._last_seen) > _MOST_KNOWN:
            del self._last_seen[next(iter(self._last_seen))]


def _row(known_as: bytes, content: PassageContent, today: date) -> PassageTextRow:
    metadata = content.metadata
    return PassageTextRow(
        hash=known_as,
        text=content.text,
        metadata=orjson.dumps(metadata, option=orjson.OPT_SORT_KEYS).decode() if metadata else "",
        last_seen=today,
    )
