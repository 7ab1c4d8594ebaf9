"""Which passage texts have to be written: each once, and again before its retention ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import date, timedelta
from typing import Final

import orjson

from retrospan_collector.assembler.reading import stored_texts
from retrospan_collector.assembler.record import PassageList
from retrospan_collector.clickhouse.connection import Store
from retrospan_collector.clickhouse.request_row import NO_HASH, PassageTextRow

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

    def missing(self, lists: Sequence[PassageList], today: date) -> list[PassageTextRow]:
        """Those of the texts that are not stored, or were last seen long ago; each once."""
        met = {known_as for passages in lists for known_as in passages.hash} - {NO_HASH}
        unknown = met - self._last_seen.keys()
        if unknown:
            self._remember(stored_texts(self._store, unknown))
        stale = {known_as for known_as in met if self._is_stale(known_as, today)}
        rows: dict[bytes, PassageTextRow] = {}
        for passages in lists:
            if not stale.isdisjoint(passages.hash):
                rows |= _rows(passages, stale, today)
        return list(rows.values())

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


def _rows(passages: PassageList, stale: Set[bytes], today: date) -> dict[bytes, PassageTextRow]:
    columns = zip(passages.hash, passages.text, passages.metadata, strict=True)
    return {
        known_as: PassageTextRow(
            hash=known_as,
            text=text,
            metadata=_json(metadata) if metadata else "",
            last_seen=today,
        )
        for known_as, text, metadata in columns
        if text is not None and known_as in stale
    }


def _json(metadata: Mapping[str, object]) -> str:
    return orjson.dumps(metadata, option=orjson.OPT_SORT_KEYS).decode()
