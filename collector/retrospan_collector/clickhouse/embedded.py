"""The engine inside this process: chdb behind clickhouse-connect, one directory a process.

The engine is never forked after it is loaded (its threads do not survive it), takes half a
second to import, and knows no memory limit of its own.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from retrospan_collector.errors import EngineMissing, StoreUnreachable

if TYPE_CHECKING:
    from clickhouse_connect.driver.client import Client

DATABASE = "retrospan"
"""Our database in the engine; its own `default` also resolves file names as tables."""

GIB = 2**30


def open_handle(engine_path: Path, settings: dict[str, object]) -> Client:
    """A handle on the engine in a directory, which the calling thread keeps for itself."""
    try:
        import clickhouse_connect

        return clickhouse_connect.get_client(
            interface="chdb",
            path=str(engine_path),
            database=DATABASE,
            settings=settings,
            tz_mode="aware",
            chdb_options={"max_server_memory_usage": str(engine_memory_cap())},
        )
    except ImportError as error:
        raise EngineMissing(
            f"expected the embedded engine for {engine_path.parent} and it is not installed: "
            "pip install 'retrospan-collector[embedded]', or use a clickhouse:// store"
        ) from error
    except Exception as error:
        raise StoreUnreachable(
            f"expected an engine's files in {engine_path} and it could not open them: {error}"
        ) from error


def create_database(engine_path: Path) -> None:
    """Make our database where it is missing: handles refuse to open without it."""
    engine_path.mkdir(parents=True, exist_ok=True)
    try:
        import chdb
    except ImportError:
        return  # `open_handle` says it better
    connection = chdb.connect(f"{engine_path}?max_server_memory_usage={engine_memory_cap()}")
    try:
        connection.query(f"CREATE DATABASE IF NOT EXISTS {DATABASE} ENGINE = Atomic")
    finally:
        connection.close()


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
