"""The receiving half of the service: both servers over one spool, without the engine.

It shares nothing with the store's owner but the spool directory, so it goes on acknowledging
while a query takes the engine down.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from retrospan_collector.errors import StoreInUse
from retrospan_collector.folders import OTHER_FOLDER, kept_in
from retrospan_collector.otlp.grpc_server import start_grpc_server
from retrospan_collector.otlp.http_server import serve_http
from retrospan_collector.otlp.intake import TraceIntake
from retrospan_collector.otlp.limits import Limits
from retrospan_collector.ports import LOOPBACK, listen
from retrospan_collector.segment_writer import SegmentWriter
from retrospan_collector.spool import SpoolDirectory
from retrospan_collector.spool_recovery import Recovery, recover

_LOCK_NAME = "receiver.lock"

_TEMPORARY = " temporary"
"""Behind the process id in the lock."""

_GRACE_S = 5.0
"""For calls that have begun when the receiver stops."""


@dataclass(frozen=True, slots=True)
class ReceiverPorts:
    """Where a running receiver listens, on the loopback address."""

    grpc: int
    http: int


class Receiver:
    """Both OTLP servers over one spool, from entering to leaving.

    Entering takes the spool, recovers what a dead receiver left in it and binds the ports;
    leaving answers what has begun, seals every segment and lets the spool go.
    """

    def __init__(
        self,
        spool: SpoolDirectory,
        *,
        grpc_port: int = 0,
        http_port: int = 0,
        limits: Limits | None = None,
        temporary: bool = False,
        sync: Callable[[int], None] = os.fsync,
    ) -> None:
        """Prepare; nothing is taken yet.

        Args:
            spool: Where requests go.
            grpc_port: Loopback port; 0 picks a free one.
            http_port: Loopback port; 0 picks a free one.
            limits: Bounds on size and time.
            temporary: It ends with the commands that use it, and nobody may stop it before.
            sync: Makes a file durable before its requests are answered.
        """
        self._spool = spool
        self._asked = ReceiverPorts(grpc_port, http_port)
        self._limits = limits or Limits()
        self._temporary = temporary
        self._sync = sync
        self.recovered = Recovery()
        """What entering found left open."""

    @property
    def ports(self) -> ReceiverPorts:
        """Where it listens, once entered."""
        return self._ports

    def __enter__(self) -> Self:
        self._lock = SpoolLock(self._spool, temporary=self._temporary)
        try:
            with kept_in(self._spool.path, "received traces", OTHER_FOLDER):
                self.recovered = recover(self._spool)
            # grpcio can only bind by itself and does not say why it could not: ask first.
            listen("otlp-grpc", self._asked.grpc).close()
            self._http_socket = listen("otlp-http", self._asked.http)
            with kept_in(self._spool.path, "received traces", OTHER_FOLDER):
                self._writer = SegmentWriter(self._spool, sync=self._sync)
            try:
                self._start()
            except BaseException:
                self._writer.close()
                raise
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._writer.close()
        self._lock.release()

    def _start(self) -> None:
        started: Future[ReceiverPorts] = Future()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(started)), name="receiver", daemon=True
        )
        self._thread.start()
        self._ports = started.result()

    async def _serve(self, started: Future[ReceiverPorts]) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        http_port = self._http_socket.getsockname()[1]
        intake = TraceIntake(self._writer, self._limits)
        try:
            grpc_server, grpc_port = await start_grpc_server(intake, LOOPBACK, self._asked.grpc)
        except BaseException as error:
            self._http_socket.close()
            started.set_exception(error)
            return
        http = asyncio.create_task(serve_http(intake, self._http_socket, self._stop.wait))
        started.set_result(ReceiverPorts(grpc_port, http_port))
        await self._stop.wait()
        await asyncio.gather(grpc_server.stop(_GRACE_S), http)


class SpoolLock:
    """The right to write to a spool: one receiver at a time, however it was started."""

    def __init__(self, spool: SpoolDirectory, *, temporary: bool = False) -> None:
        """Take the lock; StoreInUse names the process that has it.

        Args:
            temporary: Written down, because nobody should be told to stop such a service.
        """
        path = spool.path / _LOCK_NAME
        with kept_in(spool.path, "received traces", OTHER_FOLDER):
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        if not _lock(self._descriptor):
            os.close(self._descriptor)
            raise StoreInUse(_in_use(path))
        holder = f"{os.getpid()}{_TEMPORARY if temporary else ''}"
        with kept_in(spool.path, "received traces", OTHER_FOLDER):
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, holder.encode(), 0)

    def release(self) -> None:
        """Let the next receiver have the spool."""
        os.close(self._descriptor)

    @staticmethod
    def held(spool: Path) -> bool:
        """Whether a receiver has the spool now. A lock, unlike a process id, is never stale."""
        try:
            descriptor = os.open(spool / _LOCK_NAME, os.O_RDONLY)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False


def _in_use(path: Path) -> str:
    holder, _, kind = path.read_text(encoding="ascii").partition(" ")
    taken = f"the spool {path.parent} is in use by process {holder or 'that is just starting'}"
    if kind == _TEMPORARY.strip():
        return (
            f"{taken}, which serves a command that is running now (run, replay, diagnose or demo): "
            "wait for that command to end and begin again"
        )
    return (
        f"{taken}: a service runs for this store already and every command uses it; "
        "stop it to start another"
    )


def _lock(descriptor: int) -> bool:
    """Take the lock; patient for a moment, because `held` has it while it looks."""
    for attempt in range(5):
        if attempt:
            time.sleep(0.02)
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
    return False
