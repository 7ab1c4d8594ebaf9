"""What the distribution promises: its size, its public names, and a README that is true."""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import re
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import pytest

import retrospan
from retrospan import attributes

if TYPE_CHECKING:
    from tests.instrumentation.conftest import OtlpServer

FOLDER = Path(__file__).resolve().parents[2] / "instrumentation"
README = (FOLDER / "README.md").read_text(encoding="utf-8")
FENCES = [(kind, body) for kind, body in re.findall(r"```(\w*)\n(.*?)```", README, re.DOTALL)]
PYTHON = [
    (body, FENCES[at + 1][1] if FENCES[at + 1 : at + 2] and not FENCES[at + 1][0] else "")
    for at, (kind, body) in enumerate(FENCES)
    if kind == "python"
]


def test_the_library_requires_the_opentelemetry_api_and_nothing_else() -> None:
    needed = [line for line in requires("retrospan") or [] if "extra ==" not in line]
    assert [re.split(r"[^a-z-]", line)[0] for line in needed] == ["opentelemetry-api"]


def test_importing_the_library_loads_no_sdk_and_no_server_side() -> None:
    script = "import retrospan, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-I", "-W", "error", "-c", script],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    loaded = done.stdout.split()
    forbidden = ("opentelemetry.sdk", "opentelemetry.exporter", "retrospan_", "google", "grpc")
    assert [name for name in loaded if name.startswith(forbidden)] == []


def test_the_public_names_are_listed_and_sorted() -> None:
    visible = [
        name
        for name, value in vars(retrospan).items()
        if not name.startswith("_") and not isinstance(value, ModuleType)
    ]
    assert retrospan.__all__ == sorted(visible)


@pytest.mark.parametrize("name", retrospan.__all__)
def test_every_public_name_has_a_docstring(name: str) -> None:
    if name in ("BudgetRule", "CaptureMode", "DroppedReason"):  # a Literal has no place for one
        return
    public = getattr(retrospan, name)
    assert inspect.getdoc(public)
    for method, value in vars(public).items() if inspect.isclass(public) else ():
        if inspect.isfunction(value) and not method.startswith("_"):
            assert inspect.getdoc(value), f"{name}.{method}"


def table_rows(text: str) -> dict[str, list[str]]:
    """The rows of every table in a text, by the code in their first cell."""
    rows = re.findall(r"^\| `([^`]+)` \|(.*)\|$", text, re.MULTILINE)
    return {name: [cell.strip() for cell in rest.split("|")] for name, rest in rows}


def test_the_readme_lists_every_attribute_and_no_other() -> None:
    names = {
        value
        for name, value in vars(attributes).items()
        if name.isupper() and isinstance(value, str) and name != "CURRENT_SCHEMA_VERSION"
    }
    listed = table_rows(README.split("## What is recorded")[1].split("\n## ")[0])
    assert set(listed) == names
    assert all(row[1] in ("library", "application") for row in listed.values())


@pytest.mark.parametrize(
    "function",
    [
        retrospan.configure,
        retrospan.generate,
        retrospan.rag_system,
        retrospan.record_context,
        retrospan.request,
        retrospan.retrieve,
    ],
)
def test_the_readme_lists_every_setting_with_its_default(function: object) -> None:
    assert inspect.isfunction(function)
    heading = f"Of `{function.__name__}`:"
    listed = table_rows(README.split(heading)[1].split("\n\n")[1] + "\n")
    parameters = dict(inspect.signature(function).parameters)
    parameters.pop("function", None)  # what a decorator decorates
    assert list(listed) == list(parameters)
    for name, parameter in parameters.items():
        default = parameter.default
        if default is inspect.Parameter.empty:
            assert listed[name][0] == "needed"
        elif name not in ("endpoint", "input"):
            assert listed[name][0] == (
                f'`"{default}"`' if isinstance(default, str) else f"`{default!r}`"
            )


@pytest.mark.parametrize(
    ("code", "printed"), [pair for pair in PYTHON if "configure(" not in pair[0]]
)
def test_the_readmes_examples_print_what_it_says(code: str, printed: str) -> None:
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(compile(code, "README.md", "exec"), {"__name__": "readme"})
    assert output.getvalue() == printed


def test_the_readmes_way_to_a_collector_reaches_one(otlp_server: OtlpServer) -> None:
    [code] = [code for code, _ in PYTHON if "configure(" in code]
    system, _ = PYTHON[0]
    environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": otlp_server.address}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code + system],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(otlp_server.spans()) == 4
