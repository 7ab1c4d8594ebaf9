"""Keeping the store's owner running: a child process, started again when it dies."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from retrospan_collector.child import ChildProcess
from retrospan_collector.clickhouse.ownership import OwnerNote, read_note
from retrospan_collector.errors import StoreError
from retrospan_collector.troubles import Troubles

logger = logging.getLogger(__name__)

DRAIN_S = 60.0
"""For the owner to insert what is sealed when it is asked to stop."""

_POLL_S = 0.05
_FIRST_PAUSE_S = 0.2
_LONGEST_PAUSE_S = 10.0
_STEADY_S = 60.0
"""An owner that ran this long was well: its next death starts from the shortest pause."""


class OwnerSupervisor:
    """Starts the owner, and starts it again after a pause whenever it ends by itself.

    One thread starts and watches the child for as long as the child runs, because a child that
    asks to die with its parent dies with the thread that started it.
    """

    def __init__(
        self,
        command: Callable[[int], Sequence[str]],
        store: str,
        state: Path,
        port: int,
        report: Callable[[OwnerNote | StoreError], None],
        troubles: Troubles,
    ) -> None:
        """Prepare.

        Args:
            command: The child's arguments, given the port of its ClickHouse interface.
            store: The URL of the store it is to own.
            state: The folder in which the owner says that it is ready.
            port: Loopback port of the ClickHouse interface; 0 picks a free one.
            report: Told once, of the first owner: what it says, or why there is none.
            troubles: Where it is written down that later ones do not stay.
        """
        self._command = command
        self._store = store
        self._state = state
        self._port = port
        self._report = report
        self._troubles = troubles
        self._reported = False
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="owner-supervisor", daemon=True)

    def start(self) -> None:
        """Start the first owner; return before it is ready."""
        self._thread.start()

    def stop(self) -> None:
        """Let the owner insert what is sealed, and end it."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        pause_s = _FIRST_PAUSE_S
        while not self._stopping.is_set():
            started_at = time.monotonic()
            reason = self._run_once()
            if self._stopping.is_set():
                return
            if not self._reported:
                self._report(StoreError(reason))
                return
            if time.monotonic() - started_at > _STEADY_S:
                pause_s = _FIRST_PAUSE_S
            self._troubles.failed("owner", reason)
            logger.warning("the store's owner is started again in %.1f s: %s", pause_s, reason)
            self._stopping.wait(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _run_once(self) -> str:
        """Start an owner and watch it to its end; why it ended."""
        child = ChildProcess(self._command(self._port), store=self._store)
        if not self._await_note(child) and not self._stopping.is_set():
            reason = child.failure()
            child.wait(0)
            return reason
        child.release()
        while child.process.poll() is None:
            if self._stopping.wait(_POLL_S):
                if not child.stop(DRAIN_S):
                    logger.error("the store's owner was killed: it did not end in %.0f s", DRAIN_S)
                return "the service is stopping"
        code = child.process.returncode
        child.wait(0)
        return f"process {child.pid} ended with code {code}"

    def _await_note(self, child: ChildProcess) -> bool:
        while child.process.poll() is None and not self._stopping.is_set():
            note = read_note(self._state)
            if note is not None and note.pid == child.pid:
                if not self._reported:
                    # Later owners take the same port, so that clients find them where they were.
                    self._port = _port_of(note) or self._port
                    self._reported = True
                    self._report(note)
                self._troubles.worked("owner")
                return True
            self._stopping.wait(_POLL_S)
        return False


def _port_of(note: OwnerNote) -> int | None:
    port = note.clickhouse.rpartition(":")[2]
    return int(port) if note.token and port.isdigit() else None
