"""`retrospan traces`: the newest recorded requests."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer
from rich.cells import cell_len
from rich.text import Text

from retrospan_evaluator.cli import options
from retrospan_evaluator.cli.console import output, print_json
from retrospan_evaluator.cli.layout import shorten
from retrospan_evaluator.cli.reading import reading
from retrospan_evaluator.errors import UsageError
from retrospan_evaluator.traces.document import list_document
from retrospan_evaluator.traces.reader import RequestFilter, TraceReader
from retrospan_evaluator.traces.request import RequestSummary

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_INDENT = "    "
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("traces")(traces)


def traces(
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=10_000, metavar="N", help="How many at most.")
    ] = 20,
    since: Annotated[
        str, typer.Option("--since", metavar="AGE", help="How far back: 30m, 12h, 7d or 4w.")
    ] = "7d",
    service: Annotated[
        str, typer.Option("--service", metavar="NAME", help="Only this service's requests.")
    ] = "",
    run: Annotated[
        str, typer.Option("--run", metavar="RUN_ID", help="Only the requests of this run.")
    ] = "",
    replays: Annotated[
        bool, typer.Option("--replays", help="Also the requests that replays recorded.")
    ] = False,
    store: options.Store = options.DEFAULT_STORE,
    json: options.Json = False,
) -> None:
    """List the newest requests."""
    now = datetime.now(UTC)
    began = now - min(age(since), now - _EPOCH)
    only = RequestFilter(service=service, run_id=run, replays=replays)
    with reading(store) as opened:
        reader = TraceReader(opened)
        found = reader.latest(limit, began, only)
        older = None if found else reader.newest(only)
    if json:
        print_json(list_document(began, found))
        return
    console = output()
    for line in request_lines(found, console.width) or [_nothing(since, older)]:
        console.print(line, soft_wrap=True)


def age(typed: str) -> timedelta:
    """The span of time that `7d` and the like say; UsageError when it says none."""
    match = re.fullmatch(r"([0-9]{1,5})([mhdw])", typed)
    if match is None:
        raise UsageError(
            f"--since expects a number and a unit m, h, d or w, got {typed!r}: "
            "write for instance 12h or 7d"
        )
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


def request_lines(found: Sequence[RequestSummary], width: int) -> list[Text]:
    """Two lines a request: when, which, how much was kept; then its system or run, its question."""
    lines = []
    for summary in found:
        line = Text(f"{summary.started_at.astimezone(UTC):%Y-%m-%d %H:%M:%S}  ")
        line.append(shorten(summary.trace_id, 32), style="cyan").append(f"  {_kept(summary)}")
        if summary.status == "error":
            line.append("  failed", style="red")
        lines += [line, Text(_INDENT + _about(summary, width - len(_INDENT)), style="dim")]
    return lines


def _kept(summary: RequestSummary) -> str:
    if summary.kept is None:
        return f"{summary.candidates} found, kept unknown"
    return f"{summary.kept} of {summary.candidates} kept"


def _about(summary: RequestSummary, room: int) -> str:
    """Each part is shortened by itself: what one holds must not reorder the others."""
    if summary.run_id is None:
        parts = [shorten(summary.system_name or summary.service, 24)]
    else:
        parts = [shorten(f"{summary.run_id} {summary.case_id or ''}", 44)]
    taken = sum(cell_len(part) + 3 for part in parts)
    question = summary.question if summary.question is not None else "(question not recorded)"
    return " · ".join([*parts, shorten(question, max(16, room - taken))])


def _nothing(since: str, older: datetime | None) -> Text:
    if older is None:
        return Text("No request is recorded that matches.")
    return Text(
        f"No request that matches in the last {since}; the newest began "
        f"{older.astimezone(UTC):%Y-%m-%d %H:%M} UTC: look further back with --since."
    )
