"""A subprocess of this program whose failure to start is one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

SENTENCE_MARK = "retrospan-collector: "
"""Before the sentence with which this program ends when it cannot do what it was asked."""


class ChildProcess:
    """`python -m retrospan_collector …` in a session of its own.

    Ctrl-C in a terminal reaches every process of a session, and the order of stopping is ours.
    What the child writes to stderr is held back until `release`, so that a child that cannot
    start is reported once, by its parent.
    """

    def __init__(self, arguments: Sequence[str], *, store: str, conversing: bool = False) -> None:
        """Start it.

        Args:
            arguments: The subcommand and its options.
            store: The store's URL, handed on in the environment: it can hold a password, and any
                user of the machine may read a command line.
            conversing: Open pipes to its stdin and from its stdout.
        """
        pipe = subprocess.PIPE if conversing else subprocess.DEVNULL
        self._name = " ".join(["retrospan_collector", *arguments[:1]])
        self.process = subprocess.Popen(
            # -P: a json.py in the working directory must not stand in for Python's own.
            [sys.executable, "-P", "-m", "retrospan_collector", *arguments],
            stdin=pipe,
            stdout=pipe,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env=os.environ | {"RETROSPAN_STORE": store},
        )
        self._held: deque[str] = deque(maxlen=500)
        self._released = False
        self._lock = threading.Lock()
        self._pump = threading.Thread(target=self._forward, name="child-stderr", daemon=True)
        self._pump.start()

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self.process.pid

    def release(self) -> None:
        """Pass on what it wrote to stderr, and from now on at once."""
        with self._lock:
            self._released = True
            _say("".join(self._held))
            self._held.clear()

    def failure(self) -> str:
        """Why it ended before it was of use: its own sentence if it gave one.

        What else it wrote is passed on, as it would have been had it gone on.
        """
        code = self.process.wait()
        self._pump.join()
        with self._lock:
            said = [line for line in self._held if line.startswith(SENTENCE_MARK)]
            if said:
                self._held.remove(said[-1])
        self.release()
        if said:
            return said[-1].removeprefix(SENTENCE_MARK).strip()
        return f"{self._name} ended with code {code} before it was ready"

    def stop(self, timeout_s: float) -> bool:
        """Ask it to end and wait; False if it had to be killed."""
        self.process.terminate()
        return self.wait(timeout_s)

    def leave(self) -> None:
        """Let it go on by itself; it is reaped if it ends while this process is still here."""
        threading.Thread(target=self.process.wait, name="child-left", daemon=True).start()

    def wait(self, timeout_s: float) -> bool:
        """Wait for its end and free its pipes; False if it had to be killed."""
        try:
            self.process.wait(timeout_s)
            in_time = True
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            in_time = False
        self._pump.join()
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            if pipe is not None:
                pipe.close()
        return in_time

    def _forward(self) -> None:
        stream: IO[str] | None = self.process.stderr
        for line in stream or ():
            with self._lock:
                if self._released:
                    _say(line)
                else:
                    self._held.append(line)


def _say(text: str) -> None:
    # Whoever read our stderr may be gone; a child whose pipe nobody empties would stand still.
    with suppress(OSError):
        sys.stderr.write(text)
