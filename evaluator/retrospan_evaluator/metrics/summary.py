"""One metric over all cases: the estimate, its interval, and what did not enter it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from retrospan_evaluator.metrics.score import Score, ScoreState
from retrospan_evaluator.metrics.suite import Metric, MetricKind
from retrospan_evaluator.statistics.betting import bounded_mean
from retrospan_evaluator.statistics.interval import Interval, clopper_pearson


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSummary:
    """A figure of a report, with every count that stands beside it."""

    name: str
    estimate: float | None
    """None when nothing was measured, as are the limits."""
    lower: float | None
    upper: float | None
    n: int
    """Cases measured."""
    successes: int | None
    """How many of them were a yes; None for a mean."""
    excluded: int
    """Cases to which the metric does not apply."""
    failed: int
    """Cases to which it applies and where it could not be measured."""
    level: float
    method: str
    """The interval's name; empty when there is none."""
    assumption: str
    worst: float | None = None
    """The estimate if every failed one had scored 0; the estimate itself where none failed."""
    best: float | None = None
    """The same if every failed one had scored 1."""


def summarise(
    metrics: Sequence[Metric], scores: Iterable[Score], level: float = 0.95
) -> tuple[MetricSummary, ...]:
    """A summary for each metric in its order, from the scores of all cases in any order."""
    by_name: dict[str, list[Score]] = {metric.name: [] for metric in metrics}
    for score in scores:
        by_name[score.name].append(score)
    return tuple(
        _summary(metric, by_name[metric.name], level)
        for metric in metrics
        if metric.shown_unmeasured
        or any(score.state is ScoreState.MEASURED for score in by_name[metric.name])
    )


def _summary(metric: Metric, scores: Sequence[Score], level: float) -> MetricSummary:
    values = [score.value for score in scores if score.value is not None]
    failed = sum(score.state is ScoreState.FAILED for score in scores)
    rate = metric.kind is MetricKind.RATE
    interval = _interval(values, rate=rate, failed=failed, level=level)
    return MetricSummary(
        name=metric.name,
        estimate=interval.estimate if interval else None,
        lower=interval.lower if interval else None,
        upper=interval.upper if interval else None,
        n=len(values),
        successes=sum(value >= 1 for value in values) if rate else None,
        excluded=sum(score.state is ScoreState.UNDEFINED for score in scores),
        failed=failed,
        level=level,
        method=interval.method if interval else "",
        assumption=interval.assumption if interval else "",
        worst=_if_failed_scored(0, values, failed),
        best=_if_failed_scored(1, values, failed),
    )


def _if_failed_scored(score: int, values: Sequence[float], failed: int) -> float | None:
    """The estimate over measured and failed cases, the failed ones given a score."""
    applied = len(values) + failed
    return (sum(values) + score * failed) / applied if applied else None


def _interval(values: Sequence[float], *, rate: bool, failed: int, level: float) -> Interval | None:
    if not values:
        return None
    if rate:
        return clopper_pearson(sum(value >= 1 for value in values), len(values), level)
    return bounded_mean(values, missing=failed, level=level)
