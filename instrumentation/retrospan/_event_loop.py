"""Run an async system for a caller that is not: on one event loop for the whole process.

One loop and not one a request, because clients that a system opens belong to the loop they were
opened in.
"""

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class _Background:
    """An event loop in a thread of its own."""

    __slots__ = ("loop", "pid", "thread")

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(
            target=self.loop.run_forever, name="retrospan-event-loop", daemon=True
        )
        self.thread.start()

    @property
    def runs(self) -> bool:
        """Whether it can be used: a fork has no threads, and an interrupt ends the loop."""
        return self.pid == os.getpid() and self.thread.is_alive()


class _Process:
    """The loop of this process, made at its first use."""

    __slots__ = ("background", "lock")

    def __init__(self) -> None:
        self.background: _Background | None = None
        self.lock = threading.Lock()


_process = _Process()


def run_to_end(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the coroutine's result; it runs in the context of the caller."""
    with _process.lock:
        background = _process.background
        if background is None or not background.runs:
            background = _process.background = _Background()
    if threading.current_thread() is background.thread:
        coroutine.close()
        raise RuntimeError(
            "a bound system was asked from inside another one's async method, which blocks the"
            " event loop it would run on: await its answer(input) instead"
        )
    future = asyncio.run_coroutine_threadsafe(coroutine, background.loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise
