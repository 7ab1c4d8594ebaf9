"""Stores full of requests, made once by the engine itself and kept between benchmarks.

"Ten million stored requests" are ten million rows in `requests`, spread over four weeks up to
now, with the texts of the collection they were answered from, and with spans for the newest
100,000 of them: spans for all would be 80 GB.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import resources
from pathlib import Path
from string import Template
from typing import Final

from retrospan_collector.clickhouse.connection import Store, open_store
from retrospan_collector.clickhouse.migrations import migrations
from tests.benchmarks.measurement import Say
from tests.benchmarks.words import words

STALE_AFTER: Final = timedelta(days=14)
"""A store is made anew then: its week up to now is no longer now, and spans expire at 30 days."""

REQUESTS_PER_INSERT: Final = 200_000
SPANS_OF_PER_INSERT: Final = 20_000
BYTES_PER_REQUEST: Final = 800
BYTES_PER_TRACED_REQUEST: Final = 5_000
"""Measured on disk, rounded up."""

_FILLED: Final = ("otel_traces", "touched", "requests", "passage_texts")

_MAKING: Final[dict[str, object]] = {
    "max_memory_usage": 3_000_000_000,
    "max_block_size": 8_192,
    # One part an insert: small ones would be written again and again by merges.
    "min_insert_block_size_rows": 200_000,
    "min_insert_block_size_bytes": 800_000_000,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What a store holds."""

    requests: int
    """Rows in `requests`."""
    traced: int
    """How many requests, the newest first, have their spans in `otel_traces`."""
    passages: int
    """Texts in the collection they were answered from."""
    window: timedelta
    """From the oldest request to the newest, evenly."""

    @property
    def name(self) -> str:
        """These numbers in a file name."""
        hours = round(self.window / timedelta(hours=1))
        return f"requests-{self.requests}-traced-{self.traced}-of-{self.passages}-in-{hours}h"

    @property
    def gap_us(self) -> int:
        """Microseconds from one request to the next."""
        return self.window // timedelta(microseconds=1) // max(self.requests, self.traced)

    @property
    def disk_bytes(self) -> int:
        """About as much as making it needs, which is twice what stays: merged parts go later."""
        rows = self.requests * BYTES_PER_REQUEST + self.traced * BYTES_PER_TRACED_REQUEST
        return 2 * rows + self.passages * 400


TEN_MILLION: Final = Contents(
    requests=10_000_000, traced=100_000, passages=1_000_000, window=timedelta(days=28)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRequests:
    """An open store and where its requests lie in time."""

    store: Store
    contents: Contents
    newest: datetime
    """No request began after that."""


def trace_id_of(number: int) -> str:
    """The trace id of a request; 0 is the newest."""
    return hashlib.md5(f"trace {number}".encode()).hexdigest()


@contextmanager
def stored_requests(contents: Contents, say: Say = lambda line: None) -> Iterator[StoredRequests]:
    """A store with these contents, made if it is not cached; nothing else may open it meanwhile."""
    folder = cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    directory = folder / f"{contents.name}-schema-{_schema_digest()}"
    with _alone(folder / f"{contents.name}.lock"):
        newest = _newest_of(directory)
        if newest is None:
            for outdated in folder.glob(f"{contents.name}-schema-*"):
                shutil.rmtree(outdated)
            newest = _make(directory, contents, say)
        with open_store(f"embedded:{directory}") as store:
            _complete(store)
            yield StoredRequests(store=store, contents=contents, newest=newest)


def cache_folder() -> Path:
    """Where stores are kept: RETROSPAN_BENCHMARK_CACHE, else in the user's cache directory."""
    chosen = os.environ.get("RETROSPAN_BENCHMARK_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "retrospan" / "benchmarks"


def _schema_digest() -> str:
    """The schema's number, and a hash over the tables that are filled here and what fills them.

    What else changes under one number, as it does between releases, needs no new rows.
    """
    tables = [
        statement
        for statement in _schema()
        if statement.startswith(tuple(f"CREATE TABLE IF NOT EXISTS {name}\n" for name in _FILLED))
    ]
    texts = [*tables, *map(_sql, ("definitions", "facts", "requests", "spans", "texts"))]
    digest = hashlib.sha256("".join(texts).encode()).hexdigest()[:8]
    return f"{migrations()[-1].version}-{digest}"


def _schema() -> list[str]:
    return [statement for migration in migrations() for statement in migration.statements]


def _complete(store: Store) -> None:
    """Give a cached store the tables that came since under the same schema number."""
    for statement in _schema():
        store.command(statement)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _newest_of(directory: Path) -> datetime | None:
    """When the newest request of a cached store began; None when it is not whole or too old."""
    try:
        made: dict[str, str] = json.loads((directory / "made.json").read_text())
    except FileNotFoundError:
        return None
    newest = datetime.fromisoformat(made["newest"])
    return newest if datetime.now(UTC) - newest < STALE_AFTER else None


def _make(directory: Path, contents: Contents, say: Say) -> datetime:
    free = shutil.disk_usage(directory.parent).free
    if free < contents.disk_bytes:
        raise SystemExit(
            f"expected {contents.disk_bytes >> 30} GiB free in {directory.parent} and found "
            f"{free >> 30}: name another place with RETROSPAN_BENCHMARK_CACHE"
        )
    say(f"making {contents.name} in {directory}")
    newest = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=1)
    with open_store(f"embedded:{directory}") as store:
        _fill(store, contents, newest, say)
        _merge_closed_weeks(store, newest, say)
        _wait_for_merges(store)
    (directory / "made.json").write_text(json.dumps({"newest": newest.isoformat()}))
    return newest


def _fill(store: Store, contents: Contents, newest: datetime, say: Say) -> None:
    parameters = {
        "words": words(),
        "corpus": contents.passages,
        "newest_us": int(newest.timestamp() * 1e6),
        "gap_us": contents.gap_us,
    }
    if contents.requests:
        store.command(_statement("texts"), parameters, _MAKING)
    for name, total, step in (
        ("requests", contents.requests, REQUESTS_PER_INSERT),
        ("spans", contents.traced, SPANS_OF_PER_INSERT),
    ):
        began = time.monotonic()
        for first in reversed(range(0, total, step)):
            part = {"first": first, "count": min(step, total - first)}
            store.command(_statement(name), {**parameters, **part}, _MAKING)
            say(f"{name}: {total - first} of {total}, {time.monotonic() - began:.0f} s")


def _merge_closed_weeks(store: Store, newest: datetime, say: Say) -> None:
    """Each week that is over becomes one part, as closed weeks are to be kept; not this one."""
    monday = newest.date() - timedelta(days=newest.weekday())
    weeks = store.query(
        "SELECT DISTINCT partition AS week FROM system.parts "
        "WHERE database = currentDatabase() AND table = 'requests' AND active "
        "AND partition < {monday:String} ORDER BY week",
        {"monday": monday.isoformat()},
    )
    for row in weeks:
        say(f"merging the week of {row['week']}")
        store.command(f"OPTIMIZE TABLE requests PARTITION '{row['week']}' FINAL")


def _wait_for_merges(store: Store) -> None:
    """Until the engine has merged what it wants to, as it has in a store at rest."""
    quiet = 0
    while quiet < 4:
        (row,) = store.query("SELECT count() AS running FROM system.merges")
        quiet = 0 if row["running"] else quiet + 1
        time.sleep(0.5)


def _statement(name: str) -> str:
    definitions = _sql("definitions")
    facts = Template(_sql("facts")).substitute(definitions=definitions)
    return Template(_sql(name)).substitute(definitions=definitions, facts=facts)


def _sql(name: str) -> str:
    return (resources.files("tests.benchmarks") / "sql" / f"{name}.sql").read_text("utf-8")
