"""Keep every fault of recording away from the host: log it once, and go on."""

import contextlib
import logging
import os
import threading
from types import TracebackType
from typing import Final

logger: Final = logging.getLogger("retrospan")

_MAX_CAUSES: Final = 1000


class _Seen:
    """The causes logged in this process."""

    __slots__ = ("causes", "lock")

    def __init__(self) -> None:
        self.causes: set[str] = set()
        self.renew_lock()

    def renew_lock(self) -> None:
        """Forget a lock that a thread held which did not come along into a fork."""
        self.lock = threading.Lock()


_seen: Final = _Seen()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_seen.renew_lock)


def note_once(cause: str, message: str, level: int = logging.WARNING) -> None:
    """Log a message the first time its cause comes up in this process."""
    with _seen.lock:
        # The bound keeps a cause with a changing part from growing without end.
        if cause in _seen.causes or len(_seen.causes) >= _MAX_CAUSES:
            return
        _seen.causes.add(cause)
    with contextlib.suppress(Exception):  # a host's log filter may raise
        logger.log(level, "%s", message)


def note_fault(step: str, error: Exception) -> None:
    """Log a fault of recording, the first time this type of it comes up in this step."""
    name = type(error).__qualname__
    note_once(
        f"{step}: {name}",
        f"could not {step} ({name}); the request itself is not affected, and this is logged once",
    )
    with contextlib.suppress(Exception):
        logger.debug("could not %s", step, exc_info=error)


class guarded:  # lower case, it reads as a statement: `with guarded("close the span"):`
    """A block whose exceptions end with it; one log line for each step and type of exception.

    KeyboardInterrupt, SystemExit and their like are not faults of recording and pass through.
    What every request goes through says `except Exception` and `note_fault` instead: entering
    and leaving this block takes as long as much of what it would guard.
    """

    __slots__ = ("_step",)

    def __init__(self, step: str) -> None:
        self._step = step

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if error is None or not isinstance(error, Exception):
            return False
        note_fault(self._step, error)
        return True
