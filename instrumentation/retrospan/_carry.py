"""Take a request along into threads, executors, callbacks: wherever its context does not go."""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from opentelemetry import context

from retrospan._steps import Attached

P = ParamSpec("P")
R = TypeVar("R")


def carry(function: Callable[P, R], /) -> Callable[P, R]:
    """Return a callable that runs inside the request that is current now.

    It may run in any thread, at any time, any number of times and in several threads at once;
    what it records belongs to the request even when that has ended meanwhile:
    `executor.submit(carry(retrieve), question)`.
    """
    inside = context.get_current()

    @functools.wraps(function)
    def carried(*args: P.args, **kwargs: P.kwargs) -> R:
        with Attached(inside):
            return function(*args, **kwargs)

    return carried
