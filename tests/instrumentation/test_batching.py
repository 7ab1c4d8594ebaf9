"""What leaves the process: in parts of a bounded size, and within the queue that is documented."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.trace import Status, StatusCode

from retrospan._batching import MAX_BATCH_BYTES, SizedExporter, divided, span_bytes
from retrospan._otlp import MAX_QUEUE_SIZE

if TYPE_CHECKING:
    from tests.instrumentation.conftest import OtlpServer

TRACER = TracerProvider(shutdown_on_exit=False).get_tracer("application")


def span(text: str = "", name: str = "chat") -> ReadableSpan:
    made = TRACER.start_span(name)
    made.set_attribute("text", text)
    made.end()
    assert isinstance(made, ReadableSpan)
    return made


class Receiver(SpanExporter):
    """Takes parts of a bounded size, as a server does, and refuses the rest whole."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.taken: list[str] = []
        self.refused: list[str] = []

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        names = [given.name for given in spans]
        for name in names:
            name.encode("utf-8")
        if sum(map(span_bytes, spans)) > self.limit:
            self.refused += names
            return SpanExportResult.FAILURE
        self.taken += names
        return SpanExportResult.SUCCESS


def test_one_fat_span_does_not_cost_its_neighbours() -> None:
    """Case C-SIZE-GZIP, the exporter's share."""
    spans = [span("x" * 600, name=str(number)) for number in range(500)]
    spans[250] = span("x" * 6_000_000, name="fat")
    receiver = Receiver(limit=4 * 1024 * 1024)
    assert SizedExporter(receiver).export(spans) is SpanExportResult.FAILURE
    assert receiver.refused == ["fat"]
    assert len(receiver.taken) == 499
    assert receiver.taken == [given.name for given in spans if given.name != "fat"]


def test_parts_keep_the_order_and_stay_below_the_limit() -> None:
    spans = [span("x" * 100_000, name=str(number)) for number in range(100)]
    parts = list(divided(spans, MAX_BATCH_BYTES))
    assert [given.name for part in parts for given in part] == [given.name for given in spans]
    assert len(parts) == 3
    assert all(sum(map(span_bytes, part)) <= MAX_BATCH_BYTES for part in parts)
    assert list(divided([], 10)) == []


@pytest.mark.parametrize("text", ["plain", "\u0627\u0644\u0645\u0648\u0638\u0641", "\U0001f600"])
def test_the_size_is_about_that_on_the_wire(text: str) -> None:
    encoder = pytest.importorskip(
        "opentelemetry.exporter.otlp.proto.common.trace_encoder",
        reason="retrospan[otlp] is not installed",
    )
    made = TRACER.start_span("chat", attributes={"text": text * 5_000})
    made.set_attribute("scores", [0.5] * 200)
    made.set_attribute("ids", [text] * 200)
    made.set_status(Status(StatusCode.ERROR, text * 100))
    made.add_event("event", {"text": text * 100})
    made.end()
    assert isinstance(made, ReadableSpan)
    wire = len(encoder.encode_spans([made]).SerializeToString())
    assert wire <= span_bytes(made) + 200 <= wire * 1.2


def test_a_span_that_cannot_be_encoded_costs_itself_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Case I-BAD-UNICODE, for spans of the application beside ours."""
    spans = [span(name=str(number)) for number in range(9)]
    spans[4] = span(name="q \ud83d")
    receiver = Receiver(limit=MAX_BATCH_BYTES)
    with caplog.at_level(logging.WARNING):
        assert SizedExporter(receiver).export(spans) is SpanExportResult.FAILURE
    assert receiver.taken == ["0", "1", "2", "3", "5", "6", "7", "8"]
    assert len([record for record in caplog.records if record.name == "retrospan"]) <= 1


def test_a_failure_that_is_not_about_a_span_is_not_tried_again() -> None:
    class Down(SpanExporter):
        calls = 0

        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            self.calls += 1
            raise ConnectionError("no route")

    down = Down()
    with pytest.raises(ConnectionError):
        SizedExporter(down).export([span(), span()])
    assert down.calls == 1


def test_1500_requests_back_to_back_lose_no_span(otlp_server: OtlpServer) -> None:
    """The queue holds them all, whether the exporter keeps up or not."""
    assert 4 * 1500 <= MAX_QUEUE_SIZE
    script = """
import sys
import retrospan

@retrospan.rag_system(name="desk", version="1", depth=1, top_k=1, index_version="1")
class Desk:
    def retrieve(self, input, depth):
        return retrospan.Retrieval(input, [retrospan.Passage("kb-1", "text", 0.5)])

    def generate(self, input, context):
        return "yes"

telemetry = retrospan.configure(service_name="x", endpoint=sys.argv[1], exit_timeout_s=60)
desk = Desk()
for _ in range(1500):
    desk.answer("q")
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, otlp_server.address],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    spans = [given["spanId"] for given in otlp_server.spans()]
    assert len(spans) == len(set(spans)) == 6000
