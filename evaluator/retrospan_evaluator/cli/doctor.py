"""`retrospan doctor`: is this installation well, and what to do where it is not."""

from __future__ import annotations

from datetime import UTC, datetime

import typer
from rich.text import Text

from retrospan_evaluator.cli import options
from retrospan_evaluator.cli.check import Check, Status
from retrospan_evaluator.cli.checks import checks
from retrospan_evaluator.cli.console import output, print_json, progress
from retrospan_evaluator.cli.layout import wrap

_SHOWN: dict[Status, tuple[str, str]] = {
    "ok": ("ok", "green"),
    "note": ("note", "yellow"),
    "problem": ("PROBLEM", "bold red"),
}
_NAME, _STATUS = 14, 9


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("doctor")(doctor)


def doctor(
    store: options.Store = options.DEFAULT_STORE,
    json: options.Json = False,
) -> None:
    """Check the installation and the store.

    Looks at versions, owner, ports, spool, store, schema and last request, and says what to do
    about each. Exits 1 when it finds a problem.
    """
    with progress("looking at the installation and the store"):
        found = list(checks(store, datetime.now(UTC)))
    if json:
        print_json({"version": 1, "checks": [check_document(check) for check in found]})
    else:
        console = output()
        for check in found:
            for line in check_lines(check, console.width):
                console.print(line, soft_wrap=True)
    if any(check.status == "problem" for check in found):
        raise typer.Exit(1)


def check_document(check: Check) -> dict[str, object]:
    """One entry of `doctor --json`."""
    return {
        "name": check.name,
        "status": check.status,
        "found": check.found,
        "advice": check.advice,
    }


def check_lines(check: Check, width: int) -> list[Text]:
    """Name, status and finding, then what to do."""
    word, style = _SHOWN[check.status]
    indent = " " * (_NAME + _STATUS)
    room = max(20, width - len(indent))
    first, *more = wrap(check.found, room)
    lines = [Text.assemble(f"{check.name:<{_NAME}}", (f"{word:<{_STATUS}}", style), first)]
    lines += [Text(indent + line) for line in more]
    if check.advice is not None:
        lines += [Text(indent + line, style="bold") for line in wrap(f"→ {check.advice}", room)]
    return lines
