"""Putting right the segments that a dead receiver left open.

Everything that was acknowledged had been synced, so only a tail that nobody was told about can be
torn. A record that does not decode is set aside, the others are sealed, and the receiver starts:
a broken file never needs a person to delete it first.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from pathlib import Path

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from retrospan_collector.spool import SpoolDirectory, seal, sync_folder

logger = logging.getLogger(__name__)

_INTACT = ".whole"
"""Ends the name of a copy without the torn bytes, until it takes the segment's place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """What a start found left open."""

    segments: int = 0
    """Segments sealed."""
    records: int = 0
    """Whole requests in them."""
    set_aside_bytes: int = 0
    """Bytes that were no whole request, now in the quarantine folder."""


def recover(spool: SpoolDirectory) -> Recovery:
    """Seal every open segment up to its whole records; only where no receiver is running."""
    for leftover in spool.open.glob(f"*{_INTACT}"):
        # A recovery was interrupted; the segment it was made from is still there.
        leftover.unlink()
    segments = records = set_aside = 0
    for path in sorted(spool.open.iterdir()):
        whole, torn = _sift(path.read_bytes())
        if torn:
            _write(spool.quarantine / f"{path.name}.torn", torn)
            logger.warning("%s: %d bytes are no whole request, set aside", path.name, len(torn))
            set_aside += len(torn)
        if not whole:
            path.unlink()
            continue
        if torn:
            intact = path.with_name(path.name + _INTACT)
            _write(intact, b"".join(whole))
            intact.replace(path)
        seal(spool, path)
        segments, records = segments + 1, records + len(whole)
    return Recovery(segments=segments, records=records, set_aside_bytes=set_aside)


def _sift(data: bytes) -> tuple[list[bytes], bytes]:
    """The records that decode, each with its length, and all other bytes."""
    whole: list[bytes] = []
    torn = bytearray()
    position = 0
    while position < len(data):
        end = _record_end(data, position)
        if end is None:
            torn += data[position:]
            break
        start, stop = end
        if _decodes(data[start:stop]):
            whole.append(data[position:stop])
        else:
            torn += data[position:stop]
        position = stop
    return whole, bytes(torn)


def _record_end(data: bytes, position: int) -> tuple[int, int] | None:
    """Where the record's payload starts and stops; None if the file ends before it does."""
    length = shift = 0
    while position < len(data) and shift < 35:
        byte = data[position]
        position += 1
        length |= (byte & 0x7F) << shift
        if byte < 0x80:
            stop = position + length
            return (position, stop) if stop <= len(data) else None
        shift += 7
    return None


def _decodes(payload: bytes) -> bool:
    # The receiver never spools an empty request; zeros are what a power cut leaves of a tail.
    if not payload:
        return False
    try:
        ExportTraceServiceRequest.FromString(payload)
    except DecodeError:
        return False
    return True


def _write(path: Path, data: bytes) -> None:
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    sync_folder(path.parent)
