"""A subprocess of this program whose failure to start is one sentence."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from typing import IO


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
            sys.stderr.write("".join(self._held))
            self._held.clear()

    def failure(self) -> str:
        """Why it ended before it was of use: its own sentence if it gave one."""
        code = self.process.wait()
        self._pump.join()
        with self._lock:
            lines = [line.strip() for line in self._held if line.strip()]
        if code == 1 and len(lines) == 1:
            return lines[0]
        self.release()
        return f"{self._name} ended with code {code} before it was ready"

    def stop(self, timeout_s: float) -> bool:
        """Ask it to end and wait; False if it had to be killed."""
        self.process.terminate()
        return self.wait(timeout_s)

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
                    sys.stderr.write(line)
                else:
                    self._held.append(line)
