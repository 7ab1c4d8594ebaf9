"""Run an async system for a caller that is not: on one event loop for the whole process.

One loop and not one a request, because clients that a system opens belong to the loop they were
opened in.
"""

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Final, TypeVar

T = TypeVar("T")


class _Background:
    """An event loop in a thread of its own."""

    __slots__ = ("loop", "thread")

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(
            target=self.loop.run_forever, name="retrospan-event-loop", daemon=True
        )
        self.thread.start()


class _Process:
    """The loop of this process, made at its first use."""

    __slots__ = ("background", "lock")

    def __init__(self) -> None:
        self.renew()

    def renew(self) -> None:
        """Forget a loop whose thread did not come along into a fork, and the lock."""
        self.background: _Background | None = None
        self.lock = threading.Lock()


_process: Final = _Process()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_process.renew)


def run_to_end(coroutine: Coroutine[Any, Any, T]) -> T:
    """Return the coroutine's result; it runs in the context of the caller."""
    with _process.lock:
        background = _process.background
        if background is None or not background.thread.is_alive():
            background = _process.background = _Background()
    if threading.current_thread() is background.thread:
        # A system that asks another one blocks the loop that the other would run on.
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(copy_context().run, asyncio.run, coroutine).result()
    future = asyncio.run_coroutine_threadsafe(coroutine, background.loop)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise
