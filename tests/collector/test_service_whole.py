"""Receiver and owner together: what an SDK sends is in the store, whatever dies in between."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import (
    OTLPSpanExporter as GrpcExporter,
)
from opentelemetry.exporter.otlp.proto.http.trace_exporter import (
    OTLPSpanExporter as HttpExporter,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter

from retrospan_collector.clickhouse.connection import open_store
from retrospan_collector.clickhouse.ownership import is_alive
from retrospan_collector.errors import StoreError
from retrospan_collector.ports import listen
from retrospan_collector.service import (
    Endpoints,
    running_service,
    service_for,
    temporary_service,
)

Eventually = Callable[[Callable[[], object], str], None]


@dataclass(frozen=True)
class Running:
    """A service as a person starts it, and what it printed up to `ready`."""

    process: subprocess.Popen[str]
    lines: list[str]

    @property
    def addresses(self) -> dict[str, str]:
        return dict(line.split(": ", 1) for line in self.lines[:-1])


def _command(store_url: str, *more: str) -> list[str]:
    ports = ["--otlp-grpc-port", "0", "--otlp-http-port", "0"]
    return [
        sys.executable,
        "-m",
        "retrospan_collector",
        "serve",
        "--store",
        store_url,
        *ports,
        *more,
    ]


@contextmanager
def _serving(store_url: str, *more: str) -> Iterator[Running]:
    with subprocess.Popen(_command(store_url, *more), stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            lines = []
            for line in process.stdout:
                lines.append(line.rstrip("\n"))
                if lines[-1] == "ready":
                    break
            assert lines[-1:] == ["ready"], "the service ended before it was ready"
            yield Running(process, lines)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


def _send_spans(exporter: SpanExporter, names: list[str]) -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    for name in names:
        with provider.get_tracer("test").start_as_current_span(name) as span:
            span.set_attribute("answer", "أربعة عشر يوما")
    provider.shutdown()


def _stored_names(store_url: str) -> list[str]:
    with open_store(store_url) as store:
        rows = store.query("SELECT SpanName FROM spans ORDER BY Timestamp, SpanName")
    return [str(row["SpanName"]) for row in rows]


def _owner_pid(store_url: str) -> int:
    note = Path(store_url.removeprefix("embedded:")) / "owner.json"
    return int(json.loads(note.read_bytes())["pid"])


def _request(number: int) -> bytes:
    request = ExportTraceServiceRequest()
    request.resource_spans.add().scope_spans.add().spans.add(
        trace_id=b"t" * 16,
        span_id=number.to_bytes(8, "big"),
        name=f"span {number:04}",
        start_time_unix_nano=1_700_000_000_000_000_000 + number,
        end_time_unix_nano=1_700_000_000_000_000_900,
    )
    return request.SerializeToString()


def test_spans_sent_over_both_transports_are_in_the_store(
    store_url: str, eventually: Eventually
) -> None:
    with _serving(store_url) as service:
        assert [line.partition(":")[0] for line in service.lines] == [
            "otlp-grpc",
            "otlp-http",
            "clickhouse",
            "ready",
        ]
        grpc, http = service.addresses["otlp-grpc"], service.addresses["otlp-http"]
        assert httpx.get(f"http://{http}/readyz").status_code == 200
        _send_spans(GrpcExporter(endpoint=f"http://{grpc}"), ["over grpc"])
        _send_spans(HttpExporter(endpoint=f"http://{http}/v1/traces"), ["over http"])
        eventually(lambda: len(_stored_names(store_url)) == 2, "both spans")
        assert _stored_names(store_url) == ["over grpc", "over http"]
        command = Path(f"/proc/{_owner_pid(store_url)}/cmdline").read_bytes()
        assert b"owner" in command
        # A store's URL can hold a password, and everybody may read a command line.
        assert store_url.encode() not in command
        assert running_service(store_url) == Endpoints(
            otlp_grpc=grpc, otlp_http=http, clickhouse=service.addresses["clickhouse"]
        )
    assert running_service(store_url) is None


def test_the_receiver_acknowledges_while_its_owner_is_killed_and_comes_back(
    store_url: str, eventually: Eventually
) -> None:
    with _serving(store_url) as service, httpx.Client() as client:
        url = f"http://{service.addresses['otlp-http']}/v1/traces"
        headers = {"content-type": "application/x-protobuf"}
        sent = 0

        def send(count: int) -> None:
            nonlocal sent
            for _ in range(count):
                sent += 1
                answer = client.post(url, content=_request(sent), headers=headers)
                assert answer.status_code == 200

        send(20)
        for _ in range(2):
            owner = _owner_pid(store_url)
            os.kill(owner, signal.SIGKILL)

            def replaced(before: int = owner) -> bool:
                send(1)
                pid = _owner_pid(store_url)
                return pid != before and is_alive(pid)

            eventually(replaced, "another owner")
        expected = [f"span {number:04}" for number in range(1, sent + 1)]
        eventually(lambda: len(_stored_names(store_url)) >= sent, "every span")
        assert _stored_names(store_url) == expected
        found = running_service(store_url)
        assert found is not None
        # Clients find the new owner where the old one was.
        assert found.clickhouse == service.addresses["clickhouse"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_stopping_service_stores_what_it_acknowledged(
    number: signal.Signals, store_url: str
) -> None:
    with _serving(store_url) as service:
        _send_spans(GrpcExporter(endpoint=f"http://{service.addresses['otlp-grpc']}"), ["last"])
        service.process.send_signal(number)
        assert service.process.wait(60) == 0
    data = Path(store_url.removeprefix("embedded:"))
    assert not list((data / "spool" / "sealed").iterdir())
    assert not list((data / "spool" / "open").iterdir())
    assert not (data / "receiver.json").exists()
    assert _stored_names(store_url) == ["last"]


def test_a_service_killed_with_everything_is_continued_by_the_next(
    store_url: str, eventually: Eventually
) -> None:
    with _serving(store_url) as service:
        owner = _owner_pid(store_url)
        _send_spans(GrpcExporter(endpoint=f"http://{service.addresses['otlp-grpc']}"), ["a", "b"])
        service.process.kill()
        service.process.wait(10)
        # Its note is still there, and nobody takes it for a service.
        assert running_service(store_url) is None
        eventually(lambda: not is_alive(owner), "the orphaned owner to end")
    with _serving(store_url):
        eventually(lambda: _stored_names(store_url) == ["a", "b"], "the spans of the dead service")


def test_a_spool_of_its_own_needs_no_store_to_be_there(store_url: str, tmp_path: Path) -> None:
    with _serving(store_url, "--spool", str(tmp_path / "spool")) as service:
        _send_spans(GrpcExporter(endpoint=f"http://{service.addresses['otlp-grpc']}"), ["apart"])
    assert _stored_names(store_url) == ["apart"]


def test_a_second_service_is_refused_at_once_in_one_sentence(store_url: str) -> None:
    with _serving(store_url) as service:
        second = subprocess.run(_command(store_url), capture_output=True, text=True, timeout=30)
    assert second.returncode == 1
    assert second.stdout == ""
    (sentence,) = second.stderr.splitlines()
    assert f"in use by process {service.process.pid}" in sentence


def test_a_service_whose_port_is_taken_names_the_program(store_url: str) -> None:
    with listen("otlp-http", 0) as taken:
        port = str(taken.getsockname()[1])
        refused = subprocess.run(
            _command(store_url, "--otlp-http-port", port),
            capture_output=True,
            text=True,
            timeout=30,
        )
    assert refused.returncode == 1
    (sentence,) = refused.stderr.splitlines()
    assert f"127.0.0.1:{port}" in sentence
    assert f"process {os.getpid()} (" in sentence


def test_a_taken_clickhouse_port_is_said_by_the_service_too(store_url: str) -> None:
    with listen("clickhouse", 0) as taken:
        port = str(taken.getsockname()[1])
        refused = subprocess.run(
            _command(store_url, "--clickhouse-port", port),
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert refused.returncode == 1
    (sentence,) = refused.stderr.splitlines()
    assert f"127.0.0.1:{port}" in sentence and "--clickhouse-port" in sentence


def test_a_store_that_is_none_is_wrong_usage() -> None:
    refused = subprocess.run(
        _command("postgres://localhost"), capture_output=True, text=True, timeout=30
    )
    assert refused.returncode == 2
    assert len(refused.stderr.splitlines()) == 1


def test_a_module_of_the_working_directory_is_not_taken_for_pythons_own(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('this is not the json you want')")
    monkeypatch.chdir(tmp_path)
    with temporary_service(store_url) as endpoints:
        assert httpx.get(f"http://{endpoints.otlp_http}/healthz").status_code == 200


def test_a_temporary_service_stores_everything_before_it_ends(store_url: str) -> None:
    with temporary_service(store_url) as endpoints:
        assert running_service(store_url) == endpoints
        # Another command shares it while it is there.
        with service_for(store_url) as shared:
            assert shared == endpoints
        _send_spans(GrpcExporter(endpoint=f"http://{endpoints.otlp_grpc}"), ["kept"])
    assert running_service(store_url) is None
    assert _stored_names(store_url) == ["kept"]


def test_a_service_is_started_where_none_runs(store_url: str) -> None:
    with service_for(store_url) as endpoints:
        assert running_service(store_url) == endpoints
    assert running_service(store_url) is None


def test_a_temporary_service_that_cannot_start_says_why(store_url: str) -> None:
    with open_store(store_url):
        with pytest.raises(StoreError, match=rf"in use by process {os.getpid()} "):
            with temporary_service(store_url):
                pass


_DIES_INSIDE = """
import os, signal, sys
from retrospan_collector.service import temporary_service
with temporary_service(sys.argv[1]):
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_temporary_service_ends_when_its_command_is_killed(
    store_url: str, eventually: Eventually
) -> None:
    command = [sys.executable, "-c", _DIES_INSIDE, store_url]
    assert subprocess.run(command, timeout=60).returncode == -signal.SIGKILL
    data = Path(store_url.removeprefix("embedded:"))
    eventually(lambda: not (data / "receiver.json").exists(), "the receiver to end")
    eventually(lambda: not (data / "owner.json").exists(), "the owner to end")
