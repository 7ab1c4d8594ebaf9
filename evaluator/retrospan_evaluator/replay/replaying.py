"""Replays stored requests: runs the arms, reads them back, and keeps what they showed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from retrospan import BoundSystem
from retrospan_collector.clickhouse.connection import Store
from retrospan_collector.clickhouse.evaluation_rows import DiagnosisRow, ReplayRow
from retrospan_collector.clickhouse.sample_key import sample_key
from retrospan_evaluator.identifiers import Identifiers
from retrospan_evaluator.replay.arms import Intervention
from retrospan_evaluator.replay.execution import ArmRun, Replayer, ReplayRun, Subject
from retrospan_evaluator.replay.findings import report_of
from retrospan_evaluator.replay.report import ReplayReport
from retrospan_evaluator.traces.reader import TraceReader
from retrospan_evaluator.traces.request import RecordedRequest
from retrospan_evaluator.traffic import traffic


def replay_requests(
    subjects: Sequence[Subject],
    interventions: Sequence[Intervention],
    system: BoundSystem,
    store: Store,
    otlp_grpc: str,
    *,
    identifiers: Identifiers,
    now: datetime,
    repeats: int | None = None,
    advance: Callable[[], None] = lambda: None,
) -> tuple[ReplayReport, ...]:
    """Replay each request: control, gold context, and one arm for each intervention.

    The verdicts are made from what the store has of the arms, not from what this process saw.

    Args:
        otlp_grpc: host:port of the receiver that writes to `store`.
        repeats: runs of each arm; None takes one where one decides, else five.
        advance: called after each request.
    """
    with traffic(store, otlp_grpc, system.settings) as sent:
        replayer = Replayer(system, sent, identifiers, now, repeats)
        runs = replayer.run(subjects, interventions, advance)
        traces = [trace_id for run in runs for trace_id in run.trace_ids]
        stored = sent.recorded(TraceReader(store), traces)
    store.insert(
        "replays",
        [
            row
            for run in runs
            for arm in (run.control, *run.arms)
            for row in _rows(run, arm, run.answered(stored), now)
        ],
    )
    return tuple(report_of(run, stored, system.settings) for run in runs)


def diagnosis_row(
    report: ReplayReport, now: datetime, *, diagnosis_id: str | None = None
) -> DiagnosisRow:
    """A replay's verdict as a row of `diagnoses`; on its own it is a diagnosis of one."""
    request, verdict = report.request, report.verdict
    if verdict is None:
        raise ValueError(f"replay {report.replay_id} has no verdict to store")
    return DiagnosisRow(
        diagnosis_id=diagnosis_id or report.replay_id,
        service_name=request.service,
        timestamp=request.started_at,
        sample_key=sample_key(request.trace_id),
        trace_id=request.trace_id,
        root_span_id=request.root_span_id,
        replay_id=report.replay_id,
        run_id=request.run_id or "",
        case_id=request.case_id or "",
        criterion=report.criterion or "",
        label=verdict.label,
        reason=verdict.reason,
        strength=verdict.strength or "",
        best_relevant_position=verdict.best_relevant_position,
        implicated=tuple(verdict.implicated),
        report=json.dumps(report.to_json(), ensure_ascii=False),
        created_at=now,
    )


def _rows(
    run: ReplayRun, arm: ArmRun, stored: Mapping[str, RecordedRequest], now: datetime
) -> list[ReplayRow]:
    original, judge = run.subject.request, run.subject.judge
    return [
        ReplayRow(
            replay_id=run.replay_id,
            original_service_name=original.service,
            original_timestamp=original.started_at,
            original_sample_key=sample_key(original.trace_id),
            original_trace_id=original.trace_id,
            original_root_span_id=original.root_span_id,
            arm=arm.intervention.name,
            repeat=planned.repeat,
            run_id=planned.run_id,
            trace_id=planned.trace_id,
            sample_key=sample_key(planned.trace_id),
            passed=None if judge is None else judge.passed(stored[planned.trace_id]),
            created_at=now,
        )
        for planned in arm.planned
    ]
