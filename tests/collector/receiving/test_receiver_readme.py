"""The collector's README names every option, limit, line and answer of the receiver."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest

from retrospan_collector.otlp.limits import Limits
from retrospan_collector.otlp.refusals import Refusal
from retrospan_collector.service import ServeOptions
from retrospan_collector.spool import SpoolDirectory

README = Path(__file__).parents[3] / "collector" / "README.md"


@pytest.fixture(scope="module")
def text() -> str:
    return README.read_text(encoding="utf-8")


def test_every_option_of_serve_is_documented_and_no_other(text: str) -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "retrospan_collector", "serve", "--help"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout
    options = {f"--{field.name.replace('_', '-')}" for field in fields(ServeOptions)}
    for option in sorted(options | {"--until-stdin-closes"}):
        assert f"| `{option}" in text
        assert option in shown


def test_every_limit_is_documented_with_its_default(text: str) -> None:
    for field in fields(Limits):
        value = getattr(Limits(), field.name)
        default = f"{value / 2**20:g} MiB" if field.name.endswith("bytes") else f"{value:g} s"
        assert f"| `{field.name}` | {default} |" in text


def test_every_refusal_is_documented(text: str) -> None:
    for refusal in Refusal.__subclasses__():
        assert f"| {refusal.http_status}" in text


def test_every_folder_of_the_spool_is_documented(text: str, spool: SpoolDirectory) -> None:
    for folder in sorted(path.name for path in spool.path.iterdir()):
        assert f"| `{folder}/` |" in text


def test_the_lines_that_serve_prints_are_documented(text: str) -> None:
    for name in ("otlp-grpc: ", "otlp-http: ", "clickhouse: ", "ready\n"):
        assert f"\n{name}" in text
