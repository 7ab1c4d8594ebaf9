"""Sharing a service: one command starts it, and it stays while any other still uses it."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from retrospan_collector.errors import StoreInUse
from retrospan_collector.folders import OTHER_FOLDER, kept_in

PATIENCE_S = 120.0
"""Longer than a service may take to start behind a killed one, or to store what is left."""

_POLL_S = 0.05
_USERS = "service-users.lock"
_START = "service-start.lock"


class ServiceShare:
    """A share in whatever service a store has: a temporary one does not end before it is let go."""

    def __init__(self, state: Path) -> None:
        """Take a share, after waiting for a service that is ending."""
        self._descriptor = _locked(
            state, _USERS, fcntl.LOCK_SH, "the service that ends there does not come to its end"
        )

    def release(self) -> None:
        """Let it go; twice is harmless."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


@contextmanager
def starting_alone(state: Path) -> Iterator[None]:
    """Only one process at a time looks for a service and starts one where there is none."""
    descriptor = _locked(
        state, _START, fcntl.LOCK_EX, "another command has been starting a service there"
    )
    try:
        yield
    finally:
        os.close(descriptor)


def users_left(state: Path) -> bool:
    """Whether anybody has a share. Where nobody has, nobody gets one until this process ends."""
    with kept_in(state, "the store's state", OTHER_FOLDER):
        descriptor = os.open(state / _USERS, os.O_RDWR | os.O_CREAT, 0o600)
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    os.close(descriptor)
    return True


def wait_for_users(state: Path) -> None:
    """Return when nobody has a share, and let nobody take one until this process ends."""
    while users_left(state):
        time.sleep(_POLL_S)


def _locked(state: Path, name: str, how: int, obstacle: str) -> int:
    with kept_in(state, "the store's state", OTHER_FOLDER):
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(state / name, os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + PATIENCE_S
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
            return descriptor
        if time.monotonic() > deadline:
            os.close(descriptor)
            raise StoreInUse(
                f"waited {PATIENCE_S:g} s for {state} and {obstacle}: "
                "ask `retrospan doctor` which process it is, and stop it"
            )
        time.sleep(_POLL_S)
