"""What the rules for repeats guarantee, by enumeration."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import pytest
from scipy.stats import binom

from retrospan_evaluator.replay.verdict import (
    Evidence,
    Label,
    RankedPassage,
    Runs,
    Verdict,
    recovers,
    shown_failing,
    verdict,
)
from retrospan_evaluator.testsets.case import Relevant


@pytest.mark.parametrize(("n", "most"), [(1, None), (4, None), (5, 0), (10, 1), (20, 5)])
def test_an_arm_is_shown_failing_up_to_the_known_number_of_passes(n: int, most: int | None) -> None:
    failing = [
        passed
        for passed in range(n + 1)
        if shown_failing(Runs(passed=passed, n=n), single_run_decides=False)
    ]

    assert failing == ([] if most is None else list(range(most + 1)))


@pytest.mark.parametrize(
    ("control", "n", "fewest"), [(0, 5, 4), (0, 10, 4), (0, 20, 6), (1, 10, 6)]
)
def test_an_arm_recovers_from_the_known_number_of_passes(control: int, n: int, fewest: int) -> None:
    baseline = Runs(passed=control, n=n)
    recovering = [
        passed
        for passed in range(n + 1)
        if recovers(Runs(passed=passed, n=n), baseline, single_run_decides=False)
    ]

    assert recovering == list(range(fewest, n + 1))


def test_no_arm_is_both_shown_failing_and_recovering() -> None:
    for n, single in product(range(1, 21), (False, True)):
        for passed, control in product(range(n + 1), repeat=2):
            runs, baseline = Runs(passed=passed, n=n), Runs(passed=control, n=n)
            assert not (
                shown_failing(runs, single_run_decides=single)
                and recovers(runs, baseline, single_run_decides=single)
            )


@pytest.mark.parametrize("q", [0.5, 0.7, 0.9])
def test_a_generator_that_passes_half_of_the_time_with_gold_is_rarely_blamed(q: float) -> None:
    for n in range(1, 21):
        blamed = sum(
            float(binom.pmf(passed, n, q))
            for passed in range(n + 1)
            if shown_failing(Runs(passed=passed, n=n), single_run_decides=False)
        )
        assert blamed <= 0.05


@dataclass(frozen=True)
class Chances:
    gold: float
    control: float
    right_5: float
    wrong_5: float
    right_10: float
    wrong_10: float


TABLE = [
    Chances(0.9, 0, 0.92, 0.000, 1.00, 0.000),
    Chances(0.7, 0, 0.53, 0.002, 0.988, 0.0025),
    Chances(0.5, 0, 0.19, 0.031, 0.82, 0.036),
    Chances(0.3, 0, 0.03, 0.17, 0.35, 0.23),
    Chances(0.7, 0.1, 0.31, 0.001, 0.70, 0.0015),
    Chances(0.7, 0.2, 0.17, 0.001, 0.38, 0.001),
]


def judged(gold: int, control: int, n: int) -> Verdict:
    """A request whose relevant passage the budget kept out of the prompt."""
    return verdict(
        Evidence(
            replayable=True,
            control=Runs(passed=control, n=n),
            gold=Runs(passed=gold, n=n),
            single_run_decides=False,
            relevant=(Relevant(document_id="gold"),),
            passages=(
                RankedPassage(id="x", document_id="x", prompt_position=1),
                RankedPassage(
                    id="gold", document_id="gold", prompt_position=0, dropped_reason="budget"
                ),
            ),
            top_k=2,
        )
    )


@pytest.mark.parametrize("chances", TABLE, ids=lambda chances: f"{chances.gold}, {chances.control}")
def test_labels_are_right_and_wrong_as_often_as_enumeration_says(chances: Chances) -> None:
    right, wrong, later_right, later_wrong = 0.0, 0.0, 0.0, 0.0
    more = list(product(range(6), repeat=2))
    chance = {
        (gold, control): float(
            binom.pmf(gold, 5, chances.gold) * binom.pmf(control, 5, chances.control)
        )
        for gold, control in more
    }
    for (gold, control), first in chance.items():
        label = judged(gold, control, 5).label
        right += first * (label is Label.CONTEXT_ASSEMBLY_LOSS)
        wrong += first * (label is Label.GENERATION_FAILURE)
        if label is not Label.UNRESOLVED:
            continue
        for (gold_more, control_more), second in chance.items():
            grown = judged(gold + gold_more, control + control_more, 10).label
            later_right += first * second * (grown is Label.CONTEXT_ASSEMBLY_LOSS)
            later_wrong += first * second * (grown is Label.GENERATION_FAILURE)

    assert right == pytest.approx(chances.right_5, abs=0.006)
    assert wrong == pytest.approx(chances.wrong_5, abs=0.006)
    assert right + later_right == pytest.approx(chances.right_10, abs=0.006)
    assert wrong + later_wrong == pytest.approx(chances.wrong_10, abs=0.006)
