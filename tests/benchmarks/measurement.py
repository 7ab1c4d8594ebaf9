"""What a benchmark gives: figures, the bars they are held to, and what stands beside them.

A time says little about another machine. So each figure that matters stands beside something
that moves with the machine, measured in the same run, and the ratio is what is compared later.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter, process_time, thread_time
from typing import Protocol

Say = Callable[[str], None]
"""Takes a line about what is going on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """Something else measured in the same run, in the same unit."""

    name: str
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One figure."""

    name: str
    value: float
    unit: str
    at_most: float | None = None
    """The bar of a figure that should be small."""
    at_least: float | None = None
    """The bar of a figure that should be large."""
    beside: tuple[Beside, ...] = ()

    @property
    def meets_bar(self) -> bool | None:
        """None where there is no bar."""
        if self.at_most is not None:
            return self.value <= self.at_most
        if self.at_least is not None:
            return self.value >= self.at_least
        return None


class Run(Protocol):
    """A benchmark: the function `run` of its module, whose docstring says what it measures."""

    def __call__(self, *, quick: bool, say: Say) -> list[Measurement]:
        """Measure; the quick form shows in seconds that all of it works, and its times nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What some work took."""

    wall_s: float
    thread_s: float
    """Processor time of the thread that asked: Python and the driver."""
    process_s: float
    """Processor time of all threads, the engine's included. Other programs on the machine
    lengthen it little."""

    def __add__(self, other: Spent) -> Spent:
        return Spent(
            wall_s=self.wall_s + other.wall_s,
            thread_s=self.thread_s + other.thread_s,
            process_s=self.process_s + other.process_s,
        )


class Stopwatch:
    """Runs from the moment it is made."""

    def __init__(self) -> None:
        self._began = (perf_counter(), thread_time(), process_time())

    def spent(self) -> Spent:
        """What it took until now."""
        wall, thread, process = self._began
        return Spent(
            wall_s=perf_counter() - wall,
            thread_s=thread_time() - thread,
            process_s=process_time() - process,
        )


class WrongAnswer(Exception):
    """What was measured did not do its work, so that its time says nothing."""


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest of the values that so many percent of them do not exceed."""
    ranked = sorted(values)
    return ranked[max(0, math.ceil(len(ranked) * percent / 100) - 1)]
