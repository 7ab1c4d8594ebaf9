"""The service as a process of its own: started, found in /proc, killed, started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

START_S = 60.0
"""How long a service may take until it is ready, on a busy machine."""

_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


class Service:
    """`retrospan_collector serve` on one embedded store.

    Its ports are chosen freely and, once known, given again by `Service.again`, as a service
    that a process manager starts again has the same ports.
    """

    def __init__(self, store: str, log: Path, *, grpc_port: int = 0, http_port: int = 0) -> None:
        """Start it; nothing is awaited.

        Args:
            log: gets what it writes to stderr.
        """
        self.store = store
        self.log = log
        self._lines: dict[str, str] = {}
        self._announced = threading.Condition()
        with log.open("ab") as stderr:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-P", "-m", "retrospan_collector", "serve"),
                    *("--store", store),
                    *("--otlp-grpc-port", str(grpc_port), "--otlp-http-port", str(http_port)),
                ],
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def again(self) -> Service:
        """Another service on the same store and ports, after this one ended."""
        return Service(
            self.store,
            self.log,
            grpc_port=_port(self.address("otlp-grpc")),
            http_port=_port(self.address("otlp-http")),
        )

    def address(self, name: str) -> str:
        """What it announced under a name (`otlp-grpc`, `otlp-http`, `clickhouse`, `ready`)."""
        if not self.announces(name):
            raise SystemExit(f"the service ended before it said {name}: see {self.log}")
        return self._lines[name]

    def announces(self, name: str) -> bool:
        """Wait until it said the name; False if it ended before."""
        with self._announced:
            said = self._announced.wait_for(
                lambda: name in self._lines or "" in self._lines, START_S
            )
            assert said, f"the service said nothing of {name} for {START_S:g} s"
            return name in self._lines

    @property
    def alive(self) -> bool:
        """Whether the process is there."""
        return self.process.poll() is None

    @property
    def receiver_pid(self) -> int:
        """The receiver is the service's own process."""
        return self.process.pid

    def owner_pid(self) -> int | None:
        """The store's owner, a child of the receiver; None while there is none."""
        for status in Path("/proc").glob("[0-9]*/stat"):
            with suppress(OSError):
                state, parent = status.read_text().rpartition(")")[2].split()[:2]
                if int(parent) == self.receiver_pid and state != "Z":
                    return int(status.parent.name)
        return None

    def kill(self, *pids: int) -> None:
        """Kill -9, in this order; what is gone already is fine."""
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if self.receiver_pid in pids:
            self.process.wait(10)
            self._reader.join()

    def stop(self) -> None:
        """SIGTERM; the service inserts what it has and ends."""
        self.process.terminate()
        try:
            self.process.wait(90)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        finally:
            self._reader.join()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as stdout:
            for line in stdout:
                name, _, address = line.strip().partition(": ")
                self._say(name, address)
        self._say("", "")

    def _say(self, name: str, address: str) -> None:
        with self._announced:
            self._lines[name] = address
            self._announced.notify_all()


@contextmanager
def serving(store: str, log: Path) -> Iterator[Service]:
    """A service that is ready, stopped at the end."""
    service = Service(store, log)
    try:
        service.address("ready")
        yield service
    finally:
        service.stop()


def cpu_s(pid: int) -> float:
    """Seconds of processor time a process has used, in user and system mode."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_A_SECOND


def wait_until(condition: Callable[[], object], what: str, within_s: float = 60) -> None:
    """Look again and again until a condition holds; fail with what was waited for."""
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, f"waited {within_s:g} s in vain for {what}"
        time.sleep(0.02)


def _port(address: str) -> int:
    return int(address.rpartition(":")[2])
