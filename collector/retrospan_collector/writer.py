"""Move sealed spool segments into the store: each once, none lost, none in the way of others."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import orjson

from retrospan_collector.clickhouse.connection import Store
from retrospan_collector.clickhouse.otlp_insert import INSERTABLE_KINDS, SegmentInsert
from retrospan_collector.errors import StoreError, StoreUnreachable
from retrospan_collector.folders import reason
from retrospan_collector.spool import Segment, SpoolDirectory
from retrospan_collector.troubles import Troubles

logger = logging.getLogger(__name__)

KEEP_S = 600.0
"""A delivered segment is kept this long: the engine does not sync its inserts to the disk."""

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 300.0


@dataclass(slots=True)
class WriterRound:
    """What one round did."""

    inserted: int = 0
    failed: int = 0
    waiting: int = 0
    """Segments that are still to be inserted, the failed ones included."""


@dataclass(frozen=True, slots=True)
class _Pause:
    until: float
    length_s: float


class Writer:
    """Inserts what is sealed, oldest first.

    A segment that fails is tried again after a pause that doubles, while the others go on. After
    an unclean stop, of this process or of a served store, everything delivered in the last ten
    minutes is inserted again: what is stored already is recognised by its token. A segment whose
    insert this process did not survive comes after the others next time.
    """

    def __init__(
        self,
        store: Store,
        spool: SpoolDirectory,
        *,
        keep_s: float = KEEP_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._insert = SegmentInsert(store)
        self._spool = spool
        self._keep_s = keep_s
        self._clock = clock
        self._troubles = Troubles(spool.path)
        self._pauses: dict[str, _Pause] = {}
        self._store_pause: _Pause | None = None
        self._stopped_cleanly = spool.path / "stopped-cleanly"
        self._attempts = Attempts(spool.path / "attempts.json")
        for segment_id, count in self._attempts.unfinished.items():
            length_s = min(FIRST_PAUSE_S * 2**count, LONGEST_PAUSE_S)
            self._pauses[segment_id] = _Pause(clock() + length_s, length_s)
        if not self._ended_well():
            self.redeliver()
        self._stopped_cleanly.unlink(missing_ok=True)

    def round(self) -> WriterRound:
        """Insert every sealed segment that is not paused, and forget old delivered ones."""
        now = self._clock()
        report = WriterRound()
        for segment in self._sealed():
            report.waiting += 1
            if self._is_paused(segment, now):
                continue
            if self._deliver(segment, now):
                report.inserted += 1
                report.waiting -= 1
            else:
                report.failed += 1
        if report.waiting == 0:
            self._troubles.worked("inserts")
        self._forget(now)
        return report

    def redeliver(self) -> None:
        """Let every delivered segment that is still kept be inserted again."""
        kept = self._spool.delivered_segments()
        for segment in kept:
            segment.path.rename(self._spool.sealed / segment.path.name)
        if kept:
            logger.info("%d delivered segments are inserted again to be sure", len(kept))

    def close(self) -> None:
        """Note that what was delivered needs no second insert, unless the machine itself dies."""
        self._stopped_cleanly.write_text(_boot_id(), encoding="ascii")

    def _sealed(self) -> Iterable[Segment]:
        return [s for s in self._spool.sealed_segments() if s.kind in INSERTABLE_KINDS]

    def _is_paused(self, segment: Segment, now: float) -> bool:
        pauses = (self._store_pause, self._pauses.get(segment.id))
        return any(pause is not None and now < pause.until for pause in pauses)

    def _deliver(self, segment: Segment, now: float) -> bool:
        try:
            self._attempts.begin(segment.id)
            self._insert.insert(segment.kind, segment.id, segment.path.read_bytes())
        except StoreUnreachable as error:
            # The next segment would fail as well, so the store is given the pause.
            self._store_pause = _longer(self._store_pause, now)
            self._pausing("the store", self._store_pause, error)
            return False
        except (StoreError, OSError) as error:
            pause = self._pauses[segment.id] = _longer(self._pauses.get(segment.id), now)
            self._pausing(f"segment {segment.id}", pause, error)
            return False
        finally:
            self._attempts.end(segment.id)
        self._pauses.pop(segment.id, None)
        os.utime(segment.path, (now, now))
        segment.path.rename(self._spool.delivered / segment.path.name)
        if self._store_pause is not None:
            # It may have been away because it crashed, with inserts it had not synced.
            self._store_pause = None
            self.redeliver()
        return True

    def _pausing(self, what: str, pause: _Pause, error: StoreError | OSError) -> None:
        sentence = reason(error) if isinstance(error, OSError) else str(error)
        self._troubles.failed("inserts", sentence)
        logger.warning("%s is tried again in %.0f s: %s", what, pause.length_s, sentence)

    def _forget(self, now: float) -> None:
        for segment in self._spool.delivered_segments():
            with suppress(FileNotFoundError):
                if segment.path.stat().st_mtime + self._keep_s < now:
                    segment.path.unlink()

    def _ended_well(self) -> bool:
        try:
            return self._stopped_cleanly.read_text(encoding="ascii") == _boot_id()
        except OSError:
            return False


class Attempts:
    """The inserts that were begun and never came to an end, kept in a file.

    The file outlives a process that an insert has killed: that segment must not be the first
    thing its successor tries, again and again.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            stored = orjson.loads(path.read_bytes())
            self.unfinished: dict[str, int] = {str(k): int(v) for k, v in stored.items()}
            """Segment id to the number of its unfinished inserts."""
        except (OSError, ValueError, AttributeError):
            self.unfinished = {}

    def begin(self, segment_id: str) -> None:
        """An insert begins."""
        self.unfinished[segment_id] = min(self.unfinished.get(segment_id, 0) + 1, 20)
        self._path.write_bytes(orjson.dumps(self.unfinished))

    def end(self, segment_id: str) -> None:
        """It ended, well or not, and this process is still here."""
        self.unfinished.pop(segment_id, None)
        with suppress(OSError):  # a full disk: what stands there costs the segment a pause
            self._path.write_bytes(orjson.dumps(self.unfinished))


def _longer(pause: _Pause | None, now: float) -> _Pause:
    length_s = FIRST_PAUSE_S if pause is None else min(2 * pause.length_s, LONGEST_PAUSE_S)
    return _Pause(now + length_s, length_s)


def _boot_id() -> str:
    """Which start of the machine this is; empty where the system does not say."""
    with suppress(OSError):
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return ""
