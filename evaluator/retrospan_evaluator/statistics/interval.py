"""The record every interval comes in, and the exact interval of a rate."""

from __future__ import annotations

from dataclasses import dataclass

from scipy.special import betaincinv


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An estimate with its limits, and what must be printed beside them."""

    estimate: float
    lower: float
    upper: float
    n: int
    """How many values the estimate rests on."""
    successes: int | None
    """How many of them were a yes; None for a mean."""
    level: float
    method: str
    assumption: str
    """What the data cannot test and the interval takes for granted."""


def clopper_pearson(successes: int, n: int, level: float = 0.95) -> Interval:
    """The exact two-sided interval of a rate (Clopper and Pearson 1934).

    The limits are the Beta quantiles α/2 of (k, n−k+1) and 1−α/2 of (k+1, n−k).
    """
    _check(successes, n, level)
    tail = (1 - level) / 2
    return Interval(
        estimate=successes / n,
        lower=_lower(successes, n, tail),
        upper=1 - _lower(n - successes, n, tail),
        n=n,
        successes=successes,
        level=level,
        method="Clopper–Pearson",
        assumption="cases independent of each other; failed ones would have done as the others",
    )


def clopper_pearson_lower(successes: int, n: int, level: float = 0.95) -> float:
    """The exact one-sided lower limit of a rate: all of the error probability on one side."""
    _check(successes, n, level)
    return _lower(successes, n, 1 - level)


def _lower(successes: int, n: int, tail: float) -> float:
    if successes == 0:
        return 0.0
    return float(betaincinv(successes, n - successes + 1, tail))


def _check(successes: int, n: int, level: float) -> None:
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"a rate needs 0 ≤ successes ≤ n and n ≥ 1, got {successes} of {n}")
    if not 0 < level < 1:
        raise ValueError(f"a level lies between 0 and 1, got {level!r}")
