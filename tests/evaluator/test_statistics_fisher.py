"""Fisher's exact test, one-sided."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import fisher_exact

from retrospan_evaluator.statistics.fisher import fisher_greater


def test_four_of_five_against_none_of_five_is_the_hand_computed_tail() -> None:
    # Only the four passes and one of the five ways to lack one: 5 of C(10, 4) = 210.
    assert fisher_greater(passes=4, n=5, control_passes=0, control_n=5) == pytest.approx(5 / 210)


@given(data=st.data(), n=st.integers(1, 25), control_n=st.integers(1, 25))
def test_the_tail_equals_an_independent_one(data: st.DataObject, n: int, control_n: int) -> None:
    passes = data.draw(st.integers(0, n))
    control = data.draw(st.integers(0, control_n))

    p = fisher_greater(passes=passes, n=n, control_passes=control, control_n=control_n)

    table = np.array([[passes, n - passes], [control, control_n - control]])
    assert p == pytest.approx(float(fisher_exact(table, alternative="greater").pvalue), abs=1e-9)


def test_more_passes_than_runs_are_refused() -> None:
    with pytest.raises(ValueError, match="6 of 5"):
        fisher_greater(passes=6, n=5, control_passes=0, control_n=5)
