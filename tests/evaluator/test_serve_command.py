"""`retrospan serve` in one terminal, other commands in a second one: real processes throughout."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path

import httpx
import pytest

EXAMPLE = "retrospan_evaluator.examples.support_rag"
FREE_PORTS = ("--otlp-grpc-port", "0", "--otlp-http-port", "0")


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "retrospan_evaluator", *words]


def second_terminal(*words: str) -> subprocess.CompletedProcess[str]:
    """A command typed while `serve` runs elsewhere."""
    return subprocess.run(command(*words), capture_output=True, text=True, check=False)


@contextmanager
def serving(url: str, *words: str) -> Iterator[subprocess.Popen[str]]:
    """A `serve` of its own process, told to stop at the end however the block ends."""
    process = subprocess.Popen(
        command("serve", "--store", url, *FREE_PORTS, *words), stdout=subprocess.PIPE, text=True
    )
    with process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)


def announced(process: subprocess.Popen[str]) -> dict[str, str]:
    """The lines up to `ready`, by name."""
    assert process.stdout is not None
    lines: dict[str, str] = {}
    for line in process.stdout:
        if line == "ready\n":
            return lines
        name, _, address = line.strip().partition(": ")
        lines[name] = address
    raise AssertionError(f"serve ended before it was ready, after {lines}")


def cases_file() -> str:
    return str(resources.files(EXAMPLE) / "cases.jsonl")


@pytest.mark.timeout(180)
def test_a_second_terminal_reads_what_is_served(tmp_path: Path) -> None:
    url = f"embedded:{tmp_path / 'data'}"
    with serving(url) as service:
        addresses = announced(service)
        assert list(addresses) == ["otlp-grpc", "otlp-http", "clickhouse"]
        for path in ("/healthz", "/readyz"):
            assert httpx.get(f"http://{addresses['otlp-http']}{path}").status_code == 200

        system = f"{EXAMPLE}.system:SupportRag"
        ran = second_terminal("run", cases_file(), "--system", system, "--store", url, "--json")
        assert ran.returncode == 0, ran.stderr
        run_id = json.loads(ran.stdout)["run_id"]

        listed = second_terminal("traces", "--run", run_id, "--store", url, "--json")
        requests = json.loads(listed.stdout)["requests"]
        assert len(requests) == 13
        shown = second_terminal("trace", requests[0]["trace_id"], "--store", url)
        assert shown.returncode == 0
        assert "top-k 2" in shown.stdout and "kept, 1st in prompt" in shown.stdout

        checked = second_terminal("doctor", "--store", url)
        assert checked.returncode == 0, checked.stdout
        assert addresses["otlp-grpc"] in checked.stdout
        assert "of a running service" in " ".join(checked.stdout.split())
    assert service.returncode == 0

    afterwards = second_terminal("trace", requests[0]["trace_id"], "--store", url, "--json")
    assert json.loads(afterwards.stdout)["run_id"] == run_id


def test_serve_says_where_it_listens_as_json(tmp_path: Path) -> None:
    with serving(f"embedded:{tmp_path / 'data'}", "--json") as service:
        assert service.stdout is not None
        addresses = json.loads(service.stdout.readline())
    assert addresses.pop("version") == 1
    assert sorted(addresses) == ["clickhouse", "otlp-grpc", "otlp-http"]
    assert all(address.startswith("127.0.0.1:") for address in addresses.values())
    assert service.returncode == 0


def test_a_taken_port_is_one_sentence_that_names_its_holder(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        refused = second_terminal(
            *("serve", "--store", f"embedded:{tmp_path / 'data'}"),
            *("--otlp-http-port", "0", "--otlp-grpc-port", port),
        )
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert port in refused.stderr and "process" in refused.stderr
    assert "--otlp-grpc-port" in refused.stderr


def test_a_clickhouse_that_is_down_is_one_sentence_and_no_port(tmp_path: Path) -> None:
    refused = subprocess.run(
        command("serve", "--store", "clickhouse://me@127.0.0.1:1/retrospan", *FREE_PORTS),
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (1, "", 1)
    assert refused.stderr.startswith("retrospan: expected ClickHouse at clickhouse://me@127.0.0.1")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", [("serve", *FREE_PORTS), ("demo",)], ids=["serve", "demo"])
@pytest.mark.parametrize("place", ["/sys/retrospan-data", "file", "file/below"])
def test_a_folder_that_cannot_be_used_is_one_sentence(
    tmp_path: Path, place: str, words: tuple[str, ...]
) -> None:
    (tmp_path / "file").touch()
    refused = second_terminal(*words, "--store", f"embedded:{tmp_path / place}")
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert refused.stderr.startswith("retrospan: expected a directory to keep")
    assert str(tmp_path / place) in refused.stderr and "--store" in refused.stderr


def test_a_second_serve_on_the_same_data_is_refused(tmp_path: Path) -> None:
    url = f"embedded:{tmp_path / 'data'}"
    with serving(url) as service:
        announced(service)
        refused = second_terminal("serve", "--store", url, *FREE_PORTS)
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert str(service.pid) in refused.stderr or "in use by process" in refused.stderr
    assert "ready" not in refused.stdout
