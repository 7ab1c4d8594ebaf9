"""What commands print with: progress on stderr after a second, output any terminal can take."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from retrospan_collector.clickhouse.connection import open_store
from retrospan_evaluator.cli.console import PROGRESS_AFTER_S, Progress, print_json, progress


class Screen(StringIO):
    """Collects what is written and says when a text stands in it."""

    def __init__(self, awaited: str) -> None:
        super().__init__()
        self._awaited = awaited
        self.shown = threading.Event()

    def write(self, text: str) -> int:
        written = super().write(text)
        if self._awaited in self.getvalue():
            self.shown.set()
        return written


def terminal(screen: StringIO) -> Console:
    return Console(file=screen, force_terminal=True, width=80, markup=False, highlight=False)


def test_progress_is_shown_after_a_second_with_what_is_done() -> None:
    screen = Screen("replaying 2/3")
    with Progress("asking", terminal(screen), total=3) as shown:
        shown.advance()
        shown.say("replaying")
        shown.advance()
        assert screen.getvalue() == ""
        assert screen.shown.wait(PROGRESS_AFTER_S + 20)
    assert "asking" not in screen.getvalue()


def test_what_is_done_sooner_shows_no_progress() -> None:
    screen = Screen("asking")
    with Progress("asking", terminal(screen)):
        pass
    assert screen.getvalue() == ""


def test_a_label_from_a_trace_moves_no_terminal() -> None:
    screen = Screen("asking <U+202E>")
    with Progress("asking \u202e[bold]", terminal(screen)):
        assert screen.shown.wait(PROGRESS_AFTER_S + 20)
    assert "\u202e" not in screen.getvalue() and "[bold]" in screen.getvalue()


def test_nothing_is_shown_where_stderr_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    begun = threading.active_count()
    with progress("asking") as shown:
        shown.advance()
        for timer in threading.enumerate()[begun:]:
            timer.join(PROGRESS_AFTER_S + 20)
    assert capsys.readouterr() == ("", "")


def test_json_is_one_line_for_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"answer": "مرحبا", "lines": "a\nb"})
    assert capsys.readouterr().out == '{"answer": "مرحبا", "lines": "a\\nb"}\n'


@pytest.mark.parametrize(
    ("words", "check"),
    [
        (["doctor", "--json"], lambda out: json.loads(out)["checks"]),
        (["doctor"], lambda out: "\\u2192 start" in out),
    ],
    ids=["json", "text"],
)
def test_a_terminal_without_unicode_gets_what_it_can_show(
    tmp_path: Path, words: list[str], check: Callable[[str], object]
) -> None:
    url = f"embedded:{tmp_path / 'مجلد'}"
    open_store(url).close()
    ran = subprocess.run(
        [sys.executable, "-m", "retrospan_evaluator", *words, "--store", url],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert ran.returncode == 0, ran.stderr
    assert check(ran.stdout.decode("ascii"))
