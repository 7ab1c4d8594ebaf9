"""`retrospan demo`: the whole idea on a shipped example, told to somebody who is new to it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Annotated

import typer
from rich.text import Text

from retrospan_evaluator.cli import driving, options
from retrospan_evaluator.cli.console import output, print_json, progress
from retrospan_evaluator.cli.diagnose import count_lines, recovery
from retrospan_evaluator.cli.ladder import ladder
from retrospan_evaluator.cli.layout import wrap
from retrospan_evaluator.cli.replay_page import fact
from retrospan_evaluator.cli.run import failed_results, metric_lines
from retrospan_evaluator.demo import SYSTEM, Demonstration, demonstrate
from retrospan_evaluator.identifiers import Identifiers
from retrospan_evaluator.replay.judge import ANSWER_CORRECT
from retrospan_evaluator.replay.report import ReplayReport
from retrospan_evaluator.untrusted import Typed, command_line

KEPT_STORE = "embedded:./retrospan-demo"
"""Proposed to somebody who wants to look at the demo's requests afterwards."""

_INTRODUCTION = (
    "support_rag is a small help desk that comes with retrospan. For a question it ranks its 14 "
    "help pages by the words they share with it (retrieval), puts the best two into a prompt of "
    "at most 40 words (assembly), and answers with one sentence of what it was given "
    "(generation). Every question below was one request, recorded the way a system in "
    "production is: OpenTelemetry spans, over OTLP, into a ClickHouse store."
)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("demo")(demo)


def demo(
    store: Annotated[
        str | None,
        typer.Option(
            "--store", metavar="URL", help="Keep the data here; without it nothing is kept."
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Run the shipped example, find out which stage lost each wrong answer, and try a fix."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="retrospan-demo-"))
        collecting = stack.enter_context(driving.collecting(store or f"embedded:{folder}/data"))
        shown = stack.enter_context(progress("demo"))
        found = demonstrate(
            collecting.store,
            collecting.otlp_grpc,
            identifiers=Identifiers(),
            now=datetime.now(UTC),
            say=shown.say,
        )
    if json:
        print_json(found.to_json())
        return
    console = output()
    for line in demo_page(found, store, console.width):
        console.print(line, soft_wrap=True)


def demo_page(found: Demonstration, store: str | None, width: int) -> Iterator[Text]:
    """The story, step by step; every figure in it was just measured."""
    yield from _heading("What you are looking at")
    yield from _prose(_INTRODUCTION, width)
    yield from _scores(found, width)
    if found.example is not None:
        yield from _one_request(found.example, width)
        yield from _replays(found, width)
        yield from _experiment(found, width)
    yield from _next(found, store, width)


def _scores(found: Demonstration, width: int) -> Iterator[Text]:
    cases = len(found.run.results)
    yield from _heading(f"1. {cases} questions whose answers are known")
    yield from metric_lines(found.run.metrics, width)
    wrong = len(failed_results(found.run, ANSWER_CORRECT))
    scores = [result.score(ANSWER_CORRECT) for result in found.run.results]
    right = sum(score is not None and score.passed is True for score in scores)
    yield Text("")
    yield from _prose(
        f"{right} of {cases} answers are right. {wrong} are wrong, and the figures do not "
        "say why: was the page not found, ranked too low, left out of the prompt, or misread?",
        width,
    )


def _one_request(example: ReplayReport, width: int) -> Iterator[Text]:
    request = example.request
    yield from _heading("2. One wrong answer, as it was recorded")
    yield from fact("question", request.question or "", width)
    yield from fact("expected", example.expected or "", width)
    yield from fact("answered", request.answer or "", width)
    yield Text("")
    yield from ladder(request, width)
    position = example.best_relevant_position
    if position is None:
        return
    relevant = request.passages[position - 1]
    yield Text("")
    fate = "was put into the prompt" if relevant.prompt_position else "never reached the prompt"
    yield from _prose(
        f"The ladder lists what was retrieved, best first, and where it was cut. The page with "
        f"the answer is {relevant.id}: retrieved at position {position}, it {fate}.",
        width,
    )


def _replays(found: Demonstration, width: int) -> Iterator[Text]:
    yield from _heading(f"3. The {len(found.diagnosis.replays)} wrong answers, replayed")
    yield from _prose(
        "A replay runs the recorded request again and changes one thing; nothing is retrieved "
        "anew. The control changes nothing, so it must fail again. The gold context gives the "
        "generator the page with the answer and nothing else. Below them two larger settings.",
        width,
    )
    yield Text("")
    yield from count_lines(found.diagnosis, width, every_label=True)
    yield Text("")
    yield from _prose(
        f"The context budget is implicated in {found.budget_implicated} of the {found.recovered} "
        "that the gold context recovers.",
        width,
    )


def _experiment(found: Demonstration, width: int) -> Iterator[Text]:
    yield from _heading("4. The obvious fix, tried without deploying it")
    tried = found.diagnosis.arms[1:]
    for arm in tried:
        name = arm.intervention.replace("token-budget", "token budget")
        yield Text(f"  {name} {recovery(arm)}")
    yield Text("")
    if any(arm.recovered for arm in tried):
        finding = "A larger setting recovers some of them: a candidate, to be run on all questions."
    else:
        finding = (
            f"In {found.restored} of them the dropped page is back in the prompt, and the answer "
            "stays wrong: beside it stands a page that shares more words with the question, and "
            "support_rag believes that one. The larger budget is not the fix here, and that is "
            "known without a deployment."
        )
    yield from _prose(finding, width)


def _next(found: Demonstration, store: str | None, width: int) -> Iterator[Text]:
    yield from _heading("What to type next")
    if store is None:
        yield from _prose("To look around in these requests yourself, keep them:", width)
        yield _command("retrospan", "demo", options=[("--store", Typed(KEPT_STORE))])
    elif found.example is not None:
        where = ("--store", Typed(store))
        trace_id = found.example.request.trace_id
        system = ("--system", Typed(SYSTEM))
        yield _command("retrospan", "traces", options=[where])
        yield _command("retrospan", "trace", trace_id, options=[where])
        yield _command("retrospan", "replay", trace_id, options=[system, where])
        yield _command("retrospan", "diagnose", found.run.run_id, options=[system, where])
    yield Text("")
    yield from _prose(
        "For a system of your own: decorate its class with retrospan.rag_system, then", width
    )
    yield _command("retrospan", "run", "DATASET", options=[("--system", Typed("module:Class"))])


def _heading(text: str) -> Iterator[Text]:
    yield Text("")
    yield Text(text, style="bold")
    yield Text("")


def _prose(text: str, width: int) -> Iterator[Text]:
    for line in wrap(text, min(width, 96)):
        yield Text(line)


def _command(*words: str, options: Sequence[tuple[str, str | int | Typed]]) -> Text:
    return Text(f"  {command_line(*words, options=options)}", style="cyan")
