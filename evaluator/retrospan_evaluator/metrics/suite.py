"""The metrics a dataset is scored with when nothing else is asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from retrospan_evaluator.metrics.answer import answer_correct, citations_valid
from retrospan_evaluator.metrics.relevance import JudgedRanking, judge_ranking
from retrospan_evaluator.metrics.request import ScoredRequest
from retrospan_evaluator.metrics.retrieval import (
    hit_rate_at,
    ndcg_at,
    recall_at,
    reciprocal_rank,
)
from retrospan_evaluator.metrics.score import Score
from retrospan_evaluator.testsets.dataset import Dataset


class MetricKind(StrEnum):
    """What a metric's values are, which decides the interval of their mean."""

    RATE = "rate"
    """0 or 1 for each case."""
    MEAN = "mean"
    """Anything between 0 and 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A named way to score one request."""

    name: str
    kind: MetricKind
    score: Callable[[ScoredRequest], Score]
    shown_unmeasured: bool = True
    """Whether a summary names it even where it applied to no request."""


def default_metrics(dataset: Dataset, *, top_k: int | None, depth: int) -> tuple[Metric, ...]:
    """What the cases allow: the answer where one is expected, retrieval where relevance is known.

    Args:
        top_k: the system's cut; retrieval is read at it, or at the depth where there is none.
        depth: how many candidates the system asks for; nDCG is read at it.
    """
    metrics: list[Metric] = []
    if any(case.expected_answer is not None for case in dataset.cases):
        metrics.append(Metric(name="answer_correct", kind=MetricKind.RATE, score=answer_correct))
    if any(case.relevant for case in dataset.cases):
        metrics.extend(_retrieval_metrics(depth if top_k is None else top_k, depth))
    metrics.append(
        Metric(
            name="citations_valid",
            kind=MetricKind.RATE,
            score=citations_valid,
            shown_unmeasured=False,
        )
    )
    return tuple(metrics)


def _retrieval_metrics(k: int, depth: int) -> tuple[Metric, ...]:
    rate, mean = MetricKind.RATE, MetricKind.MEAN
    return (
        _retrieval(f"hit_rate_at_{k}", rate, lambda ranking: hit_rate_at(ranking, k)),
        _retrieval(f"recall_at_{k}", mean, lambda ranking: recall_at(ranking, k)),
        _retrieval("mrr", mean, reciprocal_rank),
        _retrieval(f"ndcg_at_{depth}", mean, lambda ranking: ndcg_at(ranking, depth)),
    )


def _retrieval(
    name: str, kind: MetricKind, value: Callable[[JudgedRanking], float | None]
) -> Metric:
    """A metric of the recorded candidates, with the ways in which it can be without a value."""

    def score(request: ScoredRequest) -> Score:
        if not request.case.relevant:
            return Score.undefined(name, "nothing relevant is known for the case")
        if request.retrieval_failed:
            return Score.failed(name, "the retrieval failed or was not recorded")
        ranking = judge_ranking(request.candidates, request.case.relevant)
        if ranking.unsure:
            places = ", ".join(str(position) for position in ranking.unsure)
            return Score.undefined(
                name, f"relevance names chunks, position {places} is recorded as a document"
            )
        found = value(ranking)
        if found is None:
            return Score.undefined(name, "the case grades nothing as relevant")
        if kind is MetricKind.RATE:
            return Score.verdict(name, found >= 1)
        return Score.measured(name, found)

    return Metric(name=name, kind=kind, score=score)
