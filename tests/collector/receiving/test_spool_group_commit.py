"""Requests are acknowledged when they are durable, and many share the price of one sync."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol
from uuid import UUID

import pytest

from retrospan_collector.segment_writer import SegmentWriter, SpoolClosed
from retrospan_collector.spool import SpoolDirectory, frame, uuid7


class Eventually(Protocol):
    def __call__(self, condition: Callable[[], object], what: str) -> None: ...


def _contents(spool: SpoolDirectory) -> list[bytes]:
    return [segment.path.read_bytes() for segment in spool.sealed_segments()]


class _GatedSync:
    """A real sync that waits at a gate, so that a test decides who queues up behind it."""

    def __init__(self) -> None:
        self.calls = 0
        self.entered = threading.Event()
        self.gate = threading.Event()

    def __call__(self, descriptor: int) -> None:
        self.calls += 1
        self.entered.set()
        assert self.gate.wait(10)
        os.fsync(descriptor)


class _FailingSync:
    """A sync that fails once, at the given call."""

    def __init__(self, failing_call: int) -> None:
        self.calls = 0
        self._failing_call = failing_call

    def __call__(self, descriptor: int) -> None:
        self.calls += 1
        if self.calls == self._failing_call:
            raise OSError(errno.ENOSPC, "No space left on device")
        os.fsync(descriptor)


def test_an_appended_request_is_in_a_sealed_segment_after_closing(spool: SpoolDirectory) -> None:
    with SegmentWriter(spool) as writer:
        writer.append("traces", b"first")
        writer.append("traces", b"x" * 300)
    assert _contents(spool) == [b"\x05first" + b"\xac\x02" + b"x" * 300]
    assert not list(spool.open.iterdir())


def test_all_requests_that_wait_share_one_sync(spool: SpoolDirectory) -> None:
    sync = _GatedSync()
    with SegmentWriter(spool, sync=sync) as writer:
        first = writer.submit("traces", b"first")
        assert sync.entered.wait(10)
        waiting = [writer.submit("traces", bytes([number])) for number in range(200)]
        assert not first.done()
        sync.gate.set()
        for future in waiting:
            future.result(10)
        assert sync.calls == 2
    assert _contents(spool) == [frame(b"first") + b"".join(frame(bytes([n])) for n in range(200))]


def test_a_large_request_is_written_as_a_small_one_is(spool: SpoolDirectory) -> None:
    large = bytes(range(256)) * 4096
    with SegmentWriter(spool) as writer:
        writer.append("traces", large)
    assert _contents(spool) == [b"\x80\x80\x40" + large]


def test_a_segment_is_sealed_when_it_is_full(spool: SpoolDirectory) -> None:
    with SegmentWriter(spool, seal_bytes=1000, seal_after_s=3600) as writer:
        for _ in range(5):
            writer.append("traces", b"x" * 400)
        assert [len(content) for content in _contents(spool)] == [804, 804]


def test_a_request_larger_than_a_segment_is_a_segment_of_its_own(spool: SpoolDirectory) -> None:
    with SegmentWriter(spool, seal_bytes=1000, seal_after_s=3600) as writer:
        writer.append("traces", b"before")
        writer.append("traces", b"x" * 5000)
        writer.append("traces", b"after")
    assert [len(content) for content in _contents(spool)] == [7, 5002, 6]


def test_a_segment_is_sealed_when_it_is_old(spool: SpoolDirectory, eventually: Eventually) -> None:
    with SegmentWriter(spool, seal_after_s=0.05) as writer:
        writer.append("traces", b"alone")
        eventually(lambda: _contents(spool) == [frame(b"alone")], "the segment to be sealed")


def test_the_kinds_have_segments_of_their_own(spool: SpoolDirectory) -> None:
    with SegmentWriter(spool) as writer:
        writer.append("traces", b"span")
        writer.append("logs", b"record")
    assert sorted((s.kind, s.path.read_bytes()) for s in spool.sealed_segments()) == [
        ("logs", frame(b"record")),
        ("traces", frame(b"span")),
    ]


def test_a_failed_sync_fails_its_request_and_keeps_the_acknowledged_ones(
    spool: SpoolDirectory,
) -> None:
    with SegmentWriter(spool, sync=_FailingSync(failing_call=2)) as writer:
        writer.append("traces", b"acknowledged")
        with pytest.raises(OSError, match="No space left"):
            writer.append("traces", b"not stored")
        writer.append("traces", b"after there was room again")
    assert _contents(spool) == [frame(b"acknowledged"), frame(b"after there was room again")]
    assert not list(spool.open.iterdir())


def test_a_failed_first_sync_leaves_no_segment(spool: SpoolDirectory) -> None:
    with SegmentWriter(spool, sync=_FailingSync(failing_call=1)) as writer:
        with pytest.raises(OSError, match="No space left"):
            writer.append("traces", b"not stored")
    assert not spool.sealed_segments()
    assert not list(spool.open.iterdir())


def test_a_caller_that_gives_up_does_not_stop_the_writer(spool: SpoolDirectory) -> None:
    sync = _GatedSync()
    with SegmentWriter(spool, sync=sync) as writer:
        given_up = writer.submit("traces", b"given up")
        assert not given_up.cancel()
        sync.gate.set()
        writer.append("traces", b"next")
    assert _contents(spool) == [frame(b"given up") + frame(b"next")]


def test_a_closed_writer_takes_nothing(spool: SpoolDirectory) -> None:
    writer = SegmentWriter(spool)
    writer.close()
    assert not writer.alive
    with pytest.raises(SpoolClosed):
        writer.append("traces", b"late")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_damaged_writer_leaves_nobody_waiting(spool: SpoolDirectory) -> None:
    def broken(descriptor: int) -> None:
        raise ValueError("a defect, not a full disk")

    writer = SegmentWriter(spool, sync=broken)
    with pytest.raises(SpoolClosed):
        writer.append("traces", b"waiting")
    writer.close()


def test_segments_are_listed_in_the_order_they_were_opened(spool: SpoolDirectory) -> None:
    with SegmentWriter(spool, seal_bytes=1) as writer:
        for number in range(50):
            writer.append("traces", b"%d" % number)
    assert _contents(spool) == [frame(b"%d" % number) for number in range(50)]
    assert len({segment.id for segment in spool.sealed_segments()}) == 50


def test_every_segment_of_a_spool_ends_in_the_same_collector_id(tmp_path: Path) -> None:
    for _ in range(2):
        spool = SpoolDirectory(tmp_path / "spool")
        with SegmentWriter(spool) as writer:
            writer.append("traces", b"x")
    ids = {segment.id.rpartition("-")[2] for segment in spool.sealed_segments()}
    assert ids == {spool.collector_id()}


def test_the_spool_is_closed_to_other_users(spool: SpoolDirectory) -> None:
    with SegmentWriter(spool) as writer:
        writer.append("traces", b"private")
    assert (spool.sealed.stat().st_mode & 0o077) == 0
    assert (spool.sealed_segments()[0].path.stat().st_mode & 0o077) == 0


def test_segment_ids_are_the_standard_uuids_of_version_7() -> None:
    # The example of RFC 9562, appendix A.6.
    random = bytes.fromhex("0CC318C4DC0C0C07398F")
    assert uuid7(0x017F22E279B0, random) == UUID("017F22E2-79B0-7CC3-98C4-DC0C0C07398F")


_MEETS_A_FULL_DISK = """
import resource, sys
from pathlib import Path
from retrospan_collector.segment_writer import SegmentWriter
from retrospan_collector.spool import SpoolDirectory

resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
with SegmentWriter(SpoolDirectory(Path(sys.argv[1]))) as writer:
    writer.append("traces", b"a" * 6_000)
    for _ in range(2):
        try:
            writer.append("traces", b"b" * 80_000)
        except OSError as error:
            print(error.strerror)
    writer.append("traces", b"c" * 6_000)
"""


def test_a_request_of_which_only_a_part_could_be_written_leaves_no_trace(
    spool: SpoolDirectory,
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _MEETS_A_FULL_DISK, str(spool.path)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == "File too large\n" * 2
    assert _contents(spool) == [frame(b"a" * 6_000), frame(b"c" * 6_000)]
    assert not list(spool.open.iterdir())
