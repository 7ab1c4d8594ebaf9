"""The public names through a type checker, as somebody's application would see them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from tests.instrumentation import typing_consumer

CONSUMER = Path(typing_consumer.__file__)
WRONG = """
from retrospan import Passage, assemble, configure, generate, request, retrieve

@retrieve
def search(query: str) -> list[str]:
    return [query]

search(3)
search("q").upper()
retrieve(depht=3)
generate(model=3)
request(input="q")
assemble([Passage("a")], rule="greedy")
Passage("a").text = "b"
configure(service_name="s", capture="everything")
"""


def checked(*arguments: str) -> subprocess.CompletedProcess[str]:
    """mypy, strict, with no configuration of ours, as an application runs it."""
    pytest.importorskip("mypy", reason="no type checker is installed")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--no-error-summary"]
    return subprocess.run(
        [*command, *arguments], capture_output=True, text=True, timeout=110, check=False
    )


def test_decorated_functions_and_classes_keep_their_types(tmp_path: Path) -> None:
    copy = tmp_path / "consumer.py"
    copy.write_text(CONSUMER.read_text(encoding="utf-8"), encoding="utf-8")
    done = checked(f"--cache-dir={tmp_path / 'cache'}", str(copy))
    assert (done.returncode, done.stdout) == (0, "")


def test_what_the_consumer_says_of_types_holds_when_it_runs() -> None:
    typing_consumer.use()
    asyncio.run(typing_consumer.use_async())


def test_wrong_uses_are_found_by_the_type_checker(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG, encoding="utf-8")
    done = checked(f"--cache-dir={tmp_path / 'cache'}", str(wrong))
    found = {int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line}
    expected = {number for number, line in enumerate(WRONG.splitlines(), 1) if number >= 8 and line}
    assert found == expected, done.stdout
