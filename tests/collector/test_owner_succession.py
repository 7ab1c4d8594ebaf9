"""An owner whose receiver was killed, and the one that comes after it."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from retrospan_collector.clickhouse.ownership import is_alive, read_note
from retrospan_collector.spool import SpoolDirectory
from tests.collector.conftest import Eventually


class StartOwner:
    """Starts owners of one embedded store; those that are left at the end are killed."""

    def __init__(self, data: Path, stack: ExitStack) -> None:
        self.data = data
        self._stack = stack

    def __call__(self, *more: str) -> subprocess.Popen[str]:
        owner = subprocess.Popen(
            [
                *(sys.executable, "-m", "retrospan_collector", "owner"),
                *("--store", f"embedded:{self.data}", "--spool", str(self.data / "spool")),
                *more,
            ],
            stderr=subprocess.PIPE,
            text=True,
        )
        self._stack.callback(owner.communicate)
        self._stack.callback(owner.kill)
        return owner

    def is_ready(self, owner: subprocess.Popen[str]) -> bool:
        note = read_note(self.data)
        return note is not None and note.pid == owner.pid


def ended_process() -> int:
    """The id of a process that was there and is not any more."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait(30)
    return process.pid


@pytest.fixture
def start_owner(tmp_path: Path) -> Iterator[StartOwner]:
    """Owners that end with the test."""
    with ExitStack() as stack:
        yield StartOwner(tmp_path / "data", stack)


def test_an_owner_whose_receiver_died_before_it_could_look_ends_by_itself(
    start_owner: StartOwner,
) -> None:
    # As it is when the receiver is killed while its owner is still importing: by the time the
    # owner asks for its parent, that is whoever takes in orphans.
    orphan = start_owner("--parent", str(ended_process()))
    assert orphan.wait(60) == 0


def test_an_owner_waits_while_its_predecessor_is_still_ending(
    start_owner: StartOwner, eventually: Eventually
) -> None:
    spool = SpoolDirectory(start_owner.data / "spool")
    descriptor = os.open(spool.path / "writer.lock", os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    os.write(descriptor, f"{os.getpid()} {ended_process()}".encode())
    owner = start_owner()
    assert owner.stderr is not None
    # What it says is the condition waited for: it has come to the lock.
    assert f"waiting for process {os.getpid()}" in owner.stderr.readline()
    assert is_alive(owner.pid) and not start_owner.is_ready(owner)
    os.close(descriptor)
    eventually(lambda: start_owner.is_ready(owner), "the owner to go on")


def test_an_owner_that_waits_can_be_stopped(start_owner: StartOwner) -> None:
    spool = SpoolDirectory(start_owner.data / "spool")
    with (spool.path / "writer.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        print(os.getpid(), ended_process(), end="", file=held, flush=True)
        owner = start_owner()
        assert owner.stderr is not None
        assert "waiting for process" in owner.stderr.readline()
        owner.send_signal(signal.SIGTERM)
        assert owner.wait(30) == 0
    assert read_note(start_owner.data) is None
