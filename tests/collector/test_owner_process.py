"""The owner as the process it is: started, killed, stopped, and left by its parent."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from retrospan_collector.clickhouse.connection import open_store
from retrospan_collector.clickhouse.ownership import (
    OwnerNote,
    is_alive,
    note_path,
    read_note,
    write_note,
)
from retrospan_collector.errors import StoreUnreachable
from retrospan_collector.spool import SpoolDirectory
from tests.collector.conftest import Eventually, MakeSegment, MakeSpan

SPANS = 12_000
"""Enough for an insert to last while it is killed."""


class Owner:
    """An owner process of one embedded store."""

    def __init__(self, data: Path, port: int = 0) -> None:
        self.data = data
        self.spool = SpoolDirectory(data / "spool")
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "retrospan_collector", "owner"),
                *("--store", f"embedded:./{data.name}", "--spool", f"{data.name}/spool"),
                *("--clickhouse-port", str(port)),
            ],
            cwd=data.parent,
            stderr=subprocess.PIPE,
            text=True,
        )

    def note(self) -> OwnerNote | None:
        """What it says of itself once it is ready."""
        found = read_note(self.data)
        return found if found is not None and found.pid == self.process.pid else None

    def end(self, number: signal.Signals) -> str:
        """Send a signal; what it had written to stderr by its end."""
        self.process.send_signal(number)
        return self.process.communicate(timeout=60)[1]


StartOwner = Callable[[], Owner]


@pytest.fixture
def start_owner(tmp_path: Path, eventually: Eventually) -> Iterator[StartOwner]:
    """Owners of one store, one after another; what still runs at the end is killed."""
    started: list[Owner] = []

    def start() -> Owner:
        owner = Owner(tmp_path / "data")
        started.append(owner)
        eventually(lambda: owner.note() or owner.process.poll() is not None, "the owner's note")
        return owner

    yield start
    for owner in started:
        if owner.process.poll() is None:
            owner.process.kill()
        owner.process.communicate()


def seal(spool: SpoolDirectory, segment_id: str, body: bytes) -> None:
    draft = spool.open / f"{segment_id}.traces"
    draft.write_bytes(body)
    draft.rename(spool.sealed / draft.name)


def stored(owner: Owner) -> int:
    with open_store(f"embedded:{owner.data}") as store:
        count: int = store.query("SELECT count() AS n FROM otel_traces")[0]["n"]
        return count


def test_other_commands_work_on_the_store_while_its_owner_runs(
    start_owner: StartOwner, make_span: MakeSpan, make_segment: MakeSegment, eventually: Eventually
) -> None:
    owner = start_owner()
    seal(owner.spool, "s1", make_segment([make_span(1), make_span(2)]))
    eventually(lambda: stored(owner) == 2, "the sealed spans")
    note = owner.note()
    assert note is not None
    assert note.store == f"embedded:{owner.data}"
    assert note.clickhouse.startswith("127.0.0.1:")
    assert stat.S_IMODE(note_path(owner.data).stat().st_mode) == 0o600
    assert owner.end(signal.SIGTERM) == ""
    assert not note_path(owner.data).exists()
    assert stored(owner) == 2


def test_an_owner_that_is_stopped_first_inserts_what_is_sealed(
    start_owner: StartOwner, make_span: MakeSpan, make_segment: MakeSegment
) -> None:
    owner = start_owner()
    for number in range(5):
        seal(owner.spool, f"s{number}", make_segment([make_span(number + 1)]))
    owner.end(signal.SIGTERM)
    assert owner.process.returncode == 0
    assert owner.spool.sealed_segments() == []
    assert stored(owner) == 5
    beside = owner.data.parent
    assert [path.name for path in beside.iterdir()] == ["data"]


def test_an_owner_killed_in_the_middle_of_inserts_loses_nothing_and_doubles_nothing(
    start_owner: StartOwner, make_span: MakeSpan, make_segment: MakeSegment, eventually: Eventually
) -> None:
    body = {
        name: make_segment(
            [make_span(1 + i + SPANS * number) for i in range(SPANS // 2)],
            [make_span(1 + i + SPANS * number) for i in range(SPANS // 2, SPANS)],
        )
        for number, name in enumerate(("s0", "s1", "s2"))
    }
    owner = start_owner()
    attempts = owner.spool.path / "attempts.json"
    for name in body:
        seal(owner.spool, name, body[name])
        eventually(
            lambda name=name: attempts.exists() and name in attempts.read_text(),  # type: ignore[misc]  # mypy cannot infer a lambda's default
            "an insert that has begun",
        )
        owner.end(signal.SIGKILL)
        owner = start_owner()
    eventually(lambda: not owner.spool.sealed_segments(), "everything to be inserted")
    assert stored(owner) == 3 * SPANS


def test_clients_of_a_killed_owner_go_on_with_its_successor(
    start_owner: StartOwner, eventually: Eventually
) -> None:
    first = start_owner()
    note = first.note()
    assert note is not None
    with open_store(f"embedded:{first.data}") as store:
        assert store.query("SELECT 1 AS one") == [{"one": 1}]
        first.end(signal.SIGKILL)
        with pytest.raises(StoreUnreachable, match="nothing answers there"):
            store.query("SELECT 1 AS one")
        second = Owner(first.data, int(note.clickhouse.rpartition(":")[2]))
        eventually(second.note, "the successor's note")
        assert store.query("SELECT 1 AS one") == [{"one": 1}]
        second.end(signal.SIGTERM)


def test_the_owner_of_a_served_store_says_in_the_spool_which_one_without_its_password(
    start_owner: StartOwner, tmp_path: Path, eventually: Eventually
) -> None:
    server = start_owner().note()
    assert server is not None
    spool = tmp_path / "spool"
    url = f"clickhouse://retrospan:{server.token}@{server.clickhouse}/retrospan"
    process = subprocess.Popen(
        [sys.executable, "-m", "retrospan_collector", "owner", "--spool", str(spool)],
        env=os.environ | {"RETROSPAN_STORE": url},
        stderr=subprocess.PIPE,
        text=True,
    )
    eventually(lambda: read_note(spool) or process.poll() is not None, "the owner's note")
    shown = f"clickhouse://retrospan@{server.clickhouse}/retrospan"
    assert read_note(spool) == OwnerNote(process.pid, shown, shown, "")
    process.terminate()
    assert process.communicate(timeout=60)[1] == ""
    assert process.returncode == 0
    assert read_note(spool) is None


def test_a_second_owner_is_refused_and_names_the_first(start_owner: StartOwner) -> None:
    first = start_owner()
    second = Owner(first.data)
    _, said = second.process.communicate(timeout=60)
    assert second.process.returncode == 1
    assert f"is in use by process {first.process.pid} " in said
    assert "Traceback" not in said


def test_a_taken_port_is_said_with_the_program_that_holds_it(start_owner: StartOwner) -> None:
    first = start_owner()
    note = first.note()
    assert note is not None
    port = int(note.clickhouse.rpartition(":")[2])
    second = Owner(first.data.parent / "other", port)
    _, said = second.process.communicate(timeout=60)
    assert second.process.returncode == 1
    assert f"process {first.process.pid} " in said
    assert str(port) in said


def test_an_owner_ends_with_the_process_that_started_it(
    tmp_path: Path, eventually: Eventually
) -> None:
    data = tmp_path / "data"
    parent = subprocess.Popen(
        [
            *(sys.executable, "-c"),
            "import subprocess, sys; subprocess.run([sys.executable, *sys.argv[1:]])",
            *("-m", "retrospan_collector", "owner", "--store", f"embedded:{data}"),
            *("--spool", str(data / "spool")),
        ],
    )
    eventually(lambda: read_note(data), "the owner's note")
    note = read_note(data)
    assert note is not None
    parent.kill()
    parent.wait()
    eventually(lambda: not is_alive(note.pid), "the owner's end")
    with open_store(f"embedded:{data}") as store:
        assert store.query("SELECT 1 AS one") == [{"one": 1}]


def test_a_note_left_by_a_dead_owner_does_not_stand_in_the_way(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    data = tmp_path / "data"
    data.mkdir()
    write_note(data, OwnerNote(dead.pid, f"embedded:{data}", "127.0.0.1:9", "t"))
    assert read_note(data) is None
    with open_store(f"embedded:{data}") as store:
        assert store.query("SELECT 1 AS one") == [{"one": 1}]


def test_a_note_whose_process_is_another_program_by_now_does_not_either(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    write_note(data, OwnerNote(os.getpid(), f"embedded:{data}", "127.0.0.1:9", "t"))
    with open_store(f"embedded:{data}") as store:
        assert store.query("SELECT 1 AS one") == [{"one": 1}]
