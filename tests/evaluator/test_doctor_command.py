"""`retrospan doctor` says what it found and what to do, and changes nothing."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from dirty_equals import IsPartialDict, IsStr
from typer.testing import CliRunner

from retrospan_collector.clickhouse.connection import open_store
from retrospan_collector.clickhouse.request_row import RequestRow
from retrospan_collector.clickhouse.sample_key import sample_key
from retrospan_collector.spool import SpoolDirectory
from retrospan_evaluator.cli.app import app
from retrospan_evaluator.cli.checks import Check
from retrospan_evaluator.cli.doctor import check_lines

Checks = dict[str, dict[str, object]]
Examine = Callable[[str], tuple[int, Checks]]


@pytest.fixture
def examine() -> Examine:
    """Runs the command on a store: its exit code, and what it says by name."""

    def run(url: str) -> tuple[int, Checks]:
        result = CliRunner().invoke(app, ["doctor", "--store", url, "--json"])
        found = json.loads(result.stdout)["checks"]
        return result.exit_code, {check["name"]: check for check in found}

    return run


def test_a_folder_with_nothing_in_it_is_told_how_to_begin(examine: Examine, tmp_path: Path) -> None:
    code, found = examine(f"embedded:{tmp_path / 'data'}")
    assert code == 0
    assert found["versions"] == IsPartialDict(status="ok", found=IsStr(regex=".*retrospan 0.*"))
    assert found["owner"] == IsPartialDict(status="ok", found=IsStr(regex="nobody.*"))
    assert found["store"] == IsPartialDict(status="note", advice=IsStr(regex=".*retrospan demo.*"))
    assert list(tmp_path.iterdir()) == []


def test_a_store_in_order_has_no_problem(examine: Examine, tmp_path: Path) -> None:
    url = f"embedded:{tmp_path / 'data'}"
    with open_store(url) as store:
        store.insert("requests", [a_request(datetime.now(UTC) - timedelta(hours=3))])
    code, found = examine(url)
    assert code == 0
    assert {name for name, check in found.items() if check["status"] == "ok"} >= {
        "versions",
        "owner",
        "spool",
        "store",
        "schema",
        "last request",
    }
    assert "3 hours ago" in str(found["last request"]["found"])


def a_request(moment: datetime) -> RequestRow:
    trace_id = "a" * 32
    return RequestRow(
        service_name="help-desk",
        timestamp=moment,
        trace_id=trace_id,
        root_span_id="b" * 16,
        sample_key=sample_key(trace_id),
        dialect="retrospan",
        replay_class="none",
        retrieval_status="not_recorded",
        status="ok",
        assembled_at=moment,
        version=1,
    )


def test_an_empty_store_says_where_requests_come_from(examine: Examine, tmp_path: Path) -> None:
    url = f"embedded:{tmp_path / 'data'}"
    open_store(url).close()
    assert examine(url)[1]["last request"] == IsPartialDict(
        status="note", advice=IsStr(regex=".*retrospan serve.*")
    )


def test_a_newer_schema_is_a_problem(examine: Examine, tmp_path: Path) -> None:
    url = f"embedded:{tmp_path / 'data'}"
    with open_store(url) as store:
        store.command("INSERT INTO schema_version (Version, Name) VALUES (999, 'later')")
    code, found = examine(url)
    assert code == 1
    assert found["store"] == IsPartialDict(status="problem", found=IsStr(regex=".*999.*"))


def test_a_clickhouse_that_is_down_is_a_problem(examine: Examine) -> None:
    code, found = examine("clickhouse://me:secret@127.0.0.1:1/retrospan")
    assert code == 1
    assert found["store"] == IsPartialDict(status="problem", found=IsStr(regex=".*127.0.0.1:1/.*"))
    assert "secret" not in json.dumps(found)


def test_a_store_that_is_none_is_a_problem(examine: Examine) -> None:
    code, found = examine("sqlite:x")
    assert code == 1
    assert found["store"] == IsPartialDict(
        status="problem", advice="correct --store or RETROSPAN_STORE"
    )


def test_a_port_another_program_holds_is_named(examine: Examine, tmp_path: Path) -> None:
    with socket.socket() as taken:
        try:
            taken.bind(("127.0.0.1", 4318))
        except OSError:
            pytest.skip("port 4318 is in use on this machine")
        taken.listen()
        found = examine(f"embedded:{tmp_path / 'data'}")[1]["otlp-http"]
    assert found == IsPartialDict(status="note", found=IsStr(regex="port 4318 is held by.*"))
    assert "--otlp-http-port" in str(found["advice"])


def test_what_waits_in_the_spool_is_counted(examine: Examine, tmp_path: Path) -> None:
    url = f"embedded:{tmp_path / 'data'}"
    spool = SpoolDirectory(tmp_path / "data" / "spool")
    (spool.sealed / "one.traces").write_bytes(b"")
    assert examine(url)[1]["spool"] == IsPartialDict(
        status="note", found="1 received segment waits to be stored"
    )
    (spool.quarantine / "two.traces").write_bytes(b"")
    code, found = examine(url)
    assert (code, found["spool"]["status"]) == (1, "problem")


def test_a_person_sees_lines_that_fit_and_what_to_do() -> None:
    check = Check(name="store", status="problem", found="word " * 30, advice="do this")
    lines = [line.plain for line in check_lines(check, 80)]
    assert lines[0].startswith("store         PROBLEM  word word")
    assert lines[-1].strip() == "→ do this"
    assert max(map(len, lines)) <= 80
