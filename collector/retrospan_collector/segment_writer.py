"""Writing the spool: an append returns when the request is on the disk."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from retrospan_collector.spool import (
    SegmentKind,
    SegmentNames,
    SpoolDirectory,
    framed_parts,
    seal,
    sync_folder,
)

logger = logging.getLogger(__name__)

SEAL_BYTES = 16 * 2**20
"""A segment is sealed at this size; an insert needs about 13 times its segment's size."""

SEAL_AFTER_S = 1.0
"""A segment is sealed at this age, so that parts grow with seconds and not with requests."""


class SpoolClosed(RuntimeError):
    """The segment writer has stopped; the request was not taken."""


class SegmentWriter:
    """Appends requests to segments; many requests that wait together share one sync.

    One thread owns the files. While it syncs, new requests queue up behind it, and the next round
    writes and syncs all of them at once, so a slow disk makes groups larger and not a queue longer.
    """

    def __init__(
        self,
        spool: SpoolDirectory,
        *,
        seal_bytes: int = SEAL_BYTES,
        seal_after_s: float = SEAL_AFTER_S,
        sync: Callable[[int], None] = os.fsync,
    ) -> None:
        self._spool = spool
        self._names = SegmentNames(spool.collector_id())
        self._seal_bytes = seal_bytes
        self._seal_after_s = seal_after_s
        self._sync = sync
        self._segments: dict[SegmentKind, _OpenSegment] = {}
        self._waiting: list[_Waiting] = []
        self._closing = False
        self._wake = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="spool", daemon=True)
        self._thread.start()

    def append(self, kind: SegmentKind, payload: bytes) -> None:
        """Return when the request is on the disk; an OSError says that it is not."""
        self.submit(kind, payload).result()

    def submit(self, kind: SegmentKind, payload: bytes) -> Future[None]:
        """A future that is done when the request is on the disk."""
        waiting = _Waiting(kind, payload)
        # Past this point it will be written whatever happens to the caller, so no cancelling.
        waiting.done.set_running_or_notify_cancel()
        with self._wake:
            if self._closing:
                raise SpoolClosed("the spool is closed: the receiver is stopping")
            self._waiting.append(waiting)
            self._wake.notify()
        return waiting.done

    @property
    def alive(self) -> bool:
        """Whether requests are still taken."""
        return self._thread.is_alive() and not self._closing

    def close(self) -> None:
        """Write what waits, seal every open segment and stop."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _run(self) -> None:
        batch: list[_Waiting] = []
        try:
            while batch or not self._closing:
                with self._wake:
                    self._wake.wait_for(
                        lambda: self._waiting or self._closing, timeout=self._until_next_seal_s()
                    )
                    batch, self._waiting = self._waiting, []
                self._commit(batch)
                self._seal(self._due())
            self._seal(list(self._segments))
        finally:
            # Whatever ended this thread, nobody may wait for it for ever.
            with self._wake:
                self._closing = True
                batch += self._waiting
            for waiting in batch:
                if not waiting.done.done():
                    waiting.done.set_exception(SpoolClosed("the spool's writer has stopped"))

    def _commit(self, batch: list[_Waiting]) -> None:
        for waiting in batch:
            current = self._segments.get(waiting.kind)
            if current is not None and current.refuses(len(waiting.payload), self._seal_bytes):
                self._seal([waiting.kind])
            segment = self._segments.get(waiting.kind) or self._open(waiting)
            if segment is not None:
                segment.add(waiting)
                if segment.size >= self._seal_bytes:
                    self._seal([waiting.kind])
        for segment in self._segments.values():
            segment.commit()
        self._segments = {k: s for k, s in self._segments.items() if not s.finished}

    def _open(self, waiting: _Waiting) -> _OpenSegment | None:
        path = self._spool.open / f"{self._names.next()}.{waiting.kind}"
        try:
            segment = _OpenSegment(self._spool, path, self._sync)
        except OSError as error:
            waiting.done.set_exception(error)
            return None
        self._segments[waiting.kind] = segment
        return segment

    def _seal(self, kinds: list[SegmentKind]) -> None:
        for kind in kinds:
            self._segments.pop(kind).seal()

    def _due(self) -> list[SegmentKind]:
        now = time.monotonic()
        return [k for k, s in self._segments.items() if s.opened_at + self._seal_after_s <= now]

    def _until_next_seal_s(self) -> float | None:
        if not self._segments:
            return None
        oldest = min(segment.opened_at for segment in self._segments.values())
        return max(0.0, oldest + self._seal_after_s - time.monotonic())


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A request that has not been answered yet."""

    kind: SegmentKind
    payload: bytes
    done: Future[None] = field(default_factory=Future)


class _OpenSegment:
    """The file being written. A failed write or sync fails its requests and ends the segment.

    After a failed sync the kernel may have dropped the dirty pages, so the file is cut back to
    what earlier syncs made durable, and that part is sealed: those requests were acknowledged.
    """

    def __init__(self, spool: SpoolDirectory, path: Path, sync: Callable[[int], None]) -> None:
        self._spool = spool
        self._path = path
        self._sync = sync
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._unsynced: list[_Waiting] = []
        self._durable = 0
        self.size = 0
        self.finished = False
        self.opened_at = time.monotonic()

    def refuses(self, payload_bytes: int, seal_bytes: int) -> bool:
        """Whether a request of this size has to go to another segment."""
        return self.finished or self.size + payload_bytes > seal_bytes

    def add(self, waiting: _Waiting) -> None:
        """Write the request behind its length; the request is answered by the next commit."""
        self._unsynced.append(waiting)
        try:
            for part in framed_parts(waiting.payload):
                rest = memoryview(part)
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]
                self.size += len(part)
        except OSError as error:
            self._abandon(error)

    def commit(self) -> None:
        """One sync for everything added since the last one; then the requests are answered."""
        if self.finished or not self._unsynced:
            return
        try:
            self._sync(self._descriptor)
            if not self._durable:
                sync_folder(self._spool.open)
        except OSError as error:
            self._abandon(error)
            return
        self._durable = self.size
        for waiting in self._unsynced:
            waiting.done.set_result(None)
        self._unsynced = []

    def seal(self) -> None:
        """Commit and hand the segment over."""
        self.commit()
        if not self.finished:
            self._finish()

    def _abandon(self, error: OSError) -> None:
        for waiting in self._unsynced:
            waiting.done.set_exception(error)
        self._unsynced = []
        # Best effort: what cannot be cut or moved now stays in the open folder for recovery.
        with suppress(OSError):
            os.ftruncate(self._descriptor, self._durable)
            os.fsync(self._descriptor)
        self._finish()

    def _finish(self) -> None:
        self.finished = True
        with suppress(OSError):
            os.close(self._descriptor)
        try:
            if self._durable:
                seal(self._spool, self._path)
            else:
                self._path.unlink()
        except OSError as error:
            logger.error("%s stays unsealed until the receiver starts again: %s", self._path, error)
