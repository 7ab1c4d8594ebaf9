"""A real store for every test that asks: the engine in a temporary directory."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from retrospan_collector.clickhouse.connection import Store, open_store
from retrospan_collector.spool import frame


class MakeSpan(Protocol):
    """A span that began at the given time, now if none is given."""

    def __call__(
        self,
        number: int,
        attributes: Mapping[str, AnyValue] | None = None,
        *,
        start_ns: int | None = None,
        duration_ns: int = 5_000_000,
    ) -> Span: ...


class MakeSegment(Protocol):
    """The bytes of a spool segment: one request a list of spans."""

    def __call__(self, *requests: Sequence[Span], service: str = "support") -> bytes: ...


class Eventually(Protocol):
    """Wait until a condition holds; fail with what was waited for."""

    def __call__(self, condition: Callable[[], object], what: str) -> None: ...


@pytest.fixture
def store_url(tmp_path: Path) -> str:
    """The URL of an embedded store that nobody has opened yet."""
    return f"embedded:{tmp_path / 'data'}"


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """An open embedded store with all tables."""
    with open_store(store_url) as opened:
        yield opened


@pytest.fixture
def make_span() -> MakeSpan:
    """Spans whose ids are their number."""

    def make(
        number: int,
        attributes: Mapping[str, AnyValue] | None = None,
        *,
        start_ns: int | None = None,
        duration_ns: int = 5_000_000,
    ) -> Span:
        start = time.time_ns() if start_ns is None else start_ns
        return Span(
            trace_id=number.to_bytes(16, "big"),
            span_id=number.to_bytes(8, "big"),
            name="retrieve",
            kind=Span.SPAN_KIND_CLIENT,
            start_time_unix_nano=start,
            end_time_unix_nano=start + duration_ns,
            attributes=[KeyValue(key=k, value=v) for k, v in (attributes or {}).items()],
        )

    return make


@pytest.fixture
def make_segment() -> MakeSegment:
    """Segments as the receiver writes them."""

    def make(*requests: Sequence[Span], service: str = "support") -> bytes:
        body = b""
        for spans in requests:
            request = ExportTraceServiceRequest()
            resource_spans = request.resource_spans.add()
            resource_spans.resource.attributes.add(
                key="service.name", value=AnyValue(string_value=service)
            )
            scope_spans = resource_spans.scope_spans.add()
            scope_spans.scope.name = "tests"
            scope_spans.scope.version = "1.2"
            scope_spans.spans.extend(spans)
            body += frame(request.SerializeToString())
        return body

    return make


@pytest.fixture
def eventually() -> Eventually:
    """Waiting on a condition, for what happens in other threads and processes."""

    def wait(condition: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, f"waited in vain for {what}"
            time.sleep(0.02)

    return wait


@pytest.fixture
def unused_port() -> int:
    """A loopback port nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
