"""What a run left in the store besides its requests: registrations, cases, scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from retrospan_collector.clickhouse.connection import Store
from retrospan_collector.clickhouse.evaluation_rows import RunRow
from retrospan_collector.clickhouse.rows import from_row
from retrospan_collector.clickhouse.sample_key import sample_key
from retrospan_evaluator.errors import RefusedError, UsageError
from retrospan_evaluator.testsets.case import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionResult:
    """One criterion's word on one request of a run."""

    trace_id: str
    value: float | None
    failure: str


class RunReader:
    """Finds runs, the cases they ran, and how those were scored."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def run(self, run_id: str) -> tuple[RunRow, ...]:
        """What was registered for a run, in the order of case and repeat."""
        rows = self._query("run", {"run_id": run_id})
        if not rows:
            raise RefusedError(
                f"there is no run {run_id!r} in this store: "
                f"give the run id that `retrospan run` printed{self._latest()}"
            )
        found = [from_row(RunRow, row) for row in rows]
        return tuple(sorted(found, key=lambda row: (row.case_id, row.repeat)))

    def registration(self, trace_id: str) -> RunRow | None:
        """The run a trace was registered for; None for live traffic."""
        rows = self._query(
            "registration", {"trace_id": trace_id, "sample_key": sample_key(trace_id)}
        )
        return from_row(RunRow, rows[0]) if rows else None

    def cases(self, dataset_version: str, case_ids: Sequence[str]) -> Mapping[str, Case]:
        """The stored cases by id; one that was not stored is left out."""
        rows = self._query(
            "cases", {"dataset_version": dataset_version, "case_ids": sorted(set(case_ids))}
        )
        return {row["CaseId"]: Case.from_json(row["Content"]) for row in rows}

    def case_of(self, registered: RunRow) -> Case | None:
        """The case that a registered request answered, as the run stored it."""
        found = self.cases(registered.dataset_version, [registered.case_id])
        return found.get(registered.case_id)

    def original_of(self, replay_id: str) -> str | None:
        """The trace that a replay replayed."""
        rows = self._query("original", {"replay_id": replay_id})
        return str(rows[0]["OriginalTraceId"]) if rows else None

    def results(self, run_id: str, criterion: str) -> tuple[CriterionResult, ...]:
        """A criterion's results, one a request; UsageError where the run was not scored by it."""
        rows = self._query("scores", {"run_id": run_id, "name": criterion})
        if not rows:
            known = [row["Name"] for row in self._query("criteria", {"run_id": run_id})]
            raise UsageError(
                f"--criterion {criterion!r}: run {run_id!r} was not scored by it: "
                f"take one of {', '.join(known) or 'none, for it has no scores'}"
            )
        return tuple(
            CriterionResult(trace_id=row["TraceId"], value=row["Value"], failure=row["Failure"])
            for row in rows
        )

    def _latest(self) -> str:
        newest = [row["RunId"] for row in self._query("latest_runs", {})]
        return f", for instance {', '.join(newest)}" if newest else "; none is stored yet"

    def _query(self, name: str, parameters: Mapping[str, object]) -> list[dict[str, Any]]:
        statement = files(__package__).joinpath("queries", f"{name}.sql").read_text("utf-8")
        return self._store.query(statement, parameters)
