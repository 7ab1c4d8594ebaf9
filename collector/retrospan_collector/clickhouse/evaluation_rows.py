"""Rows the evaluator writes: runs, their cases, scores, replays and diagnoses.

A *request key* names one stored request: service name, timestamp, sample key, trace id and
root span id. Timestamps are aware datetimes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

RunKind = Literal["run", "replay"]
EvaluatorKind = Literal["code", "judge", "human"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One case of a run, registered before its trace is sent: table `runs`.

    A run's results are exactly the trace ids that stand here.
    """

    run_id: str
    case_id: str
    repeat: int
    """From 0."""
    trace_id: str
    sample_key: int
    kind: RunKind
    system: str
    system_version: str = ""
    dataset: str = ""
    """The path the dataset was read from, for people."""
    dataset_version: str = ""
    """SHA-256 over the dataset's canonical content; with the case id it finds the case."""
    settings: str = "{}"
    """The settings the run changed, as a JSON object."""
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseRow:
    """One case of a dataset, kept so that a run can be replayed without its file: `cases`."""

    dataset_version: str
    case_id: str
    content: str
    """The whole case as a JSON object."""
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreRow:
    """One evaluator's word on one request: table `scores`."""

    service_name: str
    timestamp: datetime
    sample_key: int
    trace_id: str
    root_span_id: str
    name: str
    value: float | None
    """None when nothing was measured: `failure` says whether the scorer failed."""
    label: str = ""
    explanation: str = ""
    failure: str = ""
    """What went wrong in the scorer; empty when it measured, or found nothing to measure."""
    evaluator_kind: EvaluatorKind = "code"
    evaluator_name: str = ""
    evaluator_version: str = ""
    model: str = ""
    passage_id: str = ""
    run_id: str = ""
    variant_id: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    scored_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayRow:
    """One repeat of one arm of a replay: table `replays`.

    Answers, prompts and timings live in `requests`, under this row's own trace id.
    """

    replay_id: str
    original_service_name: str
    original_timestamp: datetime
    original_sample_key: int
    original_trace_id: str
    original_root_span_id: str
    arm: str
    """`control`, or the intervention: `gold-context`, `top-k 4`, `token-budget 120`."""
    repeat: int
    """From 0."""
    run_id: str
    trace_id: str
    sample_key: int
    passed: bool | None
    """None when nothing could judge the answer."""
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DiagnosisRow:
    """The verdict on one request: table `diagnoses`. A single replay is a diagnosis of one."""

    diagnosis_id: str
    service_name: str
    timestamp: datetime
    sample_key: int
    trace_id: str
    root_span_id: str
    replay_id: str
    """Whose arms the verdict rests on."""
    run_id: str = ""
    """The run that was diagnosed; empty for a live request."""
    case_id: str = ""
    criterion: str = ""
    label: str
    reason: str = ""
    strength: str = ""
    best_relevant_position: int | None = None
    implicated: tuple[str, ...] = ()
    report: str = "{}"
    """The arms and candidate experiments as they were shown, as a JSON object."""
    created_at: datetime
