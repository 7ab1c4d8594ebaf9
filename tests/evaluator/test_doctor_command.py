"""`retrospan doctor` says what it found and what to do, and changes nothing."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from dirty_equals import IsPartialDict, IsStr
from typer.testing import CliRunner

from retrospan_collector.clickhouse.connection import open_store
from retrospan_collector.clickhouse.ownership import read_note
from retrospan_collector.clickhouse.request_row import RequestRow
from retrospan_collector.clickhouse.sample_key import sample_key
from retrospan_collector.service import temporary_service
from retrospan_collector.spool import SpoolDirectory
from retrospan_collector.store_url import parse_store_url
from retrospan_collector.troubles import Troubles
from retrospan_collector.writer import Writer
from retrospan_evaluator.cli.app import app
from retrospan_evaluator.cli.check import Check
from retrospan_evaluator.cli.checks import owner_check
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


@pytest.mark.parametrize("place", ["a file", "below a file", "where nobody may write"])
def test_a_folder_that_cannot_be_used_is_a_problem(
    examine: Examine, tmp_path: Path, place: str
) -> None:
    (tmp_path / "file").touch()
    folder = {
        "a file": tmp_path / "file",
        "below a file": tmp_path / "file" / "data",
        "where nobody may write": Path("/sys/retrospan-data"),
    }[place]
    code, found = examine(f"embedded:{folder}")
    assert (code, found["store"]["status"]) == (1, "problem")
    assert f"at {folder} and could not use it" in str(found["store"]["found"])


def test_a_spool_that_cannot_be_used_is_a_problem(examine: Examine, tmp_path: Path) -> None:
    url = f"embedded:{tmp_path / 'data'}"
    open_store(url).close()
    (tmp_path / "data" / "spool").touch()
    code, found = examine(url)
    assert (code, found["spool"]["status"]) == (1, "problem")


def test_inserts_that_fail_are_a_problem_with_their_reason(
    examine: Examine, tmp_path: Path
) -> None:
    url = f"embedded:{tmp_path / 'data'}"
    spool = SpoolDirectory(tmp_path / "data" / "spool")
    (spool.sealed / "broken.traces").write_bytes(b"no export request")
    with open_store(url) as store:
        assert Writer(store, spool).round().failed == 1
    code, found = examine(url)
    assert (code, found["spool"]["status"]) == (1, "problem")
    assert found["spool"]["found"] == IsStr(
        regex=r"1 received segment waits to be stored and inserting failed once since .* UTC, "
        r"last with: .* failed a statement: .*",
        regex_flags=re.DOTALL,
    )
    (spool.sealed / "broken.traces").unlink()
    with open_store(url) as store:
        Writer(store, spool).round()
    assert not Troubles(spool.path).current()
    assert examine(url)[1]["spool"]["status"] == "ok"


def test_nobody_is_told_to_stop_the_owner_a_service_is_starting(tmp_path: Path) -> None:
    url = f"embedded:{tmp_path / 'data'}"
    target = parse_store_url(url)
    with temporary_service(url):
        before = read_note(tmp_path / "data")
        assert before is not None
        os.kill(before.pid, signal.SIGKILL)
        seen = [owner_check(target, url)]
        # Each look asks the system anew, so this ends with the next owner's first answer.
        while seen[-1].status != "ok" or str(before.pid) in seen[-1].found:
            seen.append(owner_check(target, url))
    between = [check for check in seen if check.status == "note"]
    assert between
    assert {check.advice for check in between} == {"wait a moment and look again"}
    assert all(check.found.startswith("being started") for check in between)


def test_a_person_sees_lines_that_fit_and_what_to_do() -> None:
    check = Check(name="store", status="problem", found="word " * 30, advice="do this")
    lines = [line.plain for line in check_lines(check, 80)]
    assert lines[0].startswith("store         PROBLEM  word word")
    assert lines[-1].strip() == "→ do this"
    assert max(map(len, lines)) <= 80
