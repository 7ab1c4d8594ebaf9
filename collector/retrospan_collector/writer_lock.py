"""The right to insert a spool's segments: one owner at a time."""

from __future__ import annotations

import fcntl
import logging
import os
import time
from contextlib import suppress
from types import TracebackType
from typing import Self

from retrospan_collector.clickhouse.ownership import is_alive
from retrospan_collector.errors import StoreInUse
from retrospan_collector.folders import OTHER_FOLDER, kept_in
from retrospan_collector.spool import SpoolDirectory

logger = logging.getLogger(__name__)

PATIENCE_S = 90.0
"""How long an orphaned owner may take to end; it drains for half of that at most."""


class WriterLock:
    """A lock that is waited for while its holder is an orphan.

    A receiver has its spool to itself. What its owner may find there is the owner of a receiver
    that was killed: it ends by itself once it has inserted what is sealed, and the new receiver
    goes on acknowledging meanwhile. An owner whose parent lives does not end, so it is not
    waited for.
    """

    def __init__(self, spool: SpoolDirectory, parent: int) -> None:
        """Prepare; nothing is taken yet.

        Args:
            parent: the process with which this owner ends.
        """
        self._path = spool.path / "writer.lock"
        self._parent = parent

    def __enter__(self) -> Self:
        with kept_in(self._path.parent, "received traces", OTHER_FOLDER):
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        self._deadline = time.monotonic() + PATIENCE_S
        self._said = False
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.close(self._descriptor)

    def taken(self) -> bool:
        """Take it if it is free; StoreInUse where waiting for the holder is in vain."""
        with suppress(BlockingIOError):
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with kept_in(self._path.parent, "received traces", OTHER_FOLDER):
                os.ftruncate(self._descriptor, 0)
                os.pwrite(self._descriptor, f"{os.getpid()} {self._parent}".encode(), 0)
            return True
        holder, _, parent = self._path.read_text(encoding="ascii").partition(" ")
        if not parent:
            # Between taking the lock and writing into it there is a moment without a name.
            return False
        if is_alive(int(parent)) or time.monotonic() > self._deadline:
            raise StoreInUse(
                f"the spool {self._path.parent} is in use by process {holder} (its owner): "
                "stop it, or wait for it"
            )
        if not self._said:
            logger.warning("waiting for process %s, the owner of a service that was killed", holder)
            self._said = True
        return False
