"""The engine inside this process: chdb behind clickhouse-connect, one directory a process.

The engine is never forked after it is loaded (its threads do not survive it), takes half a
second to import, and knows no memory limit of its own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from retrospan_collector.errors import EngineMissing, StoreUnreachable
from retrospan_collector.folders import OTHER_FOLDER, kept_in

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client

DATABASE = "retrospan"
"""Our database in the engine; its own `default` also resolves file names as tables."""

GIB = 2**30


def open_handle(engine_path: Path, settings: dict[str, object]) -> Client:
    """A handle on the engine in a directory, which the calling thread keeps for itself."""
    import clickhouse_connect

    with _engine_opening(engine_path):
        return clickhouse_connect.get_client(
            interface="chdb",
            path=str(engine_path),
            database=DATABASE,
            settings=settings,
            tz_mode="aware",
            chdb_options={"max_server_memory_usage": str(engine_memory_cap())},
        )


def open_connection(engine_path: Path) -> Any:
    """The engine's own connection, without a driver: bytes in, bytes out."""
    with _engine_opening(engine_path):
        import chdb

        path = os.path.realpath(engine_path)
        return chdb.connect(f"{path}?max_server_memory_usage={engine_memory_cap()}")


def start_engine(engine_path: Path) -> Any:
    """Load the engine and prepare its databases; it stays loaded until the result is closed."""
    with kept_in(engine_path, "the engine's files", OTHER_FOLDER):
        engine_path.mkdir(parents=True, exist_ok=True)
    connection = open_connection(engine_path)
    try:
        connection.query(f"CREATE DATABASE IF NOT EXISTS {DATABASE} ENGINE = Atomic")
        _close_file_tables(connection, engine_path)
    except BaseException:
        connection.close()
        raise
    return connection


def _close_file_tables(connection: Any, engine_path: Path) -> None:
    """Replace the engine's `default` database, in which any file's name is a table.

    New connections begin in `default`, so there has to be one. The engine brings its own at each
    start, whatever its metadata say.
    """
    connection.query("DETACH DATABASE IF EXISTS default")
    known = (engine_path / "metadata" / "default.sql").exists()
    connection.query(
        "ATTACH DATABASE default" if known else "CREATE DATABASE default ENGINE = Memory"
    )


@contextmanager
def _engine_opening(engine_path: Path) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise EngineMissing(
            f"expected the embedded engine for {engine_path.parent} and it is not installed: "
            "pip install 'retrospan-collector[embedded]', or use a clickhouse:// store"
        ) from error
    except Exception as error:
        raise StoreUnreachable(
            f"expected an engine's files in {engine_path} and could not open them: {error}"
        ) from error


def engine_memory_cap() -> int:
    """Bytes the whole engine may use: half of what this process can have, 1 to 4 GiB."""
    return max(GIB, min(4 * GIB, _available_memory() // 2))


def _available_memory() -> int:
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
    except (OSError, ValueError):
        return machine
    return min(machine, limit)
