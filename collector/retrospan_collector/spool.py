"""The spool: what the receiver has acknowledged and the owner has not yet inserted.

A segment is a file of length-delimited export requests, exactly the bytes ClickHouse decodes with
`FORMAT Protobuf`, so nothing is decoded or copied between the acknowledgement and the insert. It
moves by rename through the folders of one spool directory:

    open/         being written by the living receiver (or left behind by a dead one)
    sealed/       complete and synced, waiting to be inserted
    delivered/    inserted; kept for a while, because the engine does not sync its inserts
    quarantine/   bytes that could not be read back, kept for a person to look at
"""

from __future__ import annotations

import logging
import os
import secrets
import threading
import time
import uuid
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, get_args

logger = logging.getLogger(__name__)

SegmentKind = Literal["traces", "logs"]
"""What the requests of a segment are: one kind a segment, because one insert has one schema."""

SEAL_BYTES = 16 * 2**20
"""A segment is sealed at this size; an insert needs about 13 times its segment's size."""

SEAL_AFTER_S = 1.0
"""A segment is sealed at this age, so that parts grow with seconds and not with requests."""

_COPIED_BYTES = 64 * 2**10


class SpoolClosed(RuntimeError):
    """The segment writer has stopped; the request was not taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One segment that no receiver writes to any more."""

    id: str
    """UUIDv7 and the collector's id: sorts by age, is never reused, and is the insert's token."""
    kind: SegmentKind
    path: Path


class SpoolDirectory:
    """The folders of one spool, created where missing, readable by their owner alone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.open = path / "open"
        self.sealed = path / "sealed"
        self.delivered = path / "delivered"
        self.quarantine = path / "quarantine"
        for folder in (self.open, self.sealed, self.delivered, self.quarantine):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def sealed_segments(self) -> list[Segment]:
        """The segments waiting to be inserted, oldest first."""
        return _segments(self.sealed)

    def delivered_segments(self) -> list[Segment]:
        """The inserted segments that are still kept, oldest first."""
        return _segments(self.delivered)

    def collector_id(self) -> str:
        """The id this spool puts into its segments' names; drawn once and kept in the spool."""
        path = self.path / "collector-id"
        try:
            with path.open("x", encoding="ascii") as file:
                file.write(secrets.token_hex(4))
        except FileExistsError:
            pass
        return path.read_text(encoding="ascii").strip()


def frame(payload: bytes) -> bytes:
    """The payload behind its length, as it stands in a segment."""
    return _length_prefix(len(payload)) + payload


def _length_prefix(length: int) -> bytes:
    """The length as a protobuf varint."""
    prefix = bytearray()
    while length > 0x7F:
        prefix.append(length & 0x7F | 0x80)
        length >>= 7
    prefix.append(length)
    return bytes(prefix)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable; a rename is not before this."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def seal(spool: SpoolDirectory, path: Path) -> Path:
    """Move a complete, synced file from the open folder to the sealed one, durably."""
    target = spool.sealed / path.name
    path.rename(target)
    sync_folder(spool.sealed)
    sync_folder(spool.open)
    return target


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
        self._names = _SegmentNames(spool.collector_id())
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
            for part in _parts(waiting.payload):
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


def _parts(payload: bytes) -> tuple[bytes, ...]:
    """One write for a small request; no copy of a large one, which can be 64 MiB."""
    if len(payload) < _COPIED_BYTES:
        return (frame(payload),)
    return (_length_prefix(len(payload)), payload)


class _SegmentNames:
    """Segment ids that sort in the order in which they were drawn."""

    def __init__(self, collector_id: str) -> None:
        self._collector_id = collector_id
        self._last_ms = 0

    def next(self) -> str:
        self._last_ms = max(time.time_ns() // 1_000_000, self._last_ms + 1)
        return f"{uuid7(self._last_ms, secrets.token_bytes(10))}-{self._collector_id}"


def uuid7(unix_ms: int, random: bytes) -> uuid.UUID:
    """A UUID of version 7 (RFC 9562) from a time and ten random bytes."""
    value = unix_ms << 80 | int.from_bytes(random, "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return uuid.UUID(int=value)


def _segments(folder: Path) -> list[Segment]:
    kinds = {f".{kind}": kind for kind in get_args(SegmentKind)}
    return [
        Segment(id=path.stem, kind=kinds[path.suffix], path=path)
        for path in sorted(folder.iterdir())
        if path.suffix in kinds
    ]
