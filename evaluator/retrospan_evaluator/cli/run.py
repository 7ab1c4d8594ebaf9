"""`retrospan run`: a dataset through a system, scored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.cells import cell_len
from rich.text import Text

from retrospan_evaluator.cli import driving, options
from retrospan_evaluator.cli.console import output, print_json, progress
from retrospan_evaluator.cli.layout import pad, shorten
from retrospan_evaluator.cli.replay_page import fact
from retrospan_evaluator.identifiers import Identifiers
from retrospan_evaluator.metrics.summary import MetricSummary
from retrospan_evaluator.replay.judge import ANSWER_CORRECT
from retrospan_evaluator.runs import CaseResult, RunReport, run_dataset
from retrospan_evaluator.statistics.rounding import percent, percent_interval
from retrospan_evaluator.systems import parse_settings, with_settings
from retrospan_evaluator.testsets.dataset import load_dataset
from retrospan_evaluator.token_counts import check_budget_can_count
from retrospan_evaluator.untrusted import Typed, command_line
from retrospan_evaluator.wording import counted

_SHOWN_FAILURES = 10
"""Failed cases that are listed one by one."""


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("run")(run)


def run(
    dataset: Annotated[
        Path, typer.Argument(metavar="DATASET", help="A file with one JSON case a line.")
    ],
    system: driving.System,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Change depth, top_k, token_budget or budget_rule for this run.",
        ),
    ] = None,
    store: options.Store = options.DEFAULT_STORE,
    json: options.Json = False,
) -> None:
    """Send every case of a dataset through a system, as traffic with a run id, and score it."""
    cases = load_dataset(dataset)
    changes = parse_settings(driving.typed(settings))
    bound = with_settings(driving.imported(system), changes)
    check_budget_can_count(bound, cases.cases[0].input)
    with (
        driving.collecting(store) as collecting,
        progress("asking", len(cases.cases)) as shown,
    ):
        report = run_dataset(
            cases,
            bound,
            collecting.store,
            collecting.otlp_grpc,
            identifiers=Identifiers(),
            now=datetime.now(UTC),
            settings=changes,
            advance=shown.advance,
        )
    if json:
        print_json(report.to_json())
        return
    console = output()
    for line in run_page(report, system, store, console.width):
        console.print(line, soft_wrap=True)


def run_page(report: RunReport, system: str, store: str, width: int) -> Iterator[Text]:
    """The metrics with their intervals, the failed cases, and what can be typed next."""
    yield Text(f"run {report.run_id}", style="bold")
    yield Text(
        f"{shorten(report.system, 60)}, {counted(len(report.results), 'case')} of {_name(report)}"
    )
    yield Text("")
    yield from metric_lines(report.metrics, width)
    yield from unanswered_lines(report, width)
    failed = failed_results(report, ANSWER_CORRECT)
    if not failed:
        return
    yield Text("")
    yield Text(f"{counted(len(failed), 'case')} failed {ANSWER_CORRECT}", style="bold")
    shown = [(shorten(r.case.id, 40), r.request.trace_id) for r in failed[:_SHOWN_FAILURES]]
    widest = max(cell_len(case_id) for case_id, _ in shown)
    for case_id, trace_id in shown:
        yield Text(f"  {pad(case_id, widest)}  {trace_id}")
    if len(failed) > _SHOWN_FAILURES:
        yield Text(f"  and {len(failed) - _SHOWN_FAILURES} more")
    yield Text("")
    yield Text("Next", style="bold")
    where = driving.store_option(store)
    look = command_line("retrospan", "trace", failed[0].request.trace_id, options=where)
    why = command_line(
        "retrospan", "diagnose", report.run_id, options=[("--system", Typed(system)), *where]
    )
    for command in (look, why):
        if command is not None:
            yield Text(f"  {command}", style="cyan")


def unanswered_lines(report: RunReport, width: int) -> Iterator[Text]:
    """Why cases gave no answer: each kind of reason in full, with a case of it to look at."""
    if not report.unanswered:
        return
    cases = len(report.results)
    unanswered = sum(count.cases for count in report.unanswered)
    yield Text("")
    yield Text(f"{unanswered} of {counted(cases, 'case')} gave no answer", style="bold")
    for count in report.unanswered:
        others = count.messages - 1
        more = f" (and {counted(others, 'other message')} of this kind)" if others else ""
        yield from fact(f"  {counted(count.cases, 'case')}", f"{count.example}{more}", width)
        yield from fact("", f"for instance {count.case_id}, trace {count.trace_id}", width)


def failed_results(report: RunReport, criterion: str) -> list[CaseResult]:
    """The cases that a criterion says no to; those it could not measure are not among them."""
    scores = [(result, result.score(criterion)) for result in report.results]
    return [result for result, score in scores if score is not None and score.passed is False]


def metric_lines(metrics: Sequence[MetricSummary], width: int) -> Iterator[Text]:
    """One line a metric: estimate, interval, counts; then what the intervals are."""
    widest = max((len(metric.name) for metric in metrics), default=0)
    for metric in metrics:
        yield Text(f"  {pad(metric.name, widest)}  {_figures(metric)}")
        if metric.n and metric.failed and metric.worst is not None and metric.best is not None:
            limits = f"between {percent(metric.worst)} and {percent(metric.best)}"
            unknown = f"{limits} of all {metric.n + metric.failed}: {metric.failed} not measured"
            yield Text(f"  {' ' * widest}  {unknown}", style="yellow")
    for method in dict.fromkeys(metric.method for metric in metrics if metric.method):
        named = next(metric for metric in metrics if metric.method == method)
        kind = "rates" if named.successes is not None else "means"
        about = f"{named.level * 100:g} % {method} interval; assumes {named.assumption}"
        yield from fact(f"  {kind}", about, width)


def _figures(metric: MetricSummary) -> str:
    if metric.estimate is None or metric.lower is None or metric.upper is None:
        figures = "not measured"
    else:
        limits = percent_interval(metric.lower, metric.upper)
        figures = f"{percent(metric.estimate):>8}  {limits:<18}"
        rate = metric.successes is not None
        figures += f"  {metric.successes} of {metric.n}" if rate else f"  mean of {metric.n}"
        figures += " measured" if metric.failed else ""
    figures += f", {metric.excluded} excluded" if metric.excluded else ""
    if metric.failed:
        figures += f", {metric.failed} of {metric.n + metric.failed} failed"
    return figures


def _name(report: RunReport) -> str:
    return shorten(str(report.dataset.path), 60)
