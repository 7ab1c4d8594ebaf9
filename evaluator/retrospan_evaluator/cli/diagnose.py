"""`retrospan diagnose`: every failed case of a run replayed, and the labels counted."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.text import Text

from retrospan_evaluator.cli import driving, options
from retrospan_evaluator.cli.console import output, print_json, progress
from retrospan_evaluator.cli.layout import shorten
from retrospan_evaluator.cli.reading import reading
from retrospan_evaluator.cli.replay_page import MEANINGS, fact, unchanged
from retrospan_evaluator.diagnosis import ArmCount, Diagnosis, diagnose, failed_cases
from retrospan_evaluator.identifiers import Identifiers
from retrospan_evaluator.replay.arms import interventions
from retrospan_evaluator.replay.execution import check_repeats
from retrospan_evaluator.replay.judge import ANSWER_CORRECT
from retrospan_evaluator.replay.verdict import Label
from retrospan_evaluator.untrusted import Typed, command_line
from retrospan_evaluator.wording import counted

_NAME = 24


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("diagnose")(diagnose_run)


def diagnose_run(
    run: Annotated[str, typer.Argument(metavar="RUN", help="The id `retrospan run` printed.")],
    system: driving.System,
    criterion: Annotated[
        str,
        typer.Option("--criterion", metavar="NAME", help="Diagnose the cases that failed it."),
    ] = ANSWER_CORRECT,
    top_k: driving.TopK = None,
    token_budget: driving.TokenBudget = None,
    repeats: driving.Repeats = None,
    store: options.Store = options.DEFAULT_STORE,
    json: options.Json = False,
) -> None:
    """Replay every case of a run that failed, and count which stage lost the answer."""
    asked = interventions(driving.typed(top_k), driving.typed(token_budget))
    bound = driving.imported(system)
    check_repeats(repeats, deterministic=bound.settings.deterministic)
    with reading(store) as opened:
        selection = failed_cases(opened, run, criterion)
    with (
        driving.collecting(store) as collecting,
        progress("replaying", len(selection.subjects)) as shown,
    ):
        diagnosis = diagnose(
            selection,
            asked,
            bound,
            collecting.store,
            collecting.otlp_grpc,
            identifiers=Identifiers(),
            now=datetime.now(UTC),
            repeats=repeats,
            advance=shown.advance,
        )
    if json:
        print_json(diagnosis.to_json())
        return
    console = output()
    for line in diagnosis_page(diagnosis, system, store, console.width):
        console.print(line, soft_wrap=True)


def diagnosis_page(diagnosis: Diagnosis, system: str, store: str, width: int) -> Iterator[Text]:
    """The counts, then a line and a command for every case."""
    selected = len(diagnosis.replays)
    failed = f"{counted(selected, 'case')} failed {diagnosis.criterion}"
    yield Text(f"run {shorten(diagnosis.run_id, 80)}: {failed}", style="bold")
    if diagnosis.not_measured:
        left_out = counted(diagnosis.not_measured, "case has", "cases have")
        yield Text(f"{left_out} no value for it, right or wrong, and cannot be diagnosed")
        for why, cases in diagnosis.why_not_measured.items():
            yield from fact(f"  {counted(cases, 'case')}", why, width)
    if not diagnosis.replays:
        return
    yield Text("")
    yield from count_lines(diagnosis, width)
    yield Text("")
    for replay in diagnosis.replays:
        label = replay.verdict.label if replay.verdict else "no label"
        reason = replay.verdict.reason if replay.verdict else "nothing judges this case"
        yield Text(f"{shorten(replay.request.case_id or '', 40)}: {label} ({reason})", style="bold")
        yield Text(f"  question  {shorten(replay.request.question or '', max(20, width - 12))}")
        yield Text(f"  answered  {shorten(replay.request.answer or '', max(20, width - 12))}")
        if replay.passes_unchanged:
            yield from fact("  now", unchanged(replay), width)
        command = command_line(
            "retrospan",
            "replay",
            replay.request.trace_id,
            options=[("--system", Typed(system)), *driving.store_option(store)],
        )
        yield Text(f"  {command}", style="cyan")


def recovery(arm: ArmCount) -> str:
    """How many cases an arm recovers, of those in which it could be compared."""
    return f"recovers {arm.recovered} of {arm.n}" if arm.n else "could not be compared in any case"


def count_lines(diagnosis: Diagnosis, width: int, *, every_label: bool = False) -> Iterator[Text]:
    """How many cases the control passed, each arm recovered, and each label was given.

    Args:
        every_label: also those that no case was given.
    """
    passed, n = diagnosis.control
    passes = f"{passed} of {n} pass with nothing changed" if n else "gave no answer to judge"
    yield Text(f"{'control':<{_NAME}}{passes}")
    for arm in diagnosis.arms:
        yield Text(f"{arm.intervention:<{_NAME}}{recovery(arm)}")
    yield Text("")
    labels = [str(label) for label in Label] if every_label else list(diagnosis.labels)
    for label in labels:
        count = diagnosis.labels.get(label, 0)
        named = f"{label:<{_NAME}}{count:<4}"
        yield from fact(named, MEANINGS[Label(label)], width, indent=len(named))
