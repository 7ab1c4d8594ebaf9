"""A real SDK with an in-memory exporter, and a collector that takes OTLP over HTTP."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import retrospan


class Recorder:
    """What a provider of its own has recorded."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        """All ended spans, in the order they ended."""
        return self.exporter.get_finished_spans()

    def span(self, stage: str) -> ReadableSpan:
        """The one span of a stage."""
        [found] = [span for span in self.spans if attributes_of(span)["retrospan.stage"] == stage]
        return found

    def attributes(self, stage: str) -> Mapping[str, Any]:
        """The attributes of the one span of a stage."""
        return attributes_of(self.span(stage))


def attributes_of(span: ReadableSpan) -> Mapping[str, Any]:
    assert span.attributes is not None
    return span.attributes


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    """Requests made in the test are recorded here, under the run id `test-run`."""
    recorder = Recorder()
    with retrospan.run_scope(run_id="test-run", tracer_provider=recorder.provider):
        yield recorder
    recorder.provider.shutdown()


@dataclass
class OtlpServer:
    """A collector: it decodes what real exporters send."""

    address: str
    bodies: list[bytes] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    unavailable: int = 0
    """How many requests to refuse before the first is taken."""

    def spans(self) -> list[dict[str, Any]]:
        """Every span received, as the JSON form of its protobuf message."""
        from google.protobuf.json_format import MessageToJson
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
            ExportTraceServiceRequest,
        )

        spans: list[dict[str, Any]] = []
        for body in self.bodies:
            request = json.loads(MessageToJson(ExportTraceServiceRequest.FromString(body)))
            for resource in request["resourceSpans"]:
                for scope in resource["scopeSpans"]:
                    spans += [{**span, "resource": resource["resource"]} for span in scope["spans"]]
        return spans


@pytest.fixture
def otlp_server() -> Iterator[OtlpServer]:
    """A collector on a free port of this machine."""
    pytest.importorskip(
        "opentelemetry.exporter.otlp.proto.http", reason="retrospan[otlp] is not installed"
    )
    received = OtlpServer(address="")

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if received.unavailable:
                received.unavailable -= 1
                self.send_response(503)
            else:
                zipped = self.headers.get("Content-Encoding") == "gzip"
                received.bodies.append(gzip.decompress(body) if zipped else body)
                received.headers.append({name.lower(): v for name, v in self.headers.items()})
                self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Keep quiet: the test's output is not an access log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    received.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield received
    server.shutdown()
    thread.join()
    server.server_close()
