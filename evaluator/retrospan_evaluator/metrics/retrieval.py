"""Retrieval metrics over a judged ranking; position is the truth, scores never re-sort.

Every function returns None where the metric is undefined: nothing relevant is known. Where
definitions coincide the values equal trec_eval's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from retrospan_evaluator.metrics.relevance import JudgedRanking


def hit_rate_at(ranking: JudgedRanking, k: int) -> float | None:
    """1 when something relevant stands among the first k, else 0 (trec_eval: success)."""
    found = _found(ranking, k)
    return None if found is None else float(found > 0)


def recall_at(ranking: JudgedRanking, k: int) -> float | None:
    """The share of everything relevant that stands among the first k."""
    found = _found(ranking, k)
    return None if found is None else found / len(ranking.ideal)


def recall_capped_at(ranking: JudgedRanking, k: int) -> float | None:
    """Recall over min(k, all relevant): 1 is within reach even where k is the smaller."""
    found = _found(ranking, k)
    return None if found is None else found / min(k, len(ranking.ideal))


def precision_at(ranking: JudgedRanking, k: int) -> float | None:
    """The share of relevant ones among k places, filled or not."""
    found = _found(ranking, k)
    return None if found is None else found / k


def reciprocal_rank(ranking: JudgedRanking) -> float | None:
    """1 over the position of the first relevant one, 0 when there is none."""
    if not ranking.ideal:
        return None
    best = ranking.best_position
    return 0.0 if best is None else 1 / best


def ndcg_at(ranking: JudgedRanking, k: int) -> float | None:
    """nDCG with linear gain g and discount log2(position + 1), the ideal list cut at k."""
    return _ndcg(ranking, k, lambda grade: grade)


def ndcg_exp_at(ranking: JudgedRanking, k: int) -> float | None:
    """nDCG with exponential gain 2^g − 1, otherwise as `ndcg_at`."""
    return _ndcg(ranking, k, lambda grade: 2**grade - 1)


def _found(ranking: JudgedRanking, k: int) -> int | None:
    _check(k)
    return sum(gain > 0 for gain in ranking.gains[:k]) if ranking.ideal else None


def _ndcg(ranking: JudgedRanking, k: int, gain: Callable[[float], float]) -> float | None:
    _check(k)
    if not ranking.ideal:
        return None
    earned = _dcg([gain(grade) for grade in ranking.gains[:k]])
    return earned / _dcg([gain(grade) for grade in ranking.ideal[:k]])


def _dcg(gains: Sequence[float]) -> float:
    return math.fsum(gain / math.log2(at + 1) for at, gain in enumerate(gains, start=1))


def _check(k: int) -> None:
    if k < 1:
        raise ValueError(f"a cut is at least 1, got {k}")
