"""A dataset through a system: cases sent as traffic with a run id, read back, scored."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from retrospan import BoundSystem
from retrospan_collector.clickhouse.connection import Store
from retrospan_collector.clickhouse.evaluation_rows import CaseRow
from retrospan_evaluator.identifiers import Identifiers
from retrospan_evaluator.metrics.score import Score
from retrospan_evaluator.metrics.suite import default_metrics
from retrospan_evaluator.metrics.summary import MetricSummary, summarise
from retrospan_evaluator.scoring import score_row, scored_request
from retrospan_evaluator.testsets.case import Case
from retrospan_evaluator.testsets.dataset import Dataset
from retrospan_evaluator.traces.reader import TraceReader
from retrospan_evaluator.traces.request import RecordedRequest
from retrospan_evaluator.traffic import PlannedRequest, Traffic, traffic
from retrospan_evaluator.unanswered import (
    NOT_FOUND,
    Unanswered,
    UnansweredCount,
    count_unanswered,
    why_unanswered,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """One case of a run: the stored request, its scores, why it gave no answer."""

    case: Case
    request: RecordedRequest
    scores: tuple[Score, ...]
    unanswered: Unanswered | None = None
    """None where it gave one."""

    def score(self, name: str) -> Score | None:
        """The score of a metric; None where the run has no such metric."""
        return next((score for score in self.scores if score.name == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """What a run came to."""

    run_id: str
    system: str
    dataset: Dataset
    metrics: tuple[MetricSummary, ...]
    results: tuple[CaseResult, ...]

    @property
    def unanswered(self) -> tuple[UnansweredCount, ...]:
        """Why cases gave no answer, the commonest kind of reason first."""
        return count_unanswered(
            [
                (result.case.id, result.request.trace_id, result.unanswered)
                for result in self.results
                if result.unanswered is not None
            ]
        )

    def to_json(self) -> Mapping[str, object]:
        """The stable machine output of `retrospan run --json`."""
        return {
            "version": 1,
            "run_id": self.run_id,
            "system": self.system,
            "dataset_version": self.dataset.version,
            "cases": len(self.results),
            "errors": sum(u.cases for u in self.unanswered if u.example.kind != NOT_FOUND),
            "unanswered": [count.to_json() for count in self.unanswered],
            "metrics": {metric.name: _metric_json(metric) for metric in self.metrics},
        }


def run_dataset(
    dataset: Dataset,
    system: BoundSystem,
    store: Store,
    otlp_grpc: str,
    *,
    identifiers: Identifiers,
    now: datetime,
    settings: Mapping[str, object] | None = None,
    advance: Callable[[], None] = lambda: None,
) -> RunReport:
    """Send every case through the system, wait until it is stored, score it, store the scores.

    Args:
        otlp_grpc: host:port of the receiver that writes to `store`.
        settings: the settings that were changed for this run, for the record.
        advance: called after each case.
    """
    run_id = identifiers.run_id(now)
    planned = {
        case.id: PlannedRequest(trace_id=identifiers.trace_id(), run_id=run_id, case_id=case.id)
        for case in dataset.cases
    }
    store.insert("cases", [_case_row(dataset, case, now) for case in dataset.cases])
    with traffic(store, otlp_grpc, system.settings) as sent:
        sent.register(
            list(planned.values()),
            kind="run",
            now=now,
            dataset=str(dataset.path),
            dataset_version=dataset.version,
            settings=json.dumps(dict(settings or {}), sort_keys=True),
        )
        unanswered = {
            case.id: _ask(sent, planned[case.id], system, case, advance) for case in dataset.cases
        }
        stored = sent.recorded(TraceReader(store), [p.trace_id for p in planned.values()])
    return _scored(run_id, dataset, system, store, stored, planned, unanswered, now)


def _ask(
    sent: Traffic,
    planned: PlannedRequest,
    system: BoundSystem,
    case: Case,
    advance: Callable[[], None],
) -> Unanswered | None:
    made = sent.make(planned, lambda: system.answer(case.input))
    advance()
    return why_unanswered(made, system.settings)


def _scored(
    run_id: str,
    dataset: Dataset,
    system: BoundSystem,
    store: Store,
    stored: Mapping[str, RecordedRequest],
    planned: Mapping[str, PlannedRequest],
    unanswered: Mapping[str, Unanswered | None],
    now: datetime,
) -> RunReport:
    metrics = default_metrics(dataset, top_k=system.settings.top_k, depth=system.settings.depth)
    results = []
    for case in dataset.cases:
        request, why = stored[planned[case.id].trace_id], unanswered[case.id]
        if why is not None:
            # The store keeps one empty text for an empty answer and for none.
            request = replace(request, answer=None)
        read = scored_request(request, case, None if why is None else why.sentence)
        results.append(
            CaseResult(
                case=case,
                request=request,
                scores=tuple(metric.score(read) for metric in metrics),
                unanswered=why,
            )
        )
    store.insert(
        "scores",
        [score_row(result.request, score, now) for result in results for score in result.scores],
    )
    return RunReport(
        run_id=run_id,
        system=system.settings.name,
        dataset=dataset,
        metrics=summarise(metrics, [score for result in results for score in result.scores]),
        results=tuple(results),
    )


def _case_row(dataset: Dataset, case: Case, now: datetime) -> CaseRow:
    return CaseRow(
        dataset_version=dataset.version, case_id=case.id, content=case.to_json(), created_at=now
    )


def _metric_json(metric: MetricSummary) -> dict[str, object]:
    return {
        "estimate": metric.estimate,
        "lower": metric.lower,
        "upper": metric.upper,
        "n": metric.n,
        "successes": metric.successes,
        "excluded": metric.excluded,
        "failed": metric.failed,
        "worst": metric.worst,
        "best": metric.best,
        "level": metric.level,
        "method": metric.method,
        "assumption": metric.assumption,
    }
