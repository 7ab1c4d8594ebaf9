"""The service: a receiver in this process and the store's owner as its child."""

from __future__ import annotations

import os
import selectors
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from types import FrameType

import orjson

from retrospan_collector.child import ChildProcess
from retrospan_collector.clickhouse.failures import nothing_answers
from retrospan_collector.clickhouse.ownership import OwnerNote, read_note
from retrospan_collector.errors import StoreError, StoreUnreachable
from retrospan_collector.folders import OTHER_FOLDER, kept_in
from retrospan_collector.ports import LOOPBACK
from retrospan_collector.receiver import Receiver, ReceiverPorts, SpoolLock
from retrospan_collector.sharing import ServiceShare, starting_alone
from retrospan_collector.spool import SpoolDirectory
from retrospan_collector.store_url import EmbeddedStore, ServedStore, StoreUrl, parse_store_url
from retrospan_collector.supervisor import DRAIN_S, OwnerSupervisor
from retrospan_collector.troubles import Troubles

READY = "ready"
"""The last line a starting service announces."""

SHARED = "shared"
"""What a temporary service says that should end and is still used by other commands."""

_KNOCK_S = 10.0
"""As long as the driver gives a server to accept a connection."""

_OWNER_RETURNS_S = 20.0
"""How long a command waits for an owner that is being started again."""

_STARTS_WITHIN_S = 180.0
"""A service that is not ready by then never will be; a large store opens in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """What `serve` can be told."""

    store: str
    """The store's URL."""
    otlp_grpc_port: int = 4317
    """Loopback port of OTLP over gRPC; 0 picks a free one."""
    otlp_http_port: int = 4318
    """Loopback port of OTLP over HTTP; 0 picks a free one."""
    clickhouse_port: int = 0
    """Loopback port of an embedded store's ClickHouse interface; 0 picks a free one."""
    spool: Path | None = None
    """The spool directory; by default inside an embedded store, else ./retrospan-spool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """Where a running service answers."""

    otlp_grpc: str
    """`host:port`."""
    otlp_http: str
    """`host:port`."""
    clickhouse: str
    """`host:port`, or the redacted URL of a served store."""


def serve(
    options: ServeOptions,
    announce: Callable[[str], None],
    *,
    until: Callable[[], object] | None = None,
) -> None:
    """Run the service until SIGTERM, SIGINT or the return of `until`, then insert what is left.

    One that ends with `until` is temporary: a command started it for itself, and nobody is told
    to stop it. Announces one line an address and then `ready`. Must be called in the main thread,
    because it handles signals.
    """
    store = parse_store_url(options.store)
    if isinstance(store, ServedStore):
        _knock(store)
    spool = SpoolDirectory(options.spool or _default_spool(store))
    state = _state_path(store, spool.path)
    receiver = Receiver(
        spool,
        grpc_port=options.otlp_grpc_port,
        http_port=options.otlp_http_port,
        temporary=until is not None,
    )
    events: SimpleQueue[OwnerNote | StoreError | None] = SimpleQueue()
    owner = OwnerSupervisor(
        lambda port: _owner_arguments(spool, port),
        options.store,
        state,
        options.clickhouse_port,
        events.put,
        Troubles(spool.path),
    )
    with _stopped_by_signals(events, until):
        try:
            with receiver, _published(state, spool, receiver.ports):
                announce(f"otlp-grpc: {LOOPBACK}:{receiver.ports.grpc}")
                announce(f"otlp-http: {LOOPBACK}:{receiver.ports.http}")
                owner.start()
                while (event := events.get()) is not None:
                    if isinstance(event, StoreError):
                        raise event
                    announce(f"clickhouse: {event.clickhouse}")
                    announce(READY)
        finally:
            # After the receiver, whose last segments it has yet to insert.
            owner.stop()


def running_service(store_url: str) -> Endpoints | None:
    """The service that runs for a store; None when there is none.

    `clickhouse` is empty while the service's owner is being started again.
    """
    state = state_path(store_url)
    try:
        note = orjson.loads((state / "receiver.json").read_bytes())
        if not SpoolLock.held(Path(note["spool"])):
            return None
        otlp_grpc, otlp_http = str(note["otlp_grpc"]), str(note["otlp_http"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    owner = read_note(state)
    clickhouse = owner.clickhouse if owner else ""
    return Endpoints(otlp_grpc=otlp_grpc, otlp_http=otlp_http, clickhouse=clickhouse)


@contextmanager
def service_for(store_url: str) -> Iterator[Endpoints]:
    """The running service of a store, or a temporary one for as long as the block lasts.

    A temporary one that another command has started is shared, and outlives that command for
    as long as it is.
    """
    share = ServiceShare(state_path(store_url))
    with ExitStack() as stack:
        stack.callback(share.release)
        with starting_alone(state_path(store_url)):
            endpoints = _answering(store_url)
            if endpoints is None:
                endpoints = stack.enter_context(temporary_service(store_url))
        # Before a service of our own is asked to end.
        stack.callback(share.release)
        yield endpoints


def _answering(store_url: str) -> Endpoints | None:
    """The running service, once its store answers; None when none runs."""
    running = running_service(store_url)
    deadline = time.monotonic() + _OWNER_RETURNS_S
    while running is not None and not running.clickhouse and time.monotonic() < deadline:
        time.sleep(0.1)
        running = running_service(store_url)
    if running is not None and not running.clickhouse:
        raise StoreUnreachable(
            f"a service runs for {parse_store_url(store_url)} and its store does not answer: "
            "`retrospan doctor` says why"
        )
    return running


@contextmanager
def temporary_service(store_url: str) -> Iterator[Endpoints]:
    """A service on free ports; leaving the block inserts what is left and ends it.

    It ends in the same way when this process dies, because it watches the pipe between them.
    While others use it, it stays and this process goes its way.
    """
    ports = [
        *("--otlp-grpc-port", "0", "--otlp-http-port", "0", "--clickhouse-port", "0"),
        "--until-stdin-closes",
    ]
    child = ChildProcess(["serve", *ports], store=store_url, conversing=True)
    try:
        yield _announced(child)
    finally:
        assert child.process.stdin is not None
        child.process.stdin.close()
        if _is_shared(child):
            child.leave()
        elif not child.wait(DRAIN_S + 10):
            raise StoreError(
                f"the temporary service of {parse_store_url(store_url)} did not end and was "
                "killed: what it received is in the spool, and the next service inserts it"
            )


def _is_shared(child: ChildProcess) -> bool:
    """Whether a temporary service says that it stays; False once it ends or says nothing."""
    stdout = child.process.stdout
    assert stdout is not None
    with selectors.DefaultSelector() as selector:  # not select: it knows no descriptor over 1023
        selector.register(stdout, selectors.EVENT_READ)
        heard = selector.select(DRAIN_S)
    return bool(heard) and stdout.readline().strip() == SHARED


def _announced(child: ChildProcess) -> Endpoints:
    """Read a starting service's lines up to `ready`; one that never says so is killed."""
    lines: dict[str, str] = {}
    assert child.process.stdout is not None
    overdue = threading.Timer(_STARTS_WITHIN_S, child.process.kill)
    overdue.start()
    try:
        for line in child.process.stdout:
            name, _, address = line.strip().partition(": ")
            if name == READY:
                child.release()
                return Endpoints(
                    otlp_grpc=lines["otlp-grpc"],
                    otlp_http=lines["otlp-http"],
                    clickhouse=lines["clickhouse"],
                )
            lines[name] = address
    finally:
        overdue.cancel()
    raise StoreError(child.failure())


def _owner_arguments(spool: SpoolDirectory, port: int) -> list[str]:
    return [
        *("owner", "--spool", str(spool.path.absolute())),
        *("--clickhouse-port", str(port), "--parent", str(os.getpid())),
    ]


def _knock(store: ServedStore) -> None:
    """Fail at once where nothing listens, before any port is opened or the driver is loaded."""
    try:
        socket.create_connection((store.host, store.port), timeout=_KNOCK_S).close()
    except OSError as error:
        raise nothing_answers(str(store)) from error


def spool_path(store_url: str) -> Path:
    """Where what is received for a store waits: as its service says, else the usual place."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        return Path(orjson.loads((state_path(store_url) / "receiver.json").read_bytes())["spool"])
    return _default_spool(parse_store_url(store_url)).absolute()


def state_path(store_url: str) -> Path:
    """Where a service for this store says that it runs, unless it was given another spool."""
    store = parse_store_url(store_url)
    return _state_path(store, _default_spool(store))


def _default_spool(store: StoreUrl) -> Path:
    return store.spool_path if isinstance(store, EmbeddedStore) else Path("retrospan-spool")


def _state_path(store: StoreUrl, spool: Path) -> Path:
    """Where receiver and owner say that they run: beside the data, or in the spool if it is far."""
    return store.state_path if isinstance(store, EmbeddedStore) else spool


@contextmanager
def _published(state: Path, spool: SpoolDirectory, ports: ReceiverPorts) -> Iterator[None]:
    """Say in `receiver.json` where this receiver listens, for as long as it does."""
    path = state / "receiver.json"
    note = {
        "pid": os.getpid(),
        "otlp_grpc": f"{LOOPBACK}:{ports.grpc}",
        "otlp_http": f"{LOOPBACK}:{ports.http}",
        "spool": str(spool.path.absolute()),
    }
    draft = path.with_suffix(f".{os.getpid()}.tmp")
    with kept_in(state, "the store's state", OTHER_FOLDER):
        state.mkdir(parents=True, exist_ok=True)
        draft.write_bytes(orjson.dumps(note))
        draft.replace(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


@contextmanager
def _stopped_by_signals(
    events: SimpleQueue[OwnerNote | StoreError | None], until: Callable[[], object] | None
) -> Iterator[None]:
    """Put None among the events on SIGTERM, on SIGINT and on the return of `until`.

    A queue and not an event: only its `put` may be called by a signal handler that interrupts
    the thread which waits.
    """

    def handle(number: int, frame: FrameType | None) -> None:
        events.put(None)

    def wait(until: Callable[[], object]) -> None:
        try:
            until()
        finally:
            events.put(None)

    if until is not None:
        threading.Thread(target=wait, args=(until,), name="until", daemon=True).start()
    before = {s: signal.signal(s, handle) for s in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
