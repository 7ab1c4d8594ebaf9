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

import os
import secrets
import time
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from retrospan_collector.folders import OTHER_FOLDER, kept_in

SegmentKind = Literal["traces", "logs"]
"""What the requests of a segment are: one kind a segment, because one insert has one schema."""

_COPIED_BYTES = 64 * 2**10


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
        with kept_in(path, "received traces", OTHER_FOLDER):
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


def framed_parts(payload: bytes) -> tuple[bytes, ...]:
    """One write for a small request; no copy of a large one, which can be 64 MiB."""
    if len(payload) < _COPIED_BYTES:
        return (frame(payload),)
    return (_length_prefix(len(payload)), payload)


class SegmentNames:
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
