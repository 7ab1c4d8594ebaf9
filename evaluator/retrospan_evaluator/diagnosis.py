"""Why a run's cases failed: every failed case replayed, the labels counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from retrospan import BoundSystem
from retrospan_collector.clickhouse.connection import Store
from retrospan_evaluator.errors import RefusedError
from retrospan_evaluator.identifiers import Identifiers
from retrospan_evaluator.replay.arms import Intervention
from retrospan_evaluator.replay.execution import Subject
from retrospan_evaluator.replay.gold import resolve_gold
from retrospan_evaluator.replay.judge import judge_of
from retrospan_evaluator.replay.recorded_run import CriterionResult, RunReader
from retrospan_evaluator.replay.replaying import diagnosis_row, replay_requests
from retrospan_evaluator.replay.report import ReplayReport
from retrospan_evaluator.traces.reader import TraceReader


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmCount:
    """An intervention over all selected cases."""

    intervention: str
    recovered: int
    n: int
    """Cases in which the arm could be compared with its control."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The failed cases of a run and what each came to."""

    diagnosis_id: str
    run_id: str
    criterion: str
    replays: tuple[ReplayReport, ...]
    not_measured: int
    """Cases of the run that the criterion has no value for; they are not diagnosed."""
    why_not_measured: Mapping[str, int] = field(default_factory=dict)
    """How many of them for each reason, commonest first."""

    @property
    def control(self) -> tuple[int, int]:
        """Cases whose control passed more often than not, of those whose control was judged."""
        judged = [replay.control for replay in self.replays if replay.control.n > 0]
        return sum(2 * (control.passed or 0) > control.n for control in judged), len(judged)

    @property
    def arms(self) -> tuple[ArmCount, ...]:
        """Gold context first, then the interventions in the order they were asked for."""
        counts: dict[str, tuple[int, int]] = {}
        for arm in (arm for replay in self.replays for arm in replay.arms):
            recovered, n = counts.get(arm.intervention.name, (0, 0))
            counts[arm.intervention.name] = (
                recovered + (arm.recovered is True),
                n + (arm.recovered is not None),
            )
        return tuple(
            ArmCount(intervention=name, recovered=recovered, n=n)
            for name, (recovered, n) in counts.items()
        )

    @property
    def labels(self) -> Mapping[str, int]:
        """How many cases each label was given, commonest first."""
        labels = Counter(str(r.verdict.label) for r in self.replays if r.verdict is not None)
        return dict(labels.most_common())

    def to_json(self) -> Mapping[str, object]:
        """The stable machine output of `retrospan diagnose --json`."""
        passed, n = self.control
        return {
            "version": 1,
            "diagnosis_id": self.diagnosis_id,
            "run_id": self.run_id,
            "criterion": self.criterion,
            "selected": len(self.replays),
            "not_measured": self.not_measured,
            "why_not_measured": dict(self.why_not_measured),
            "control": {"passed": passed, "n": n},
            "arms": [
                {"intervention": a.intervention, "recovered": a.recovered, "n": a.n}
                for a in self.arms
            ],
            "labels": self.labels,
            "cases": [_case_json(replay) for replay in self.replays],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The cases of a run that failed a criterion, ready to be replayed."""

    run_id: str
    criterion: str
    subjects: tuple[Subject, ...]
    """In the order of their cases."""
    not_measured: int
    """Cases that the criterion has no value for."""
    why_not_measured: Mapping[str, int]
    """How many of them for each reason, commonest first."""


def failed_cases(store: Store, run_id: str, criterion: str) -> Selection:
    """Every case of a run that failed the criterion, with its judge and its gold."""
    runs = RunReader(store)
    registered = runs.run(run_id)
    results = runs.results(run_id, criterion)
    failed = {r.trace_id for r in results if r.value is not None and r.value < 1}
    rows = [row for row in registered if row.trace_id in failed]
    requests = TraceReader(store).requests([row.trace_id for row in rows])
    # A run has one dataset, and so its cases have one version.
    cases = runs.cases(registered[0].dataset_version, [row.case_id for row in rows])
    subjects = []
    for row in rows:
        request = requests.get(row.trace_id)
        if request is None:
            raise RefusedError(
                f"the request {row.trace_id} of run {run_id!r} is no longer stored: "
                "run the dataset again"
            )
        case = cases.get(row.case_id)
        subjects.append(
            Subject(
                request=request,
                judge=judge_of(case, criterion=criterion),
                gold=resolve_gold(request, case, (), {}),
                case_id=row.case_id,
            )
        )
    return Selection(
        run_id=run_id,
        criterion=criterion,
        subjects=tuple(subjects),
        not_measured=sum(result.value is None for result in results),
        why_not_measured=_why_not_measured(results),
    )


def diagnose(
    selection: Selection,
    interventions: Sequence[Intervention],
    system: BoundSystem,
    store: Store,
    otlp_grpc: str,
    *,
    identifiers: Identifiers,
    now: datetime,
    repeats: int | None = None,
    advance: Callable[[], None] = lambda: None,
) -> Diagnosis:
    """Replay every selected case, and store the verdicts."""
    replays = replay_requests(
        selection.subjects,
        interventions,
        system,
        store,
        otlp_grpc,
        identifiers=identifiers,
        now=now,
        repeats=repeats,
        advance=advance,
    )
    diagnosis_id = identifiers.diagnosis_id(now)
    store.insert(
        "diagnoses",
        [
            diagnosis_row(replay, now, diagnosis_id=diagnosis_id)
            for replay in replays
            if replay.verdict is not None
        ],
    )
    return Diagnosis(
        diagnosis_id=diagnosis_id,
        run_id=selection.run_id,
        criterion=selection.criterion,
        replays=replays,
        not_measured=selection.not_measured,
        why_not_measured=selection.why_not_measured,
    )


def _why_not_measured(results: Sequence[CriterionResult]) -> Mapping[str, int]:
    reasons = Counter(
        result.failure or "the criterion does not apply to the case"
        for result in results
        if result.value is None
    )
    return dict(reasons.most_common())


def _case_json(replay: ReplayReport) -> dict[str, object]:
    verdict = replay.verdict
    return {
        "case_id": replay.request.case_id,
        "trace_id": replay.request.trace_id,
        "replay_id": replay.replay_id,
        "label": verdict.label if verdict else None,
        "reason": verdict.reason if verdict else None,
        "strength": verdict.strength if verdict else None,
        "best_relevant_position": replay.best_relevant_position,
        "implicated": list(verdict.implicated) if verdict else [],
    }
