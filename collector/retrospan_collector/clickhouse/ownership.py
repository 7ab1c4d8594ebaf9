"""Who owns an embedded store: one lock, and a note that says where the owner answers.

The engine itself refuses a second opener with a message nobody can act on, and only after it
was loaded; the lock says in a millisecond which process is in the way.
"""

from __future__ import annotations

import fcntl
import os
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import orjson

from retrospan_collector.errors import StoreInUse
from retrospan_collector.folders import OTHER_FOLDER, kept_in

Role = Literal["owner", "command"]

JUST_STARTING = 0
"""Stands for the id of a process that holds the lock and has not yet said who it is."""


@dataclass(frozen=True, slots=True)
class OwnerNote:
    """What `owner.json` says: the process that writes to the store and how to reach it."""

    pid: int
    store: str
    """The store's URL, redacted."""
    clickhouse: str
    """`host:port` of the owner's HTTP face, or the redacted URL of a served store."""
    token: str
    """The password of the face; empty for a served store."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that holds a directory's lock."""

    pid: int
    role: Role
    command: str

    def __str__(self) -> str:
        return f"process {self.pid} ({self.command})"


def note_path(state_directory: Path) -> Path:
    """Where the owner's note stands."""
    return state_directory / "owner.json"


def write_note(state_directory: Path, note: OwnerNote) -> None:
    """Publish the note in one step, readable by this user only: it holds the token."""
    path = note_path(state_directory)
    draft = path.with_suffix(f".{note.pid}.tmp")
    with kept_in(state_directory, "the store's state", OTHER_FOLDER):
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(descriptor, "wb") as file:
            file.write(orjson.dumps(asdict(note)))
        os.replace(draft, path)


def read_note(state_directory: Path) -> OwnerNote | None:
    """The note of an owner whose process is alive; None when there is none."""
    note = last_note(state_directory)
    return note if note is not None and is_alive(note.pid) else None


def last_note(state_directory: Path) -> OwnerNote | None:
    """The note that stands there, be its owner alive or killed; None after a clean stop."""
    try:
        return OwnerNote(**orjson.loads(note_path(state_directory).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def remove_note(state_directory: Path) -> None:
    """Take the note back, if it is this process's own."""
    note = read_note(state_directory)
    if note is not None and note.pid == os.getpid():
        note_path(state_directory).unlink(missing_ok=True)


def is_alive(pid: int) -> bool:
    """Whether a process of that number runs (a zombie does not)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return _answers_signals(pid) if not Path("/proc/self").exists() else False
    return state not in ("Z", "X")


def _answers_signals(pid: int) -> bool:
    """The same without /proc."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


class DirectoryLock:
    """The exclusive right to load the engine on one directory, held until `release`."""

    def __init__(self, directory: Path, role: Role) -> None:
        """Take the lock; StoreInUse names the process that holds it instead."""
        self._directory = directory
        path = _lock_path(directory)
        with kept_in(directory, "the store", OTHER_FOLDER):
            directory.mkdir(parents=True, exist_ok=True)
            # Not inherited by children (PEP 446), so the lock ends with this process.
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        if not _lock(self._descriptor):
            os.close(self._descriptor)
            raise StoreInUse(_in_use(directory))
        holder = Holder(os.getpid(), role, _own_command())
        with kept_in(directory, "the store", OTHER_FOLDER):
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, orjson.dumps(asdict(holder)), 0)

    def release(self) -> None:
        """Give the directory free."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _lock(descriptor: int) -> bool:
    """Take the lock; patient for a moment, because `holder_of` holds it while it looks."""
    for attempt in range(5):
        if attempt:
            time.sleep(0.02)
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    return False


def holder_of(directory: Path) -> Holder | None:
    """The process that holds a directory now; None when it is free."""
    try:
        descriptor = os.open(_lock_path(directory), os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _named_in(directory)
    finally:
        os.close(descriptor)
    return None


def _named_in(directory: Path) -> Holder:
    with suppress(OSError, ValueError, TypeError):
        return Holder(**orjson.loads(_lock_path(directory).read_bytes()))
    # Between taking the lock and writing into it there is a moment without a name.
    return Holder(JUST_STARTING, "command", "just starting")


def _lock_path(directory: Path) -> Path:
    return directory / "owner.lock"


def _in_use(directory: Path) -> str:
    return (
        f"the store embedded:{directory} is in use by {_named_in(directory)}: "
        "wait for it or stop it, or name another store with --store"
    )


def _own_command() -> str:
    return " ".join([Path(sys.argv[0]).name or "python", *sys.argv[1:3]])
