"""A real receiver, requests to send to it, and the spool read back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Protocol

import pytest
from google.protobuf.proto import parse_length_prefixed
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from retrospan_collector.receiver import Receiver
from retrospan_collector.spool import SpoolDirectory

ReadSpool = Callable[[], list[ExportTraceServiceRequest]]


class MakeRequest(Protocol):
    """An export request with so many spans, each with one text attribute."""

    def __call__(self, spans: int = 1, text: str = "") -> ExportTraceServiceRequest: ...


@pytest.fixture
def spool(tmp_path: Path) -> SpoolDirectory:
    """An empty spool."""
    return SpoolDirectory(tmp_path / "spool")


@pytest.fixture
def receiver(spool: SpoolDirectory) -> Iterator[Receiver]:
    """A receiver on free ports, over the spool."""
    with Receiver(spool) as running:
        yield running


@pytest.fixture
def sealed_requests(spool: SpoolDirectory) -> ReadSpool:
    """Every request in the sealed segments, in order, read by protobuf's own delimited reader."""

    def read() -> list[ExportTraceServiceRequest]:
        found: list[ExportTraceServiceRequest] = []
        for segment in spool.sealed_segments():
            content = BytesIO(segment.path.read_bytes())
            while request := parse_length_prefixed(ExportTraceServiceRequest, content):
                found.append(request)
        return found

    return read


@pytest.fixture
def make_request() -> MakeRequest:
    """Builds export requests."""

    def make(spans: int = 1, text: str = "") -> ExportTraceServiceRequest:
        request = ExportTraceServiceRequest()
        scope_spans = request.resource_spans.add().scope_spans.add()
        for number in range(1, spans + 1):
            span = scope_spans.spans.add(
                trace_id=(1).to_bytes(16, "big"),
                span_id=number.to_bytes(8, "big"),
                name=f"span {number}",
                kind=Span.SPAN_KIND_INTERNAL,
                start_time_unix_nano=1_700_000_000_000_000_000,
                end_time_unix_nano=1_700_000_000_000_000_500,
            )
            span.attributes.add(key="text").value.string_value = text
        return request

    return make
