"""A call that may block for long, made at the end of a process and given up after a while."""

import os
import threading
import weakref
from collections.abc import Callable
from typing import Final

from retrospan._guard import guarded


class LastCall:
    """A thread that stands ready to make one call.

    It is there from the beginning, because an interpreter that is ending starts no thread any
    more: Python 3.12 refuses. It comes along into a fork.
    """

    __slots__ = ("__weakref__", "_begin", "_call", "_done")

    def __init__(self, call: Callable[[], object]) -> None:
        self._call: Final = call
        self._stand_ready()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_reviver(weakref.ref(self)))

    def within(self, timeout_s: float) -> bool:
        """Make the call; return whether it ended within the timeout."""
        self._begin.set()
        return self._done.wait(timeout_s)

    def revive(self) -> None:
        """Stand ready again in a forked process, where the thread is gone."""
        if not self._begin.is_set():
            self._stand_ready()

    def _stand_ready(self) -> None:
        self._begin = threading.Event()
        self._done = threading.Event()
        threading.Thread(
            target=_wait_and_call,
            args=(self._begin, self._done, self._call),
            name="retrospan-last-call",
            daemon=True,
        ).start()


def _wait_and_call(
    begin: threading.Event, done: threading.Event, call: Callable[[], object]
) -> None:
    begin.wait()
    with guarded("send the last spans"):
        call()
    done.set()


def _reviver(reference: "weakref.ref[LastCall]") -> Callable[[], None]:
    def revive() -> None:
        call = reference()
        if call is not None:
            call.revive()

    return revive
