"""Open a store and talk to it: the one way to ClickHouse, embedded or served."""

from __future__ import annotations

import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from retrospan_collector.clickhouse.embedded import DATABASE, open_handle, start_engine
from retrospan_collector.clickhouse.failures import engine_failures
from retrospan_collector.clickhouse.migrations import migrate
from retrospan_collector.clickhouse.ownership import (
    DirectoryLock,
    OwnerNote,
    Role,
    holder_of,
    read_note,
)
from retrospan_collector.clickhouse.pandas_import import pandas_left_out
from retrospan_collector.clickhouse.parameters import bound
from retrospan_collector.clickhouse.rows import columns, to_row
from retrospan_collector.errors import StoreUnreachable
from retrospan_collector.sharing import ServiceShare
from retrospan_collector.store_url import EmbeddedStore, ServedStore, parse_store_url

if TYPE_CHECKING:
    from _typeshed import DataclassInstance
    from clickhouse_connect.driver.client import Client

DEFAULT_SETTINGS: Mapping[str, object] = {
    # The engine's own defaults: no limit on memory, inserts gathered on the server's side
    # (their deduplication token is then lost), times read in the zone of the machine.
    "max_memory_usage": 2_000_000_000,
    "async_insert": 0,
    "session_timezone": "UTC",
}

for _driver in ("clickhouse_connect", "urllib3"):
    # They warn on stderr of what they raise as well; what is raised is said once, by us.
    logging.getLogger(_driver).addHandler(logging.NullHandler())

OWNER_START_S = 10.0
"""How long a command waits for an owner that is starting to publish where it answers."""


class Store:
    """A store that is open: queries, commands and inserts, from any thread.

    On the embedded engine every thread gets a handle of its own, because one shared handle
    serialises all of them.
    """

    def __init__(
        self,
        address: str,
        connect: Callable[[], Client],
        *,
        shared: bool,
        release: Callable[[], None] = lambda: None,
    ) -> None:
        self.address = address
        """The store's URL without a password, for people."""
        self._connect = connect
        self._shared = connect() if shared else None
        self._release = release
        self._local = threading.local()
        self._clients: weakref.WeakSet[Client] = weakref.WeakSet()
        self._closed = False

    def query(
        self,
        statement: str,
        parameters: Mapping[str, object] | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> list[dict[str, Any]]:
        """The rows of a SELECT, by column name; times are aware, in UTC.

        Parameters stand in the statement as `{name:Type}` and are bound by the engine.
        """
        with engine_failures(self.address):
            result = self._client().query(
                statement, parameters=bound(parameters), settings=_own(settings), query_tz="UTC"
            )
            names = result.column_names
            return [dict(zip(names, row, strict=True)) for row in result.result_rows]

    def command(
        self,
        statement: str,
        parameters: Mapping[str, object] | None = None,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        """Run a statement that returns nothing."""
        with engine_failures(self.address):
            self._client().command(statement, parameters=bound(parameters), settings=_own(settings))

    def insert(self, table: str, rows: Sequence[DataclassInstance]) -> None:
        """Insert rows of one type by column name; none is nothing to do."""
        if not rows:
            return
        client = self._client()
        with engine_failures(self.address):
            context = client.create_insert_context(table, column_names=columns(type(rows[0])))
            with pandas_left_out():
                context.data = [to_row(row) for row in rows]
            client.data_insert(context)

    def insert_bytes(
        self,
        table: str,
        body: bytes,
        data_format: str,
        settings: Mapping[str, object] | None = None,
    ) -> None:
        """Insert a body that is already in one of ClickHouse's formats."""
        with engine_failures(self.address):
            self._client().raw_insert(
                table, insert_block=body, settings=_own(settings), fmt=data_format
            )

    def close(self) -> None:
        """Close every handle and give the directory free; closing twice is harmless."""
        if self._closed:
            return
        self._closed = True
        for client in [*self._clients, *([self._shared] if self._shared else [])]:
            client.close()
        self._release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _client(self) -> Client:
        if self._closed:
            raise StoreUnreachable(f"expected {self.address} to be open and it was closed before")
        if self._shared is not None:
            return self._shared
        client: Client | None = getattr(self._local, "client", None)
        if client is None:
            client = self._local.client = self._connect()
            self._clients.add(client)
        return client


def _own(settings: Mapping[str, object] | None) -> dict[str, Any]:
    return dict(settings or {})


def open_store(url: str) -> Store:
    """The store a URL names, its tables brought to this version's schema.

    An embedded store is reached through its running owner; where none runs this process opens
    the engine itself and owns the directory until the store is closed.
    """
    target = parse_store_url(url)
    if isinstance(target, ServedStore):
        return _migrated(_open_served(target))
    deadline = time.monotonic() + OWNER_START_S
    while True:
        note, holder = read_note(target.state_path), holder_of(target.directory)
        # A dead owner's note may name a process number that another program has by now.
        if note is not None and holder is not None and holder.pid == note.pid:
            share = ServiceShare(target.state_path)
            # The share may have been waited for until a temporary service had ended.
            if read_note(target.state_path) == note:
                return open_face(target, note, share.release)
            share.release()
            continue
        if holder is None or holder.role != "owner" or time.monotonic() > deadline:
            return open_engine(target, "command")
        time.sleep(0.05)


def open_engine(target: EmbeddedStore, role: Role) -> Store:
    """The engine in this process; StoreInUse names the process that has it instead."""
    release = ExitStack()
    with release:
        release.callback(DirectoryLock(target.directory, role).release)
        release.callback(start_engine(target.engine_path).close)
        store = Store(
            str(target),
            lambda: open_handle(target.engine_path, dict(DEFAULT_SETTINGS)),
            shared=False,
            release=release.pop_all().close,
        )
    return _migrated(store)


def open_face(
    target: EmbeddedStore, note: OwnerNote, release: Callable[[], None] = lambda: None
) -> Store:
    """The store through its running owner's HTTP face; `release` is called when it is closed."""
    host, _, port = note.clickhouse.rpartition(":")
    with ExitStack() as failing:
        failing.callback(release)
        store = _open_http(
            str(target),
            release,
            host=host,
            port=int(port),
            username="retrospan",
            password=note.token,
            database=DATABASE,
            compress=False,
        )
        failing.pop_all()
    return _migrated(store)


def _open_served(target: ServedStore) -> Store:
    return _open_http(
        str(target),
        lambda: None,
        host=target.host,
        port=target.port,
        username=target.username,
        password=target.password or _password_from_file(),
        database=target.database,
        secure=target.secure,
    )


def _open_http(address: str, release: Callable[[], None], **where: Any) -> Store:
    def connect() -> Client:
        import clickhouse_connect

        return clickhouse_connect.get_client(
            settings=dict(DEFAULT_SETTINGS),
            tz_mode="aware",
            # A session admits one query at a time, and we have no state to keep in one.
            autogenerate_session_id=False,
            **where,
        )

    with engine_failures(address):
        return Store(address, connect, shared=True, release=release)


def _password_from_file() -> str:
    path = os.environ.get("RETROSPAN_STORE_PASSWORD_FILE")
    if not path:
        return ""
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise StoreUnreachable(
            f"expected the store's password in {path} (RETROSPAN_STORE_PASSWORD_FILE) and could "
            f"not read it: {error.strerror}"
        ) from error


def _migrated(store: Store) -> Store:
    try:
        migrate(store)
    except BaseException:
        store.close()
        raise
    return store
