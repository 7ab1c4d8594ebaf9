"""The interval of a bounded mean, by betting against every mean the data refuse."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import repeat

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from retrospan_evaluator.statistics.interval import Interval

_BETS = 20
_HALVINGS = 60
"""Bisections of [0, 1]: the limit is then exact to the last bit that matters."""

LARGE_N = 200
"""From this many values on the t interval may take over."""
ENOUGH_DIFFERENT = 30
"""How many values must differ from the commonest one before t is trusted."""


def bounded_mean(
    values: Sequence[float],
    *,
    missing: int = 0,
    bounds: tuple[float, float] = (0.0, 1.0),
    level: float = 0.95,
) -> Interval:
    """The mean of bounded values with the interval its size calls for.

    Betting below 200 values, Student's t from there on when at least 30 values differ from the
    commonest one. A missing value counts as the lowest in the lower limit, as the highest in
    the upper.
    """
    commonest = max(Counter(values).values(), default=0)
    different = len(values) - commonest
    if len(values) >= LARGE_N and different >= ENOUGH_DIFFERENT:
        return _t_interval(values, missing=missing, bounds=bounds, level=level)
    return betting_interval(values, missing=missing, bounds=bounds, level=level)


def betting_interval(
    values: Sequence[float],
    *,
    missing: int = 0,
    bounds: tuple[float, float] = (0.0, 1.0),
    level: float = 0.95,
) -> Interval:
    """The fixed-n interval of a bounded mean from betting (Waudby-Smith and Ramdas 2024).

    A mean m is refused from below when the capital K(m) = mean_j Π(1 + f_j (x_i − m)/m), with
    x scaled to [0, 1] and j = 1…20, reaches 2/α; the upper limit is the mirror image. The bets
    are f_j = (j/21)^p with p = 1 to 200 values, 2 to 10,000, 3 beyond.
    """
    scaled = _scaled(values, missing, bounds, level)
    low, high = bounds
    lower = _lower_limit(np.concatenate([scaled, np.zeros(missing)]), level)
    upper = 1 - _lower_limit(np.concatenate([1 - scaled, np.zeros(missing)]), level)
    return Interval(
        estimate=float(np.mean(np.asarray(values, dtype=np.float64))),
        lower=low + (high - low) * lower,
        upper=low + (high - low) * upper,
        n=len(values),
        successes=None,
        level=level,
        method="betting",
        assumption=_assumption(bounds, missing),
    )


def _t_interval(
    values: Sequence[float], *, missing: int, bounds: tuple[float, float], level: float
) -> Interval:
    """Student's t, cut to the bounds, each limit with its own filling of the missing values."""
    _scaled(values, missing, bounds, level)
    low, high = bounds
    margin = float(stdtrit(len(values) + missing - 1, (1 + level) / 2))
    limits = []
    for filling, side in ((low, -1), (high, 1)):
        filled = np.asarray([*values, *repeat(filling, missing)], dtype=np.float64)
        error = float(np.std(filled, ddof=1)) / len(filled) ** 0.5
        limits.append(float(np.mean(filled)) + side * margin * error)
    return Interval(
        estimate=float(np.mean(np.asarray(values, dtype=np.float64))),
        lower=max(low, limits[0]),
        upper=min(high, limits[1]),
        n=len(values),
        successes=None,
        level=level,
        method="t",
        assumption=_assumption(bounds, missing),
    )


def _assumption(bounds: tuple[float, float], missing: int) -> str:
    text = f"cases independent of each other; values lie in [{bounds[0]:g}, {bounds[1]:g}]"
    return f"{text}; {missing} missing taken at their worst on each side" if missing else text


def _scaled(
    values: Sequence[float], missing: int, bounds: tuple[float, float], level: float
) -> NDArray[np.float64]:
    """The values on [0, 1]; ValueError for what no interval can be made of."""
    low, high = bounds
    if not values or missing < 0:
        raise ValueError(f"a mean needs at least one value, got {len(values)}")
    if not low < high or not 0 < level < 1:
        raise ValueError(f"expected low < high and a level in (0, 1), got {bounds!r}, {level!r}")
    scaled = (np.asarray(values, dtype=np.float64) - low) / (high - low)
    if not bool(np.all((scaled >= 0) & (scaled <= 1))):
        raise ValueError(f"every value must lie in [{low:g}, {high:g}]")
    return scaled


def _lower_limit(scaled: NDArray[np.float64], level: float) -> float:
    """The largest mean the bets refuse from below; the capital falls in the mean."""
    distinct, counts = np.unique(scaled, return_counts=True)
    if distinct[-1] == 0:
        return 0.0
    bets = (np.arange(1, _BETS + 1) / (_BETS + 1)) ** _bet_power(len(scaled))
    threshold = np.log(2 / (1 - level))
    refused, kept = 0.0, 1.0
    for _ in range(_HALVINGS):
        mean = (refused + kept) / 2
        stakes = bets[:, np.newaxis] * (distinct - mean) / mean
        capital = np.logaddexp.reduce(np.log1p(stakes) @ counts) - np.log(_BETS)
        if capital >= threshold:
            refused = mean
        else:
            kept = mean
    return refused


def _bet_power(n: int) -> int:
    if n <= 200:
        return 1
    return 2 if n <= 10_000 else 3
