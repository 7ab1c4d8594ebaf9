"""Opening a store: which one a URL names, who may, and what it says when it cannot."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from retrospan_collector.clickhouse.connection import Store, open_store
from retrospan_collector.clickhouse.migrations import migrate, migrations, split_statements
from retrospan_collector.errors import (
    FolderUnusable,
    InvalidStoreUrl,
    SchemaTooNew,
    StatementFailed,
    StoreInUse,
    StoreUnreachable,
)
from retrospan_collector.store_url import EmbeddedStore, ServedStore, parse_store_url

HOLD = """
import sys
from retrospan_collector.clickhouse.connection import open_store
with open_store(sys.argv[1]):
    print("open", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(store_url: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the store open."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, store_url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield process
        if process.poll() is None:
            process.communicate("")


def test_a_second_opener_is_told_which_process_is_in_the_way(
    holder: subprocess.Popen[str], store_url: str
) -> None:
    with pytest.raises(StoreInUse, match=rf"in use by process {holder.pid} "):
        open_store(store_url)


def test_a_store_is_free_again_when_its_process_was_killed(
    holder: subprocess.Popen[str], store_url: str
) -> None:
    holder.kill()
    holder.wait()
    with open_store(store_url) as store:
        assert store.query("SELECT count() AS n FROM runs") == [{"n": 0}]


def test_a_closed_store_gives_its_directory_free_and_is_of_no_more_use(store_url: str) -> None:
    with open_store(store_url) as store:
        store.command(
            "INSERT INTO cases (CaseId, CreatedAt) VALUES ({id:String}, now())", {"id": "a"}
        )
    store.close()
    with pytest.raises(StoreUnreachable, match="closed before"):
        store.query("SELECT 1")
    with open_store(store_url) as again:
        assert again.query("SELECT CaseId FROM cases") == [{"CaseId": "a"}]


def test_opening_again_migrates_nothing_and_a_newer_schema_is_refused(store_url: str) -> None:
    newest = migrations()[-1].version
    with open_store(store_url) as store:
        applied = store.query("SELECT Version, AppliedAt FROM schema_version ORDER BY Version")
        assert [row["Version"] for row in applied] == [m.version for m in migrations()]
        assert migrate(store) == newest
        assert store.query("SELECT Version, AppliedAt FROM schema_version ORDER BY 1") == applied
        store.command("INSERT INTO schema_version (Version, Name) VALUES (99, 'later')")
    with pytest.raises(SchemaTooNew, match=rf"schema {newest} or older .* has 99"):
        open_store(store_url)


def test_every_migration_may_be_applied_again(store: Store) -> None:
    for migration in migrations():
        for statement in migration.statements:
            store.command(statement)


def test_a_schema_file_is_cut_into_statements_and_its_names_filled_in() -> None:
    text = "-- why\n-- define n = UInt8\n-- define t = Array(${n})\nSELECT 1\n;\nSELECT '${t}';\n"
    assert split_statements(text) == ("SELECT 1", "SELECT 'Array(UInt8)'")


def test_threads_work_at_the_same_time_each_on_a_handle_of_its_own(store: Store) -> None:
    together = threading.Barrier(4, timeout=30)
    sums: list[int] = []

    def work() -> None:
        store.query("SELECT 1")
        together.wait()
        sums.append(store.query("SELECT sum(number) AS s FROM numbers(1000)")[0]["s"])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sums == [499500] * 4


def test_times_go_in_and_come_out_in_utc_wherever_they_were_written(store: Store) -> None:
    riyadh = timezone(timedelta(hours=3))
    at = datetime(2026, 3, 29, 2, 30, 0, 123456, tzinfo=riyadh)
    [row] = store.query(
        "SELECT {at:DateTime64(6)} AS back, toString({at:DateTime64(6)}) AS said, "
        "{many:Array(DateTime64(6))} AS many",
        {"at": at, "many": (at,)},
    )
    assert row["back"] == at
    assert row["back"].tzinfo == UTC
    assert row["said"] == "2026-03-28 23:30:00.123456"
    assert row["many"] == [at]


def test_texts_and_lists_are_bound_as_they_are(store: Store) -> None:
    hard = ["it's", 'a "quoted" \\ one', "two\nlines\tand tab", "عربي", ""]
    [row] = store.query("SELECT {a:Array(String)} AS a, {b:String} AS b", {"a": hard, "b": hard[1]})
    assert row == {"a": hard, "b": hard[1]}


def test_a_statement_may_not_use_more_than_its_memory(store: Store) -> None:
    with pytest.raises(StatementFailed, match="MEMORY_LIMIT_EXCEEDED") as failure:
        store.query("SELECT length(groupArray(number)) FROM numbers(1000000000)")
    assert failure.value.code == 241


def test_the_engine_as_a_whole_is_capped(store: Store) -> None:
    [row] = store.query(
        "SELECT toUInt64(value) AS cap FROM system.server_settings "
        "WHERE name = 'max_server_memory_usage'"
    )
    assert 2**30 <= row["cap"] <= 4 * 2**30


def test_a_wrong_statement_names_the_store_and_the_engines_reason(store: Store) -> None:
    with pytest.raises(StatementFailed, match="embedded:.*UNKNOWN_TABLE") as failure:
        store.query("SELECT * FROM nothing_here")
    assert failure.value.code == 60


def test_a_clickhouse_that_is_down_is_one_sentence(unused_port: int) -> None:
    with pytest.raises(StoreUnreachable, match=rf"127.0.0.1:{unused_port}/retrospan .*start it"):
        open_store(f"clickhouse://someone:secret@127.0.0.1:{unused_port}/retrospan")


def test_a_directory_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(
        FolderUnusable, match="file/data and could not use it: Not a directory .*--store"
    ):
        open_store(f"embedded:{tmp_path / 'file' / 'data'}")


@pytest.mark.parametrize(
    ("url", "complaint"),
    [
        ("", "expected a store as embedded:DIRECTORY or clickhouse://"),
        ("./data", "expected a store as embedded:DIRECTORY or clickhouse://"),
        ("embedded:", "expected a directory after 'embedded:'"),
        ("postgres://u:secret@h/db", "got the scheme 'postgres'"),
        ("clickhouse://h:8123", "got host 'h' and database ''"),
        ("clickhouse://h:port/db", "Port could not be cast"),
        ("clickhouse:///db", "got host None"),
    ],
)
def test_a_url_that_names_no_store_is_refused(url: str, complaint: str) -> None:
    with pytest.raises(InvalidStoreUrl, match=complaint) as refusal:
        parse_store_url(url)
    assert "secret" not in str(refusal.value)


def test_a_password_in_a_url_is_never_shown() -> None:
    store = parse_store_url("clickhouse://writer:s%40cret@db.internal/traces?secure=true")
    assert store == ServedStore("db.internal", 8443, "traces", "writer", "s@cret", True)
    for shown in (str(store), repr(store), f"{store}"):
        assert shown.count("cret") == 0
    assert str(store) == "clickhouse://writer@db.internal:8443/traces?secure=true"


def test_an_embedded_store_is_found_from_wherever_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert parse_store_url("embedded:./data") == EmbeddedStore(tmp_path / "data")
