"""A dataset through a system: cases sent as traffic with a run id, read back, scored."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """One case of a run: the stored request, its scores, what the system raised."""

    case: Case
    request: RecordedRequest
    scores: tuple[Score, ...]
    error: str | None = None

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

    def to_json(self) -> Mapping[str, object]:
        """The stable machine output of `retrospan run --json`."""
        return {
            "version": 1,
            "run_id": self.run_id,
            "system": self.system,
            "dataset_version": self.dataset.version,
            "cases": len(self.results),
            "errors": sum(result.error is not None for result in self.results),
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
        errors = {
            case.id: _ask(sent, planned[case.id], system, case, advance) for case in dataset.cases
        }
        stored = sent.recorded(TraceReader(store), [p.trace_id for p in planned.values()])
    return _scored(run_id, dataset, system, store, stored, planned, errors, now)


def _ask(
    sent: Traffic,
    planned: PlannedRequest,
    system: BoundSystem,
    case: Case,
    advance: Callable[[], None],
) -> str | None:
    made = sent.make(planned, lambda: system.answer(case.input))
    advance()
    return None if made.error is None else f"{type(made.error).__name__}: {made.error}"


def _scored(
    run_id: str,
    dataset: Dataset,
    system: BoundSystem,
    store: Store,
    stored: Mapping[str, RecordedRequest],
    planned: Mapping[str, PlannedRequest],
    errors: Mapping[str, str | None],
    now: datetime,
) -> RunReport:
    metrics = default_metrics(dataset, top_k=system.settings.top_k, depth=system.settings.depth)
    results = []
    for case in dataset.cases:
        request = stored[planned[case.id].trace_id]
        read = scored_request(request, case)
        results.append(
            CaseResult(
                case=case,
                request=request,
                scores=tuple(metric.score(read) for metric in metrics),
                error=errors[case.id],
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
        "level": metric.level,
        "method": metric.method,
        "assumption": metric.assumption,
    }
