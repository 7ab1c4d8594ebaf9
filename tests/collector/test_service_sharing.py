"""Commands that need a service at the same time share one, and none loses it midway."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from retrospan_collector.clickhouse.connection import open_store
from retrospan_collector.errors import FolderUnusable
from retrospan_collector.service import running_service, service_for, temporary_service
from retrospan_collector.troubles import Troubles

Eventually = Callable[[Callable[[], object], str], None]

_USES = """
import sys
from retrospan_collector.service import service_for
with service_for(sys.argv[1]) as endpoints:
    print(endpoints.otlp_http, flush=True)
    sys.stdin.read()
"""


class Command:
    """A process that needs the service of a store until it is told to end."""

    def __init__(self, store_url: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _USES, store_url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def address(self) -> str:
        """Where its service receives; waits until it has one."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def end(self) -> int:
        """Let it end, and its exit code."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        code = self.process.wait(90)
        self.process.stdout.close()
        return code


@pytest.fixture
def start(store_url: str) -> Iterator[Callable[[], Command]]:
    """Starts commands on the test's store; what is left at the end is killed."""
    with ExitStack() as stack:

        def begin() -> Command:
            command = Command(store_url)
            stack.enter_context(command.process)
            stack.callback(command.process.kill)
            return command

        yield begin


def test_commands_that_start_together_share_one_service(
    start: Callable[[], Command], store_url: str
) -> None:
    commands = [start() for _ in range(3)]
    addresses = {command.address() for command in commands}
    assert len(addresses) == 1 and "" not in addresses
    assert [command.end() for command in commands] == [0, 0, 0]
    with open_store(store_url):
        assert running_service(store_url) is None


def test_a_service_outlives_the_command_that_started_it_while_others_use_it(
    start: Callable[[], Command], store_url: str, eventually: Eventually
) -> None:
    first = start()
    address = first.address()
    second = start()
    assert second.address() == address
    assert first.end() == 0
    assert httpx.get(f"http://{address}/readyz").status_code == 200
    assert second.end() == 0
    eventually(lambda: running_service(store_url) is None, "the service to end")


def test_a_killed_command_takes_no_service_from_the_others(
    start: Callable[[], Command], store_url: str, eventually: Eventually
) -> None:
    first = start()
    address = first.address()
    second = start()
    assert second.address() == address
    first.process.kill()
    first.process.wait(30)
    assert httpx.get(f"http://{address}/readyz").status_code == 200
    with open_store(store_url) as store:
        assert store.query("SELECT 1 AS one") == [{"one": 1}]
    assert second.end() == 0
    eventually(lambda: running_service(store_url) is None, "the service to end")


def test_a_reader_keeps_the_service_it_reads_through(
    start: Callable[[], Command], store_url: str
) -> None:
    command = start()
    command.address()
    with open_store(store_url) as store:
        assert command.end() == 0
        assert store.query("SELECT 1 AS one") == [{"one": 1}]


def test_a_service_that_is_refused_beside_a_commands_own_is_told_to_wait(store_url: str) -> None:
    with temporary_service(store_url):
        refused = subprocess.run(
            [
                *(sys.executable, "-m", "retrospan_collector", "serve", "--store", store_url),
                *("--otlp-grpc-port", "0", "--otlp-http-port", "0"),
            ],
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert "wait for that command to end" in refused.stderr
    assert "stop it" not in refused.stderr


def test_a_service_stores_where_its_working_directory_cannot_be_written(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/sys")
    with service_for(store_url) as endpoints:
        answer = httpx.post(
            f"http://{endpoints.otlp_http}/v1/traces",
            content=_one_span(),
            headers={"content-type": "application/x-protobuf"},
        )
        assert answer.status_code == 200
    with open_store(store_url) as store:
        assert store.query("SELECT count() AS n FROM spans") == [{"n": 1}]
    spool = Path(store_url.removeprefix("embedded:")) / "spool"
    assert not Troubles(spool).current()


def _one_span() -> bytes:
    request = ExportTraceServiceRequest()
    request.resource_spans.add().scope_spans.add().spans.add(
        trace_id=b"t" * 16,
        span_id=b"s" * 8,
        name="here",
        start_time_unix_nano=1_700_000_000_000_000_000,
        end_time_unix_nano=1_700_000_000_000_000_900,
    )
    return request.SerializeToString()


def test_a_folder_that_cannot_be_used_is_said_before_anything_is_started(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(FolderUnusable, match="a file is in its place"):
        with service_for(f"embedded:{tmp_path / 'file'}"):
            pass
    assert os.listdir(tmp_path) == ["file"]
