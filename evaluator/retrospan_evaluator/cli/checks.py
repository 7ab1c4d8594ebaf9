"""What `retrospan doctor` looks at: each check says what it found and what to do about it.

No check brings a store, a folder or a process into being.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import metadata

from retrospan_collector.clickhouse.connection import Store, open_store
from retrospan_collector.clickhouse.migrations import migrations, schema_version
from retrospan_collector.clickhouse.ownership import JUST_STARTING, OwnerNote, read_note
from retrospan_collector.clickhouse.ownership import holder_of as owner_of
from retrospan_collector.errors import CollectorError, InvalidStoreUrl
from retrospan_collector.folders import OTHER_FOLDER, hindrance, unusable
from retrospan_collector.ports import holder_of as listener_on
from retrospan_collector.service import running_service
from retrospan_collector.store_url import EmbeddedStore, StoreUrl, parse_store_url
from retrospan_evaluator.cli.check import Check, things
from retrospan_evaluator.cli.spool_checks import spool_checks
from retrospan_evaluator.settings import STORE_VARIABLE
from retrospan_evaluator.traces.reader import TraceReader

OTLP_PORTS = {"otlp-grpc": 4317, "otlp-http": 4318}
_OURS = ("retrospan", "retrospan-collector", "retrospan-evaluator")
_BESIDE = ("opentelemetry-sdk", "clickhouse-connect", "chdb")
_SERVE = (
    "start `retrospan serve` and point the application's exporter at it, or try `retrospan demo`"
)


def checks(url: str, now: datetime) -> Iterator[Check]:
    """Everything there is to check about an installation and the store at `url`."""
    yield _versions()
    try:
        target = parse_store_url(url)
    except InvalidStoreUrl as error:
        yield Check(
            name="store",
            status="problem",
            found=str(error),
            advice=f"correct --store or {STORE_VARIABLE}",
        )
        return
    yield owner_check(target, url)
    yield from _ports(url)
    yield from spool_checks(url)
    if isinstance(target, EmbeddedStore):
        obstacle = hindrance(target.directory)
        if obstacle is not None:
            sentence = unusable(target.directory, "the store", OTHER_FOLDER, obstacle)
            yield Check(name="store", status="problem", found=str(sentence))
            return
        if not target.engine_path.exists():
            found = f"{target} holds nothing yet"
            yield Check(name="store", status="note", found=found, advice=_SERVE)
            return
    yield from _stored(url, now)


def _versions() -> Check:
    installed = {name: _version(name) for name in (*_OURS, *_BESIDE)}
    listed = ", ".join(f"{name} {version or 'missing'}" for name, version in installed.items())
    found = f"Python {platform.python_version()}, {listed}"
    if len({installed[name] for name in _OURS}) > 1:
        advice = "install the same version of all three: pip install --upgrade retrospan-evaluator"
        return Check(name="versions", status="problem", found=found, advice=advice)
    if installed["chdb"] is None:
        advice = "for embedded stores: pip install 'retrospan-collector[embedded]'"
        return Check(name="versions", status="note", found=found, advice=advice)
    return Check(name="versions", status="ok", found=found)


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def owner_check(target: StoreUrl, url: str) -> Check:
    """Who writes to the store, and whether that is as it should be."""
    if not isinstance(target, EmbeddedStore):
        found = f"{target} is a server; whoever serves it owns it"
        return Check(name="owner", status="ok", found=found)
    note = read_note(target.state_path)
    if note is not None:
        return _owner_that_answers(note, url)
    holder = owner_of(target.directory)
    if running_service(url) is not None and (
        holder is None or holder.role == "owner" or holder.pid == JUST_STARTING
    ):
        found = "being started by the running service; what is received waits in the spool"
        advice = "wait a moment and look again"
        return Check(name="owner", status="note", found=found, advice=advice)
    if holder is None:
        found = "nobody: any command may open the store, one at a time"
        return Check(name="owner", status="ok", found=found)
    advice = f"wait for process {holder.pid} or stop it: until then no other command can read"
    return Check(name="owner", status="note", found=f"in use by {holder}", advice=advice)


def _owner_that_answers(note: OwnerNote, url: str) -> Check:
    if running_service(url) is not None:
        found = f"process {note.pid}, of a running service, answering at {note.clickhouse}"
        return Check(name="owner", status="ok", found=found)
    found = f"process {note.pid}, whose service has ended; it stores what is left and ends too"
    advice = "wait a moment and look again"
    return Check(name="owner", status="note", found=found, advice=advice)


def _ports(url: str) -> Iterator[Check]:
    running = running_service(url)
    if running is not None:
        yield Check(name="otlp-grpc", status="ok", found=f"receiving at {running.otlp_grpc}")
        yield Check(name="otlp-http", status="ok", found=f"receiving at {running.otlp_http}")
        yield _clickhouse(running.clickhouse)
        return
    for name, port in OTLP_PORTS.items():
        holder = listener_on(port)
        if holder is None:
            found, advice = f"port {port} is free, nothing receives", "start `retrospan serve`"
        else:
            found = f"port {port} is held by {holder}, which does not serve this store"
            advice = f"use `retrospan serve --{name}-port 0`, or stop that process"
        yield Check(name=name, status="note", found=found, advice=advice)


def _clickhouse(address: str) -> Check:
    if address:
        return Check(name="clickhouse", status="ok", found=f"answering at {address}")
    found = "the store's owner is being started again; what is received waits in the spool"
    advice = "see what `retrospan serve` printed if this lasts"
    return Check(name="clickhouse", status="note", found=found, advice=advice)


def _stored(url: str, now: datetime) -> Iterator[Check]:
    """What can be said of a store that opens, or why it does not."""
    try:
        with open_store(url) as store:
            engine = store.query("SELECT version() AS version")[0]["version"]
            found = f"{store.address} opens, ClickHouse {engine}"
            yield Check(name="store", status="ok", found=found)
            yield _schema(store)
            yield _last_request(store, now)
    except CollectorError as error:
        advice = "the sentence says what to do; schema and requests could not be looked at"
        yield Check(name="store", status="problem", found=str(error), advice=advice)


def _schema(store: Store) -> Check:
    present, known = schema_version(store), migrations()[-1].version
    if present == known:
        return Check(
            name="schema", status="ok", found=f"version {present}, the one this program knows"
        )
    found = f"version {present}, and this program knows {known}"
    advice = "use the same version of retrospan everywhere this store is used"
    return Check(name="schema", status="problem", found=found, advice=advice)


def _last_request(store: Store, now: datetime) -> Check:
    newest = TraceReader(store).newest()
    if newest is None:
        return Check(name="last request", status="note", found="none recorded yet", advice=_SERVE)
    found = f"began {newest.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC, {_ago(now, newest)}"
    return Check(name="last request", status="ok", found=found)


def _ago(now: datetime, then: datetime) -> str:
    seconds = int((now - then).total_seconds())
    if seconds < 0:
        return "in the future by this machine's clock"
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= size:
            return f"{things(seconds // size, unit)} ago"
    return f"{things(seconds, 'second')} ago"
