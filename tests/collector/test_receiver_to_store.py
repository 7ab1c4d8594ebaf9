"""Whatever the receiver acknowledges, the engine's own decoder can store."""

from __future__ import annotations

import json
from pathlib import Path

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from retrospan_collector.clickhouse.connection import Store
from retrospan_collector.receiver import Receiver
from retrospan_collector.spool import SpoolDirectory
from retrospan_collector.writer import Writer

YEAR_2300_NS = 10_413_792_000_000_000_000


@pytest.fixture
def spool(tmp_path: Path) -> SpoolDirectory:
    return SpoolDirectory(tmp_path / "spool")


def _span(number: int, **fields: object) -> Span:
    span = Span(
        trace_id=b"t" * 16,
        span_id=number.to_bytes(8, "big"),
        name=f"span {number}",
        start_time_unix_nano=1_700_000_000_000_000_000 + number,
        end_time_unix_nano=1_700_000_000_000_000_900,
    )
    for name, value in fields.items():
        setattr(span, name, value)
    return span


def _nested(levels: int) -> AnyValue:
    value = AnyValue(string_value="نص")
    for _ in range(levels):
        outer = AnyValue()
        outer.kvlist_value.values.add(key="k").value.CopyFrom(value)
        value = outer
    return value


def _send(receiver: Receiver, spans: list[Span]) -> ExportTraceServiceResponse:
    request = ExportTraceServiceRequest()
    resource_spans = request.resource_spans.add()
    resource_spans.resource.attributes.add(key="service.name").value.string_value = "test"
    resource_spans.scope_spans.add().spans.extend(spans)
    response = httpx.post(
        f"http://127.0.0.1:{receiver.ports.http}/v1/traces",
        content=request.SerializeToString(),
        headers={"content-type": "application/x-protobuf"},
    )
    assert response.status_code == 200
    return ExportTraceServiceResponse.FromString(response.content)


def test_spans_that_needed_mending_are_stored_with_their_neighbours(
    store: Store, spool: SpoolDirectory
) -> None:
    nested, deep, twice = _span(2), _span(3), _span(4)
    nested.attributes.add(key="value").value.CopyFrom(_nested(3))
    deep.attributes.add(key="value").value.CopyFrom(_nested(6))
    for text in ("first", "last"):
        twice.attributes.add(key="value").value.string_value = text
    late = _span(5, start_time_unix_nano=YEAR_2300_NS, end_time_unix_nano=YEAR_2300_NS + 1)
    with Receiver(spool) as receiver:
        answer = _send(receiver, [_span(1), nested, deep, twice, late, _span(6)])
    assert answer.partial_success.rejected_spans == 0
    assert Writer(store, spool).round().inserted == 1
    rows = store.query(
        "SELECT SpanName AS name, SpanAttributes['value'] AS value, toYear(Timestamp) AS year "
        "FROM spans ORDER BY SpanName"
    )
    stored = {str(row["name"]): row for row in rows}
    assert sorted(stored) == [f"span {number}" for number in range(1, 7)]
    assert json.loads(stored["span 2"]["value"]) == {"k": {"k": {"k": "نص"}}}
    outer = json.loads(stored["span 3"]["value"])["k"]["k"]["k"]
    assert json.loads(outer) == {"k": {"k": {"k": "نص"}}}
    assert stored["span 4"]["value"] == "last"
    assert stored["span 5"]["year"] == 2262


def test_a_request_sent_again_by_its_sender_is_stored_once(
    store: Store, spool: SpoolDirectory
) -> None:
    with Receiver(spool) as receiver:
        _send(receiver, [_span(1), _span(2)])
    # Its answer was lost, so the sender repeats itself to the next receiver.
    with Receiver(spool) as receiver:
        _send(receiver, [_span(1), _span(2)])
        _send(receiver, [_span(1), _span(3)])
    assert Writer(store, spool).round().inserted == 2
    (row,) = store.query("SELECT count() AS n, uniqExact(SpanId) AS ids FROM spans")
    assert row == {"n": 3, "ids": 3}
