"""The subject of a replay: the stored request, and what is known about its right answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from retrospan_collector.clickhouse.connection import Store
from retrospan_evaluator.errors import RefusedError
from retrospan_evaluator.replay.execution import Subject
from retrospan_evaluator.replay.gold import resolve_gold
from retrospan_evaluator.replay.judge import judge_of
from retrospan_evaluator.replay.recorded_run import RunReader
from retrospan_evaluator.traces.reader import TraceReader


def subject_of(
    store: Store,
    trace_id: str,
    *,
    root_span_id: str | None = None,
    expect: str | None = None,
    gold: Sequence[str] = (),
    gold_texts: Mapping[str, str] | None = None,
) -> Subject:
    """The request of a trace with its judge and its gold: what was typed, else its case's.

    Raises:
        UnknownTrace: nothing is stored under the id.
        RefusedError: the trace is a replay's own.
    """
    request = TraceReader(store).request(trace_id, root_span_id)
    runs = RunReader(store)
    registered = runs.registration(trace_id)
    if registered is not None and registered.kind == "replay":
        original = runs.original_of(registered.run_id.removeprefix("replay:"))
        named = f" {original}" if original else ""
        raise RefusedError(
            f"trace {trace_id} is itself an arm of a replay: replay the original{named} instead"
        )
    case = None if registered is None else runs.case_of(registered)
    return Subject(
        request=request,
        judge=judge_of(case, expect),
        gold=resolve_gold(request, case, gold, gold_texts or {}),
        case_id="" if registered is None else registered.case_id,
    )
