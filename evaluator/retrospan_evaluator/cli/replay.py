"""`retrospan replay`: one recorded request again, under other settings, to see what failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

import typer

from retrospan_evaluator.cli import driving, options
from retrospan_evaluator.cli.console import output, print_json, progress
from retrospan_evaluator.cli.reading import refuse_unwritten, typed_span_id, typed_trace_id
from retrospan_evaluator.cli.replay_page import replay_page
from retrospan_evaluator.identifiers import Identifiers
from retrospan_evaluator.replay.arms import Intervention, interventions
from retrospan_evaluator.replay.execution import check_repeats
from retrospan_evaluator.replay.experiments import TypedReplay, experiments
from retrospan_evaluator.replay.gold import read_gold_files
from retrospan_evaluator.replay.replaying import diagnosis_row, replay_requests
from retrospan_evaluator.replay.report import ReplayReport
from retrospan_evaluator.replay.subjects import subject_of

_Expect = Annotated[
    str | None, typer.Option("--expect", metavar="TEXT", help="What a right answer contains.")
]
_Gold = Annotated[
    list[str] | None,
    typer.Option(
        "--gold", metavar="ID", help="A passage or document with the answer; may come again."
    ),
]
_GoldPassage = Annotated[
    list[str] | None,
    typer.Option("--gold-passage", metavar="ID=FILE", help="Its text, where no trace holds it."),
]
_Root = Annotated[
    str | None,
    typer.Option("--root", metavar="SPAN_ID", help="Which request, where the trace holds several."),
]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("replay")(replay)


def replay(
    trace_id: Annotated[str, typer.Argument(metavar="TRACE_ID", help="32 hexadecimal digits.")],
    system: driving.System,
    expect: _Expect = None,
    gold: _Gold = None,
    gold_passage: _GoldPassage = None,
    top_k: driving.TopK = None,
    token_budget: driving.TokenBudget = None,
    repeats: driving.Repeats = None,
    root: _Root = None,
    store: options.Store = options.DEFAULT_STORE,
    json: options.Json = False,
) -> None:
    """Replay a recorded request: control, gold context, and one arm for each setting.

    The system's generator runs again on the recorded passages; its retriever is never called.
    """
    wanted = typed_trace_id(trace_id)
    typed = TypedReplay(
        system=system,
        expect=expect,
        gold=driving.typed(gold),
        gold_passages=driving.typed(gold_passage),
        root=typed_span_id(root),
        store=tuple(driving.store_option(store)),
    )
    asked = interventions(driving.typed(top_k), driving.typed(token_budget))
    report = _replayed(wanted, typed, asked, repeats, store)
    if json:
        print_json(report.to_json())
        return
    console = output()
    for line in replay_page(report, console.width):
        console.print(line, soft_wrap=True)


def _replayed(
    trace_id: str,
    typed: TypedReplay,
    asked: Sequence[Intervention],
    repeats: int | None,
    store: str,
) -> ReplayReport:
    texts = read_gold_files(typed.gold_passages)
    system = driving.imported(typed.system)
    check_repeats(repeats, deterministic=system.settings.deterministic)
    refuse_unwritten(store)
    now = datetime.now(UTC)
    # Read through the collector too: to open an embedded store before it starts the engine twice.
    with driving.collecting(store) as collecting, progress("replaying"):
        subject = subject_of(
            collecting.store,
            trace_id,
            root_span_id=typed.root,
            expect=typed.expect,
            gold=typed.gold,
            gold_texts=texts,
        )
        (found,) = replay_requests(
            [subject],
            asked,
            system,
            collecting.store,
            collecting.otlp_grpc,
            identifiers=Identifiers(),
            now=now,
            repeats=repeats,
        )
        report = replace(found, experiments=experiments(found, typed))
        if report.verdict is not None:
            collecting.store.insert("diagnoses", [diagnosis_row(report, now)])
    return report
