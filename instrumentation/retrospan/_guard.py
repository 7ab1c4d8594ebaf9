"""Keep every fault of recording away from the host: log it once, and go on."""

import contextlib
import logging
import threading
from types import TracebackType
from typing import Final

logger: Final = logging.getLogger("retrospan")

_MAX_CAUSES: Final = 1000
_seen: Final[set[str]] = set()
_lock: Final = threading.Lock()


def note_once(cause: str, message: str, level: int = logging.WARNING) -> None:
    """Log a message the first time its cause comes up in this process."""
    with _lock:
        # The bound keeps a cause with a changing part from growing without end.
        if cause in _seen or len(_seen) >= _MAX_CAUSES:
            return
        _seen.add(cause)
    with contextlib.suppress(Exception):  # a host's log filter may raise
        logger.log(level, "%s", message)


class guarded:  # lower case, it reads as a statement: `with guarded("close the span"):`
    """A block whose exceptions end with it; one log line for each step and type of exception.

    KeyboardInterrupt, SystemExit and their like are not faults of recording and pass through.
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
        name = type(error).__qualname__
        note_once(
            f"{self._step}: {name}",
            f"could not {self._step} ({name}); the request itself is not affected, and this is"
            " logged once",
        )
        with contextlib.suppress(Exception):
            logger.debug("could not %s", self._step, exc_info=error)
        return True
