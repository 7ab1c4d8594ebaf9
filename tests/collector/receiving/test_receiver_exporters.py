"""The exporters of the OpenTelemetry SDK send, the spool holds what they sent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from grpc import Compression as GrpcCompression
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import (
    OTLPSpanExporter as GrpcExporter,
)
from opentelemetry.exporter.otlp.proto.http import Compression as HttpCompression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import (
    OTLPSpanExporter as HttpExporter,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from retrospan_collector.receiver import Receiver, ReceiverPorts
from retrospan_collector.spool import SpoolDirectory
from retrospan_collector.spool_recovery import Recovery

ReadSpool = Callable[[], list[ExportTraceServiceRequest]]


@dataclass(frozen=True)
class Case:
    id: str
    exporter: Callable[[ReceiverPorts], SpanExporter]


CASES = [
    Case(
        "grpc",
        lambda ports: GrpcExporter(endpoint=f"http://127.0.0.1:{ports.grpc}", timeout=10),
    ),
    Case(
        "grpc-gzip",
        lambda ports: GrpcExporter(
            endpoint=f"http://127.0.0.1:{ports.grpc}", compression=GrpcCompression.Gzip
        ),
    ),
    Case(
        "http",
        lambda ports: HttpExporter(endpoint=f"http://127.0.0.1:{ports.http}/v1/traces"),
    ),
    Case(
        "http-gzip",
        lambda ports: HttpExporter(
            endpoint=f"http://127.0.0.1:{ports.http}/v1/traces", compression=HttpCompression.Gzip
        ),
    ),
    Case(
        "http-deflate",
        lambda ports: HttpExporter(
            endpoint=f"http://127.0.0.1:{ports.http}/v1/traces", compression=HttpCompression.Deflate
        ),
    ),
]


def _record(names: list[str]) -> list[ReadableSpan]:
    memory = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracer = provider.get_tracer("test")
    for name in names:
        with tracer.start_as_current_span(name) as span:
            span.set_attribute("answer", "أربعة عشر يوما")
            span.set_attribute("scores", [0.5, float("nan"), -1.0])
    provider.shutdown()
    return list(memory.get_finished_spans())


def _names(requests: list[ExportTraceServiceRequest]) -> list[str]:
    return [
        span.name
        for request in requests
        for resource_spans in request.resource_spans
        for scope_spans in resource_spans.scope_spans
        for span in scope_spans.spans
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_what_an_exporter_sends_is_in_the_spool_when_it_is_told_so(
    case: Case, spool: SpoolDirectory, sealed_requests: ReadSpool
) -> None:
    spans = _record(["first", "second"])
    with Receiver(spool) as receiver:
        exporter = case.exporter(receiver.ports)
        assert exporter.export(spans) is SpanExportResult.SUCCESS
        exporter.shutdown()
    (request,) = sealed_requests()
    assert _names([request]) == ["first", "second"]
    sent = request.resource_spans[0].scope_spans[0].spans[0]
    context = spans[0].get_span_context()
    assert context is not None
    assert sent.trace_id == context.trace_id.to_bytes(16, "big")
    assert {a.key: a.value.string_value for a in sent.attributes}["answer"] == "أربعة عشر يوما"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_one_passage_of_six_megabytes_takes_no_neighbour_down(
    case: Case, spool: SpoolDirectory, sealed_requests: ReadSpool
) -> None:
    memory = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    for number in range(20):
        with provider.get_tracer("test").start_as_current_span(f"span {number}") as span:
            span.set_attribute("text", "x" * (6 * 2**20 if number == 7 else 10))
    with Receiver(spool) as receiver:
        exporter = case.exporter(receiver.ports)
        assert exporter.export(memory.get_finished_spans()) is SpanExportResult.SUCCESS
        exporter.shutdown()
    assert len(_names(sealed_requests())) == 20


def test_requests_sent_together_share_syncs(
    spool: SpoolDirectory, sealed_requests: ReadSpool, make_request: Callable[..., object]
) -> None:
    first_sync, gate = threading.Event(), threading.Event()
    syncs: list[int] = []

    def sync(descriptor: int) -> None:
        syncs.append(descriptor)
        first_sync.set()
        assert gate.wait(10)
        os.fsync(descriptor)

    with Receiver(spool, sync=sync) as receiver, ThreadPoolExecutor(20) as senders:
        url = f"http://127.0.0.1:{receiver.ports.http}/v1/traces"
        body = _record_request()

        def send(number: int) -> int:
            headers = {"content-type": "application/x-protobuf"}
            return httpx.post(url, content=body, headers=headers, timeout=20).status_code

        answers = [senders.submit(send, number) for number in range(20)]
        assert first_sync.wait(10)
        # Nobody is answered while the first sync is under way.
        assert not any(answer.done() for answer in answers)
        gate.set()
        assert [answer.result(20) for answer in answers] == [200] * 20
        assert len(syncs) < 20
    assert len(sealed_requests()) == 20


def _record_request() -> bytes:
    request = ExportTraceServiceRequest()
    request.resource_spans.add().scope_spans.add().spans.add(
        trace_id=b"t" * 16, span_id=b"s" * 8, name="span"
    )
    return request.SerializeToString()


_DIES_AFTER_ITS_SYNC = """
import os, signal, sys, threading
from pathlib import Path
from retrospan_collector.receiver import Receiver
from retrospan_collector.spool import SpoolDirectory

def sync(descriptor):
    os.fsync(descriptor)
    os.kill(os.getpid(), signal.SIGKILL)

with Receiver(SpoolDirectory(Path(sys.argv[1])), sync=sync) as receiver:
    print(receiver.ports.grpc, receiver.ports.http, flush=True)
    threading.Event().wait()
"""


@contextmanager
def _receiver_that_dies_after_its_sync(spool: Path) -> Iterator[ReceiverPorts]:
    command = [sys.executable, "-c", _DIES_AFTER_ITS_SYNC, str(spool)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        grpc_port, http_port = process.stdout.readline().split()
        yield ReceiverPorts(int(grpc_port), int(http_port))
        assert process.wait(10) == -signal.SIGKILL


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_a_receiver_killed_between_sync_and_answer_loses_nothing(
    transport: str, spool: SpoolDirectory, sealed_requests: ReadSpool
) -> None:
    spans = _record(["survivor"])
    with _receiver_that_dies_after_its_sync(spool.path) as ports:
        exporter: SpanExporter
        if transport == "grpc":
            exporter = GrpcExporter(endpoint=f"http://127.0.0.1:{ports.grpc}", timeout=1)
        else:
            exporter = HttpExporter(endpoint=f"http://127.0.0.1:{ports.http}/v1/traces", timeout=1)
        # The sender never gets its answer; the request is on the disk all the same.
        assert exporter.export(spans) is SpanExportResult.FAILURE
        exporter.shutdown()
    assert not spool.sealed_segments()
    with Receiver(spool) as receiver:
        assert receiver.recovered == Recovery(segments=1, records=1, set_aside_bytes=0)
        exporter = CASES[0].exporter(receiver.ports)
        assert exporter.export(spans) is SpanExportResult.SUCCESS
        exporter.shutdown()
    # Sent twice, stored twice in the spool; the store's key makes one of them.
    assert _names(sealed_requests()) == ["survivor", "survivor"]
