"""`retrospan traces` on a real store."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from dirty_equals import IsPartialDict
from typer.testing import CliRunner, Result

from retrospan_collector.clickhouse.request_row import RequestRow
from retrospan_evaluator.cli.app import app
from retrospan_evaluator.cli.traces import age

Record = Callable[..., None]
MakeRow = Callable[..., RequestRow]
Traces = Callable[..., Result]


@pytest.fixture
def traces(store_url: str) -> Traces:
    """Runs the command on the store."""
    return lambda *words: CliRunner().invoke(app, ["traces", *words, "--store", store_url])


def test_the_newest_requests_are_listed(traces: Traces, record: Record, make_row: MakeRow) -> None:
    now = datetime.now(UTC)
    record(
        make_row("a" * 32, timestamp=now - timedelta(minutes=2), question="كم يوماً؟"),
        make_row("b" * 32, run_id="run-1", case_id="refund", status="error"),
        make_row("c" * 32, timestamp=now - timedelta(hours=2)),
    )
    lines = traces("--limit", "2").stdout.splitlines()
    assert [line.split()[2] for line in lines[::2]] == ["b" * 32, "a" * 32]
    assert lines[0].endswith("1 of 4 kept  failed")
    assert lines[1].strip().startswith("run-1 refund · How long")
    assert lines[3].endswith("\u2068كم يوماً؟\u2069")
    assert max(map(len, lines)) <= 80


def test_json_is_the_documented_shape(traces: Traces, record: Record, make_row: MakeRow) -> None:
    row = make_row(run_id="run-1", case_id="refund")
    record(row)
    document = json.loads(traces("--json").stdout)
    assert document["requests"] == [
        IsPartialDict(
            trace_id=row.trace_id,
            root_span_id=row.root_span_id,
            service="help-desk",
            system="support_rag",
            run_id="run-1",
            case_id="refund",
            status="ok",
            replay_class="full",
            question=row.question,
            answer="14 days",
            candidates=4,
            kept=1,
        )
    ]
    assert document["since"].endswith("Z")


def test_filters_narrow_the_list(traces: Traces, record: Record, make_row: MakeRow) -> None:
    record(
        make_row("a" * 32),
        make_row("b" * 32, run_id="run-1"),
        make_row("c" * 32, run_id="replay:x"),
        make_row("d" * 32, service_name="shop"),
    )

    def listed(*words: str) -> set[str]:
        document = json.loads(traces("--json", *words).stdout)
        return {request["trace_id"][0] for request in document["requests"]}

    assert listed() == {"a", "b", "d"}
    assert listed("--replays") == {"a", "b", "c", "d"}
    assert listed("--run", "run-1") == {"b"}
    assert listed("--service", "shop") == {"d"}


def test_an_empty_window_says_how_far_back_to_look(
    traces: Traces, record: Record, make_row: MakeRow
) -> None:
    record()
    assert traces().stdout == "No request is recorded that matches.\n"
    record(make_row(timestamp=datetime.now(UTC) - timedelta(days=3)))
    result = traces("--since", "1d")
    assert result.exit_code == 0
    assert "look further back with --since" in result.stdout
    assert traces("--since", "4d").stdout.count("kept") == 1
    assert traces("--since", "99999w").stdout.count("kept") == 1


def test_a_store_that_was_never_written_is_not_made(traces: Traces, tmp_path: Path) -> None:
    result = traces()
    assert (result.exit_code, result.stdout) == (1, "")
    assert "nothing is recorded" in result.stderr and "retrospan demo" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("typed", ["7", "d", "7y", "-1d", "1.5h", "", "999999d"])
def test_an_age_that_is_none_is_wrong_usage(traces: Traces, typed: str) -> None:
    result = traces(f"--since={typed}")
    assert result.exit_code == 2
    assert "12h or 7d" in result.stderr


def test_every_unit_of_age_is_read() -> None:
    assert [age("30m"), age("12h"), age("7d"), age("4w")] == [
        timedelta(minutes=30),
        timedelta(hours=12),
        timedelta(days=7),
        timedelta(weeks=4),
    ]
