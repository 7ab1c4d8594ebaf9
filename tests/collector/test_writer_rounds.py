"""The writer on a real spool and a real store: nothing lost, nothing twice, nothing in the way."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from clickhouse_connect.driver.client import Client

from retrospan_collector.clickhouse.connection import DEFAULT_SETTINGS, Store
from retrospan_collector.clickhouse.embedded import open_handle
from retrospan_collector.errors import StoreUnreachable
from retrospan_collector.spool import SpoolDirectory
from retrospan_collector.store_url import EmbeddedStore, parse_store_url
from retrospan_collector.writer import KEEP_S, Writer, WriterRound
from tests.collector.conftest import MakeSegment, MakeSpan

BROKEN = b"\xff" * 40
"""No protobuf: the engine refuses it."""


@dataclass(slots=True)
class Clock:
    """A clock that is set by hand."""

    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    """The writer's time."""
    return Clock()


@pytest.fixture
def spool(tmp_path: Path) -> SpoolDirectory:
    """An empty spool."""
    return SpoolDirectory(tmp_path / "spool")


Seal = Callable[[str, bytes], Path]


@pytest.fixture
def seal(spool: SpoolDirectory) -> Seal:
    """Put a sealed segment into the spool."""

    def put(segment_id: str, body: bytes) -> Path:
        path = spool.sealed / f"{segment_id}.traces"
        path.write_bytes(body)
        return path

    return put


def stored(store: Store) -> int:
    count: int = store.query("SELECT count() AS n FROM otel_traces")[0]["n"]
    return count


def names(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.iterdir())


def test_sealed_segments_are_inserted_and_kept_as_delivered(
    store: Store, spool: SpoolDirectory, seal: Seal, make_span: MakeSpan, make_segment: MakeSegment
) -> None:
    seal("s2", make_segment([make_span(3)]))
    seal("s1", make_segment([make_span(1), make_span(2)]))
    assert Writer(store, spool).round() == WriterRound(inserted=2)
    assert stored(store) == 3
    assert (names(spool.sealed), names(spool.delivered)) == ([], ["s1", "s2"])


def test_a_broken_segment_stays_and_holds_up_no_other(
    store: Store,
    spool: SpoolDirectory,
    seal: Seal,
    clock: Clock,
    make_span: MakeSpan,
    make_segment: MakeSegment,
) -> None:
    seal("s1", BROKEN)
    seal("s2", make_segment([make_span(1)]))
    writer = Writer(store, spool, clock=clock)
    assert writer.round() == WriterRound(inserted=1, failed=1, waiting=1)
    assert stored(store) == 1
    assert names(spool.sealed) == ["s1"]


def test_a_broken_segment_is_tried_again_after_pauses_that_double(
    store: Store, spool: SpoolDirectory, seal: Seal, clock: Clock
) -> None:
    seal("s1", BROKEN)
    writer = Writer(store, spool, clock=clock)
    tried = []
    for second in range(16):
        tried += [second] * writer.round().failed
        clock.now += 1
    assert tried == [0, 1, 3, 7, 15]


def test_a_segment_that_is_mended_is_inserted_at_its_next_turn(
    store: Store,
    spool: SpoolDirectory,
    seal: Seal,
    clock: Clock,
    make_span: MakeSpan,
    make_segment: MakeSegment,
) -> None:
    seal("s1", BROKEN)
    writer = Writer(store, spool, clock=clock)
    writer.round()
    seal("s1", make_segment([make_span(1)]))
    clock.now += 1
    assert writer.round() == WriterRound(inserted=1)


def test_after_an_unclean_stop_what_was_delivered_is_inserted_again_and_stored_once(
    store: Store, spool: SpoolDirectory, seal: Seal, make_span: MakeSpan, make_segment: MakeSegment
) -> None:
    seal("s1", make_segment([make_span(1)]))
    Writer(store, spool).round()
    successor = Writer(store, spool)
    assert names(spool.sealed) == ["s1"]
    assert successor.round() == WriterRound(inserted=1)
    assert stored(store) == 1


def test_inserting_again_restores_what_the_engine_had_lost(
    store: Store, spool: SpoolDirectory, seal: Seal, make_span: MakeSpan, make_segment: MakeSegment
) -> None:
    seal("s1", make_segment([make_span(1)]))
    Writer(store, spool).round()
    store.command("TRUNCATE TABLE otel_traces")
    Writer(store, spool).round()
    assert stored(store) == 1


def test_after_a_clean_stop_nothing_is_inserted_again(
    store: Store, spool: SpoolDirectory, seal: Seal, make_span: MakeSpan, make_segment: MakeSegment
) -> None:
    seal("s1", make_segment([make_span(1)]))
    first = Writer(store, spool)
    first.round()
    first.close()
    assert Writer(store, spool).round() == WriterRound()
    assert names(spool.delivered) == ["s1"]


def test_a_delivered_segment_is_forgotten_when_its_time_is_over(
    store: Store,
    spool: SpoolDirectory,
    seal: Seal,
    clock: Clock,
    make_span: MakeSpan,
    make_segment: MakeSegment,
) -> None:
    path = seal("s1", make_segment([make_span(1)]))
    os.utime(path, (0, 0))
    writer = Writer(store, spool, clock=clock)
    writer.round()
    clock.now += KEEP_S
    writer.round()
    assert names(spool.delivered) == ["s1"]
    clock.now += 1
    writer.round()
    assert names(spool.delivered) == []


def test_a_segment_its_process_did_not_survive_comes_after_the_others(
    store: Store,
    spool: SpoolDirectory,
    seal: Seal,
    clock: Clock,
    make_span: MakeSpan,
    make_segment: MakeSegment,
) -> None:
    seal("s1", make_segment([make_span(1)]))
    seal("s2", make_segment([make_span(2)]))
    (spool.path / "attempts.json").write_text('{"s1": 3}')
    writer = Writer(store, spool, clock=clock)
    assert writer.round() == WriterRound(inserted=1, waiting=1)
    assert names(spool.sealed) == ["s1"]
    clock.now += 8
    assert writer.round() == WriterRound(inserted=1)


def test_a_segment_of_a_kind_without_an_insert_is_left_alone(
    store: Store, spool: SpoolDirectory
) -> None:
    (spool.sealed / "s1.logs").write_bytes(b"later")
    assert Writer(store, spool).round() == WriterRound()
    assert names(spool.sealed) == ["s1"]


def test_a_store_that_was_away_is_given_again_what_it_may_have_lost(
    store: Store,
    store_url: str,
    spool: SpoolDirectory,
    seal: Seal,
    clock: Clock,
    make_span: MakeSpan,
    make_segment: MakeSegment,
) -> None:
    earlier = Writer(store, spool, clock=clock)
    seal("s1", make_segment([make_span(1)]))
    earlier.round()
    earlier.close()
    away = True
    engine = parse_store_url(store_url)
    assert isinstance(engine, EmbeddedStore)

    def connect() -> Client:
        if away:
            raise StoreUnreachable("it is being restarted")
        return open_handle(engine.engine_path, dict(DEFAULT_SETTINGS))

    seal("s2", make_segment([make_span(2)]))
    seal("s3", make_segment([make_span(3)]))
    writer = Writer(Store(store_url, connect, shared=False), spool, clock=clock)
    # One failure pauses them all: the others would only wait for the same time-out.
    assert writer.round() == WriterRound(failed=1, waiting=2)
    away = False
    clock.now += 1
    assert writer.round() == WriterRound(inserted=2)
    assert names(spool.sealed) == ["s1", "s2"], "what was delivered when it came back"
    assert writer.round() == WriterRound(inserted=2)
    assert stored(store) == 3
