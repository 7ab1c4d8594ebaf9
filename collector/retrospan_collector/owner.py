"""The owner: the one process that writes to a store, and for an embedded one holds the engine."""

from __future__ import annotations

import argparse
import ctypes
import logging
import os
import secrets
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from queue import Empty, SimpleQueue
from types import FrameType

from retrospan_collector.assembler.loop import Assembler
from retrospan_collector.clickhouse.connection import Store, open_engine, open_store
from retrospan_collector.clickhouse.ownership import (
    OwnerNote,
    last_note,
    remove_note,
    write_note,
)
from retrospan_collector.errors import StoreError
from retrospan_collector.face.engine import FaceEngine
from retrospan_collector.face.server import FaceServer
from retrospan_collector.folders import OTHER_FOLDER, kept_in, reason
from retrospan_collector.ports import listen, port
from retrospan_collector.spool import SpoolDirectory
from retrospan_collector.store_url import EmbeddedStore, parse_store_url
from retrospan_collector.troubles import Part, Troubles
from retrospan_collector.writer import Writer
from retrospan_collector.writer_lock import WriterLock

logger = logging.getLogger(__name__)

ROUND_S = 0.25
"""From the end of a round to the next; a round with nothing to do costs a look into a folder."""

DRAIN_S = 45.0
"""How long a stop waits for sealed segments to be inserted; the rest stays in the spool."""

_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerOptions:
    """What an owner is told when it is started."""

    store: str
    """The store's URL."""
    spool: Path
    """The spool directory whose segments it inserts."""
    clickhouse_port: int = 0
    """Loopback port of an embedded store's ClickHouse interface; 0 picks a free one."""


def main(argv: Sequence[str]) -> int:
    """Own a store until SIGTERM, SIGINT or the death of the parent process."""
    parser = argparse.ArgumentParser(prog="retrospan-collector owner", allow_abbrev=False)
    parser.add_argument("--store", required=True, metavar="URL")
    parser.add_argument("--spool", required=True, type=Path, metavar="DIRECTORY")
    parser.add_argument("--clickhouse-port", type=port, default=0)
    parser.add_argument("--parent", type=int, default=os.getppid(), metavar="PID")
    given = parser.parse_args(argv)
    options = OwnerOptions(
        store=_absolute(given.store),
        spool=given.spool.absolute(),
        clickhouse_port=given.clickhouse_port,
    )
    logging.basicConfig(level=logging.WARNING, format="%(name)s: %(message)s")
    for driver in ("clickhouse_connect", "urllib3"):
        # They log every failure that they then raise, and we say each in a sentence.
        logging.getLogger(driver).setLevel(logging.CRITICAL + 1)
    stop: SimpleQueue[None] = SimpleQueue()
    _stop_on_signals(stop)
    _stop_with_parent(stop, given.parent)
    _move_beside_the_data(options.store)
    own(options, stop, given.parent)
    return 0


def _absolute(store: str) -> str:
    """The URL as it reads from any folder; this process does not stay in the one it began in."""
    target = parse_store_url(store)
    return str(target) if isinstance(target, EmbeddedStore) else store


def _move_beside_the_data(store: str) -> None:
    """Work in the engine's folder: it leaves a cache of our schemas wherever the process stands."""
    target = parse_store_url(store)
    if isinstance(target, EmbeddedStore):
        with suppress(OSError):  # opening the store says in one sentence what is wrong with it
            target.engine_path.mkdir(parents=True, exist_ok=True)
            os.chdir(target.engine_path)


def own(options: OwnerOptions, stop: SimpleQueue[None], parent: int) -> None:
    """Write and assemble until `stop` gets an item, then insert what is sealed and leave cleanly.

    A queue and not an event: a signal handler may put into it while the same thread waits on it.

    Args:
        parent: the process with which this owner ends.
    """
    spool = SpoolDirectory(options.spool)
    with WriterLock(spool, parent) as lock:
        while not lock.taken():
            if _asked_to_stop(stop, within_s=0.1):
                return
        _write_and_assemble(options, spool, stop)


def _write_and_assemble(
    options: OwnerOptions, spool: SpoolDirectory, stop: SimpleQueue[None]
) -> None:
    with _opened(options) as store:
        troubles = Troubles(spool.path)
        with kept_in(spool.path, "received traces", OTHER_FOLDER):
            writer = Writer(store, spool)
        assembler = Assembler(store)
        loops = [
            _Loop("writer", lambda: writer.round().inserted > 0, troubles),
            _Loop("assembler", lambda: assembler.round(datetime.now(UTC)).behind, troubles),
        ]
        while not _asked_to_stop(stop) and all(loop.alive for loop in loops):
            pass
        for loop in loops:
            loop.stop()
        with kept_in(spool.path, "received traces", OTHER_FOLDER):
            _drain(writer)
            assembler.round(datetime.now(UTC))
            writer.close()


@contextmanager
def _opened(options: OwnerOptions) -> Iterator[Store]:
    """The store, with the note that says where it answers for as long as it does."""
    target = parse_store_url(options.store)
    with ExitStack() as stack:
        token = address = ""
        if isinstance(target, EmbeddedStore):
            # The port first: a taken one should be said before the engine is loaded for nothing.
            listening = listen("clickhouse", options.clickhouse_port)
            stack.callback(listening.close)
            store = stack.enter_context(open_engine(target, "owner"))
            token = _token(target)
            face = FaceServer(FaceEngine(target.engine_path), token, listening)
            stack.callback(face.stop)
            address, state = face.address, target.state_path
        else:
            store = stack.enter_context(open_store(options.store))
            address, state = str(target), options.spool
        write_note(state, OwnerNote(os.getpid(), str(target), address, token))
        stack.callback(remove_note, state)
        yield store


def _token(target: EmbeddedStore) -> str:
    """The token of an owner that was killed, so that its clients go on with this one."""
    before = last_note(target.state_path)
    return (before.token if before is not None else "") or secrets.token_urlsafe(32)


def _asked_to_stop(stop: SimpleQueue[None], within_s: float = 0.5) -> bool:
    try:
        stop.get(timeout=within_s)
    except Empty:
        return False
    return True


def _drain(writer: Writer) -> None:
    deadline = time.monotonic() + DRAIN_S
    while writer.round().inserted and time.monotonic() < deadline:
        pass


class _Loop:
    """Rounds of one kind of work in a thread, until it is stopped.

    A round that fails is logged and comes again: the store may be away for a while, or the disk
    full. Any other error ends the loop, and with it the owner, which is then restarted.
    """

    def __init__(self, part: Part, work: Callable[[], bool], troubles: Troubles) -> None:
        self._part = part
        self._work = work
        self._troubles = troubles
        self._stop = threading.Event()
        self._said = ""
        self._thread = threading.Thread(target=self._run, name=part, daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether rounds still happen."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Let the round that runs end, and no other begin."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                more = self._work()
                self._said = ""
                self._troubles.worked(self._part)
            except (StoreError, OSError) as error:
                more = False
                self._failed(reason(error) if isinstance(error, OSError) else str(error))
            if not more:
                self._stop.wait(ROUND_S)

    def _failed(self, sentence: str) -> None:
        self._troubles.failed(self._part, sentence)
        if sentence != self._said:
            logger.warning("%s failed and comes again: %s", self._part, sentence)
            self._said = sentence


def _stop_on_signals(stop: SimpleQueue[None]) -> None:
    def handle(number: int, frame: FrameType | None) -> None:
        stop.put(None)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)


def _stop_with_parent(stop: SimpleQueue[None], parent: int) -> None:
    """Stop when the process that started us is gone: nobody else would.

    It says who it is, because it may be gone before we can ask.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        stop.put(None)

    threading.Thread(target=watch, name="parent-watch", daemon=True).start()
