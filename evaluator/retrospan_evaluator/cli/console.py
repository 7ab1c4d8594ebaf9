"""What the commands print with: answers on stdout, errors and progress on stderr."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from rich.console import Console
from rich.text import Text

from retrospan_evaluator import untrusted

PROGRESS_AFTER_S = 1.0
"""A command that is done sooner shows no progress."""


def output() -> Console:
    """The console for a command's answer; plain where stdout is not a terminal.

    Nothing is read as markup, emoji codes or highlights: what is printed is what is shown.
    """
    return Console(markup=False, emoji=False, highlight=False)


def print_json(document: object) -> None:
    """Print one JSON document on stdout: on one line for a program, indented for a person."""
    encoding = (sys.stdout.encoding or "ascii").lower()
    indent = 2 if sys.stdout.isatty() else None
    ascii_only = not encoding.startswith("utf")
    print(untrusted.json_text(document, ascii_only=ascii_only, indent=indent), flush=True)


def print_error(sentence: str) -> None:
    """Print one sentence on stderr, whatever characters it quotes."""
    print(f"retrospan: {untrusted.terminal_cell(sentence)}", file=sys.stderr)


class Progress:
    """A line on the terminal that says what is going on; silent where nobody watches."""

    def __init__(self, label: str, console: Console, total: int | None = None) -> None:
        self._label = label
        self._total = total
        self._done = 0
        self._status = console.status(self._text())
        self._lock = threading.Lock()
        self._open = True
        self._timer = threading.Timer(PROGRESS_AFTER_S, self._show)
        self._timer.daemon = True

    def __enter__(self) -> Progress:
        self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        with self._lock:
            self._open = False
            self._status.stop()

    def advance(self, steps: int = 1) -> None:
        """So many more are done."""
        self._done += steps
        self._status.update(self._text())

    def say(self, label: str) -> None:
        """Another step has begun."""
        self._label = label
        self._status.update(self._text())

    def _show(self) -> None:
        with self._lock:
            if self._open:
                self._status.start()

    def _text(self) -> Text:
        counted = "" if self._total is None else f" {self._done}/{self._total}"
        return Text(f"{untrusted.terminal_cell(self._label)}{counted}")


@contextmanager
def progress(label: str, total: int | None = None) -> Iterator[Progress]:
    """Show, once a second has passed, what is being done and how much of it; on stderr.

    Nothing is printed where stderr is not a terminal.
    """
    console = Console(stderr=True, markup=False, emoji=False, highlight=False)
    with Progress(label, console, total) as shown:
        yield shown
