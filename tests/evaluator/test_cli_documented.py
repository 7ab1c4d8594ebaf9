"""The README's section on commands is what the commands say of themselves.

Run this file as a program to write the help of every command into the section again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from retrospan_evaluator import settings
from retrospan_evaluator.cli.app import COMMANDS, app
from retrospan_evaluator.cli.check import Check
from retrospan_evaluator.cli.doctor import check_document
from retrospan_evaluator.traces.document import list_document, request_document
from retrospan_evaluator.traces.request import RecordedPassage, RecordedRequest, RequestSummary

README = Path(__file__).resolve().parents[2] / "evaluator" / "README.md"
HELP_BLOCK = re.compile(r"^```console\n\$ retrospan (.*?)--help\n(.*?)^```$", re.M | re.S)
MOMENT = datetime(2026, 12, 1, tzinfo=UTC)


def section() -> str:
    """The text from `## Commands` to the next heading of its rank."""
    return README.read_text(encoding="utf-8").split("\n## Commands\n")[1].split("\n## ")[0]


def help_of(*words: str) -> str:
    result = CliRunner(env={"COLUMNS": "80"}).invoke(app, [*words, "--help"], prog_name="retrospan")
    assert result.exit_code == 0, result.output
    return "\n".join(line.rstrip() for line in result.stdout.splitlines()) + "\n"


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_the_help_in_the_readme_is_the_help_of_the_command(command: str) -> None:
    shown = {found[1].strip(): found[2] for found in HELP_BLOCK.finditer(section())}
    assert shown[command] == help_of(*command.split())


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_and_option_is_documented(command: str) -> None:
    _, _, rest = section().partition(f"### `retrospan {command}`\n")
    own = rest.split("\n### ")[0]
    loaded = typer.main.get_command(app).get_command(None, command)  # type: ignore[attr-defined]
    names = [name for parameter in loaded.params for name in parameter.opts]
    assert names and [name for name in names if name not in own] == []
    assert "--json" in names and "--store" in names


def test_every_variable_of_the_environment_is_documented() -> None:
    named = [value for name, value in vars(settings).items() if name.endswith("_VARIABLE")]
    assert named and [value for value in named if f"`{value}" not in section()] == []


def keys(document: object) -> Iterator[str]:
    if isinstance(document, dict):
        for key, value in document.items():
            yield key
            yield from keys(value)
    elif isinstance(document, list):
        for value in document:
            yield from keys(value)


def sample_documents() -> list[dict[str, Any]]:
    known = {"trace_id": "a", "root_span_id": "b", "service": "c", "started_at": MOMENT}
    passage = RecordedPassage(position=1, id="d", document_id="d")
    return [
        request_document(RecordedRequest(**known, passages=(passage,))),  # type: ignore[arg-type]
        list_document(MOMENT, [RequestSummary(**known)]),  # type: ignore[arg-type]
        check_document(Check(name="schema", status="ok", found="version 3")),
    ]


def test_every_key_of_the_machine_output_is_documented() -> None:
    text = section()
    emitted = {key for document in sample_documents() for key in keys(document)}
    assert sorted(key for key in emitted if f'"{key}"' not in text) == []


def write_help() -> None:
    """Put what the commands say now into the README's help blocks."""

    def block(found: re.Match[str]) -> str:
        words = found[1]
        return f"```console\n$ retrospan {words}--help\n{help_of(*words.split())}```"

    text = README.read_text(encoding="utf-8")
    README.write_text(HELP_BLOCK.sub(block, text), encoding="utf-8")


if __name__ == "__main__":
    write_help()
