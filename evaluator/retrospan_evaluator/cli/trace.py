"""`retrospan trace`: one recorded request, its passages as a ladder."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from retrospan_evaluator.cli import options
from retrospan_evaluator.cli.console import output, print_json
from retrospan_evaluator.cli.reading import reading, typed_span_id, typed_trace_id
from retrospan_evaluator.cli.request_page import request_page
from retrospan_evaluator.cli.traces import request_lines
from retrospan_evaluator.traces.document import request_document, roots_document
from retrospan_evaluator.traces.errors import SeveralRequests
from retrospan_evaluator.traces.reader import TraceReader


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("trace")(trace)


def trace(
    trace_id: Annotated[str, typer.Argument(metavar="TRACE_ID", help="32 hexadecimal digits.")],
    root: Annotated[
        str | None,
        typer.Option(
            "--root", metavar="SPAN_ID", help="Which request, where the trace holds several."
        ),
    ] = None,
    text: Annotated[
        bool, typer.Option("--text", help="Show every passage in full, not its beginning.")
    ] = False,
    store: options.Store = options.DEFAULT_STORE,
    json: options.Json = False,
) -> None:
    """Show one request and what became of its passages."""
    wanted, under = typed_trace_id(trace_id), typed_span_id(root)
    with reading(store) as opened:
        try:
            request = TraceReader(opened).request(wanted, under)
        except SeveralRequests as several:
            _show_roots(wanted, several, json)
            return
    if json:
        print_json(request_document(request))
        return
    console = output()
    for line in request_page(request, console.width, whole_texts=text):
        console.print(line, soft_wrap=True)


def _show_roots(trace_id: str, several: SeveralRequests, json: bool) -> None:
    if json:
        print_json(roots_document(trace_id, several.roots))
        return
    console = output()
    console.print(Text(f"Trace {trace_id} holds {len(several.roots)} requests."))
    console.print(Text("Look at one with --root and its root span:"))
    for root in several.roots:
        console.print(Text(f"\n--root {root.root_span_id}", style="bold"), soft_wrap=True)
        for line in request_lines([root], console.width):
            console.print(line, soft_wrap=True)
