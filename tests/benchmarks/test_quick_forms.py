"""The quick form of every benchmark: that it works, not how fast."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from retrospan_collector.assembler.loop import Assembler
from retrospan_collector.clickhouse.connection import Store
from tests.benchmarks.__main__ import BENCHMARKS
from tests.benchmarks.store import Contents, stored_requests, trace_id_of

FOLDER = Path(__file__).resolve().parent
A_DAY = Contents(requests=300, traced=40, passages=100, window=timedelta(days=1))


def benchmark(cache: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`python -m tests.benchmarks` as somebody calls it; its stores lie in `cache`."""
    return subprocess.run(
        [sys.executable, "-m", "tests.benchmarks", *arguments],
        cwd=FOLDER.parent.parent,
        env={**os.environ, "RETROSPAN_BENCHMARK_CACHE": str(cache), "COLUMNS": "120"},
        capture_output=True,
        text=True,
        timeout=110,
    )


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_prints_its_ratios_and_writes_them_unrounded(name: str, tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    done = benchmark(tmp_path / "cache", name, "--quick", "--json", str(path))
    assert done.returncode == 0, done.stderr
    written = json.loads(path.read_text(encoding="utf-8"))
    assert (written["benchmark"], written["quick"]) == (name, True)
    assert any(figure["beside"] for figure in written["measurements"])
    for figure in written["measurements"]:
        assert figure["value"] > 0
        assert figure["meets_bar"] is None, "a small store says nothing of the bar"
        for other in figure["beside"]:
            assert other["ratio"] == figure["value"] / other["value"]
            assert f"{other['ratio']:.3g}" in done.stdout


def test_every_benchmark_is_listed_and_described(tmp_path: Path) -> None:
    listed = benchmark(tmp_path, "list").stdout
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    for name in BENCHMARKS:
        assert f"{name}: " in listed
        assert f"python -m tests.benchmarks {name}" in readme


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache for stores."""
    monkeypatch.setenv("RETROSPAN_BENCHMARK_CACHE", str(tmp_path))
    return tmp_path


def rows(store: Store) -> dict[str, dict[str, object]]:
    """The newest row of each request, what tells one writing from another left out."""
    statement = "SELECT * EXCEPT (Version, AssembledAt) FROM requests FINAL"
    return {row["TraceId"]: row for row in store.query(statement)}


@pytest.mark.usefixtures("cache")
def test_the_stored_requests_are_what_the_assembler_makes_of_their_spans() -> None:
    with stored_requests(A_DAY) as stored:
        made = rows(stored.store)
        report = Assembler(stored.store).round(datetime.now(UTC) + timedelta(minutes=6))
        assert (report.requests, report.texts) == (A_DAY.traced, 0)
        assert rows(stored.store) == made
        (row,) = stored.store.query("SELECT max(Version) - min(Version) AS span FROM requests")
        assert row["span"] > 0, "the assembler's rows are the newer ones"


def test_a_store_is_made_once_and_again_when_its_tables_changed(cache: Path) -> None:
    lines: list[str] = []
    with stored_requests(A_DAY, lines.append) as first:
        newest = first.newest
    assert lines.pop(0).startswith("making requests-300-")
    lines.clear()
    with stored_requests(A_DAY, lines.append) as again:
        assert (again.newest, lines) == (newest, [])
        newest_trace = again.store.query(
            "SELECT TraceId FROM requests ORDER BY Timestamp DESC LIMIT 1"
        )
        assert newest_trace == [{"TraceId": trace_id_of(0)}]
    (directory,) = cache.glob("*-schema-*")
    outdated = directory.rename(directory.with_name(f"{directory.name}0"))
    with stored_requests(A_DAY, lines.append):
        assert lines[0].startswith("making requests-300-")
    assert not outdated.exists(), "a store of an older schema does not stay on the disk"
