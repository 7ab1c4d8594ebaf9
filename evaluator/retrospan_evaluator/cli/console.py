"""What the commands print with: answers on stdout, errors and progress on stderr."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout
from contextvars import ContextVar
from types import TracebackType
from typing import TextIO

from rich.console import Console
from rich.text import Text

from retrospan_evaluator import untrusted

PROGRESS_AFTER_S = 1.0
"""A command that is done sooner shows no progress."""

_ANSWERS: ContextVar[TextIO | None] = ContextVar("_ANSWERS", default=None)
"""Where answers go while stdout is not left to whoever prints."""


@contextmanager
def stdout_for_answers() -> Iterator[None]:
    """Let only `output` and `print_json` reach stdout; what else is printed goes to stderr.

    For commands that run a user's code, which may print: whoever reads the answer must not have
    to tell it from that. What is written to the file descriptor is sent aside as well, because
    libraries in C and started programs do so.
    """
    with ExitStack() as stack:
        answers = _kept_apart(sys.stdout, stack)
        stack.callback(_ANSWERS.reset, _ANSWERS.set(answers))
        stack.enter_context(redirect_stdout(sys.stderr))
        yield


def _kept_apart(stdout: TextIO, stack: ExitStack) -> TextIO:
    """Stdout under a descriptor of its own, while the one it had leads to stderr."""
    try:
        usual, aside = stdout.fileno(), sys.stderr.fileno()
    except (OSError, ValueError):
        return stdout  # a stream that Python holds by itself
    stdout.flush()
    kept = os.dup(usual)
    stack.callback(os.close, kept)
    stack.callback(os.dup2, kept, usual)
    os.dup2(aside, usual)
    answers = open(kept, "w", encoding=stdout.encoding, errors=stdout.errors, closefd=False)
    stack.callback(answers.close)
    return answers


def output() -> Console:
    """The console for a command's answer; plain where stdout is not a terminal.

    Nothing is read as markup, emoji codes or highlights: what is printed is what is shown.
    """
    return Console(file=_ANSWERS.get(), markup=False, emoji=False, highlight=False)


def print_json(document: object) -> None:
    """Print one JSON document on stdout: on one line for a program, indented for a person."""
    stream = _ANSWERS.get() or sys.stdout
    encoding = (stream.encoding or "ascii").lower()
    indent = 2 if stream.isatty() else None
    ascii_only = not encoding.startswith("utf")
    text = untrusted.json_text(document, ascii_only=ascii_only, indent=indent)
    print(text, file=stream, flush=True)


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
