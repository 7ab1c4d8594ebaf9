"""Intervals: known values, what must hold for any data, and how often they cover the truth."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from retrospan_evaluator.statistics.betting import betting_interval, bounded_mean
from retrospan_evaluator.statistics.interval import clopper_pearson, clopper_pearson_lower
from retrospan_evaluator.statistics.rounding import percent, percent_interval

REPETITIONS = 2_000
TOO_MANY_MISSES = int(binom.ppf(0.999, REPETITIONS, 0.05))
"""A 95 % interval may miss in a twentieth of the repetitions, give or take chance."""


@dataclass(frozen=True)
class KnownRate:
    successes: int
    n: int
    printed: str


@pytest.mark.parametrize(
    "known",
    [
        KnownRate(9, 13, "[38.5 %, 91.0 %]"),
        KnownRate(13, 13, "[75.2 %, 100 %]"),
        KnownRate(12, 13, "[63.9 %, 99.9 %]"),
        KnownRate(0, 4, "[0 %, 60.3 %]"),
        KnownRate(0, 13, "[0 %, 24.8 %]"),
    ],
    ids=lambda known: f"{known.successes} of {known.n}",
)
def test_the_exact_interval_of_a_rate_is_printed_outward(known: KnownRate) -> None:
    interval = clopper_pearson(known.successes, known.n)

    assert percent_interval(interval.lower, interval.upper) == known.printed
    assert (interval.successes, interval.n, interval.level) == (known.successes, known.n, 0.95)
    assert interval.method == "Clopper–Pearson"


@given(n=st.integers(1, 400), share=st.floats(0, 1), level=st.sampled_from([0.8, 0.95, 0.99]))
def test_the_exact_interval_equals_an_independent_one(n: int, share: float, level: float) -> None:
    successes = round(share * n)

    interval = clopper_pearson(successes, n, level)

    other = binomtest(successes, n).proportion_ci(level, method="exact")
    assert interval.lower == pytest.approx(float(other.low), abs=1e-9)
    assert interval.upper == pytest.approx(float(other.high), abs=1e-9)


@pytest.mark.parametrize("n", [1, 5, 13, 40])
def test_the_exact_interval_covers_every_true_rate_by_enumeration(n: int) -> None:
    intervals = [clopper_pearson(successes, n) for successes in range(n + 1)]
    for rate in np.linspace(0.001, 0.999, 97):
        covered = sum(
            float(binom.pmf(successes, n, rate))
            for successes, interval in enumerate(intervals)
            if interval.lower <= rate <= interval.upper
        )
        assert covered >= 0.95


def test_the_one_sided_limit_puts_the_whole_error_on_one_side() -> None:
    assert clopper_pearson_lower(5, 5) == pytest.approx(0.05 ** (1 / 5))
    assert clopper_pearson_lower(9, 10) == pytest.approx(clopper_pearson(9, 10, 0.9).lower)
    assert clopper_pearson_lower(0, 5) == 0


@pytest.mark.parametrize(("successes", "n"), [(1, 0), (-1, 5), (6, 5)])
def test_a_rate_of_nothing_is_refused(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match="0 ≤ successes ≤ n"):
        clopper_pearson(successes, n)


def test_betting_gives_the_known_limits() -> None:
    differences = betting_interval([0] * 13, bounds=(-1, 1))
    assert (differences.lower, differences.upper) == pytest.approx((-0.33502, 0.33502), abs=5e-6)

    assert betting_interval([1] * 13).lower == pytest.approx(0.66498, abs=5e-6)

    one_zero = betting_interval([1] * 12 + [0])
    assert (one_zero.lower, one_zero.upper) == pytest.approx((0.54523, 0.99986), abs=5e-6)

    thousand = betting_interval([1] * 930 + [0] * 70)
    assert (thousand.lower, thousand.upper) == pytest.approx((0.90083, 0.95516), abs=5e-6)


def test_more_than_ten_thousand_values_are_bet_on_more_cautiously() -> None:
    many = betting_interval([1] * 9_300 + [0] * 701)

    assert many.lower < 0.93 < many.upper
    assert many.upper - many.lower < 0.02


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
@settings(max_examples=60)
def test_betting_holds_the_mean_stays_in_bounds_and_has_a_mirror_image(
    values: list[float],
) -> None:
    interval = betting_interval(values)
    mirrored = betting_interval([1 - value for value in values])

    assert 0 <= interval.lower <= interval.estimate + 1e-9
    assert interval.estimate - 1e-9 <= interval.upper <= 1
    assert interval.lower == pytest.approx(1 - mirrored.upper, abs=1e-9)


@cache
def _limits(zeros: int, halves: int, ones: int) -> tuple[float, float]:
    interval = betting_interval([0.0] * zeros + [0.5] * halves + [1.0] * ones)
    return interval.lower, interval.upper


@pytest.mark.parametrize("shares", [(0.1, 0.3, 0.6), (0.0, 0.08, 0.92), (0.5, 0.0, 0.5)], ids=str)
def test_betting_covers_the_true_mean_in_a_seeded_simulation(
    shares: tuple[float, float, float],
) -> None:
    draws = np.random.default_rng(20_261).multinomial(13, shares, REPETITIONS)
    truth = shares[1] / 2 + shares[2]
    limits = [_limits(int(draw[0]), int(draw[1]), int(draw[2])) for draw in draws]

    misses = sum(not lower <= truth <= upper for lower, upper in limits)

    assert misses <= TOO_MANY_MISSES


def test_a_missing_value_counts_as_the_lowest_below_and_the_highest_above() -> None:
    interval = betting_interval([1] * 12, missing=1)

    assert interval.estimate == 1
    assert interval.n == 12
    assert interval.lower == betting_interval([1] * 12 + [0]).lower
    assert interval.upper == betting_interval([1] * 13).upper
    assert "1 missing" in interval.assumption


def test_a_large_sample_with_varied_values_gets_students_t() -> None:
    values = [0.0, 1.0] * 100

    interval = bounded_mean(values)

    # t(0.975, 199) = 1.971957, s = 0.501255, n = 200
    assert interval.method == "t"
    assert interval.lower == pytest.approx(0.5 - 1.971957 * 0.501255 / 200**0.5, abs=1e-6)
    assert interval.upper == pytest.approx(0.5 + 1.971957 * 0.501255 / 200**0.5, abs=1e-6)


@pytest.mark.parametrize(
    "values", [[0.0, 1.0] * 99, [1.0] * 300 + [0.0] * 29], ids=["small", "hardly varied"]
)
def test_a_small_or_hardly_varied_sample_is_bet_on(values: list[float]) -> None:
    assert bounded_mean(values).method == "betting"


def test_students_t_takes_missing_values_at_their_worst_too() -> None:
    values = [0.0, 1.0] * 100

    interval = bounded_mean(values, missing=20)

    assert interval.estimate == 0.5
    assert interval.lower < 0.5 * 200 / 220
    assert interval.upper > (0.5 * 200 + 20) / 220


@pytest.mark.parametrize("values", [[], [1.5], [-0.1], [float("nan")]], ids=str)
def test_a_mean_of_nothing_or_of_values_out_of_bounds_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match=r"value"):
        betting_interval(values)


def test_percentages_of_limits_never_look_better_than_they_are() -> None:
    assert percent_interval(0.38599, 0.90901) == "[38.5 %, 91.0 %]"
    assert percent_interval(0.0, 1.0) == "[0 %, 100 %]"
    assert percent_interval(0.0001, 0.9999) == "[0 %, 100 %]"
    assert percent_interval(0.1 + 0.2, 0.1 + 0.2) == "[30.0 %, 30.0 %]"
    assert percent(9 / 13) == "69.2 %"
