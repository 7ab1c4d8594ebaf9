"""OTLP bytes in, rows of `otel_traces` out: decoded, rendered and told apart by the engine."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from retrospan_collector.clickhouse.connection import Store
from retrospan_collector.clickhouse.otlp_insert import SegmentInsert, deduplication
from retrospan_collector.clickhouse.sample_key import sample_key
from retrospan_collector.spool import frame
from tests.collector.conftest import MakeSegment, MakeSpan

DAY_NS = 86_400 * 10**9
"""For spans of other days."""


def array(*values: AnyValue) -> AnyValue:
    return AnyValue(array_value=ArrayValue(values=values))


def mapping(**values: AnyValue) -> AnyValue:
    pairs = [KeyValue(key=k, value=v) for k, v in values.items()]
    return AnyValue(kvlist_value=KeyValueList(values=pairs))


def text(value: str) -> AnyValue:
    return AnyValue(string_value=value)


def whole(value: int) -> AnyValue:
    return AnyValue(int_value=value)


def real(value: float) -> AnyValue:
    return AnyValue(double_value=value)


@dataclass(frozen=True, slots=True)
class Rendering:
    """An attribute value and the text it is stored as."""

    id: str
    value: AnyValue
    stored: str


RENDERINGS = [
    Rendering("text", text('قال "نعم"\n</b>'), 'قال "نعم"\n</b>'),
    Rendering("empty text", text(""), ""),
    Rendering("text that looks like an array", text("[1]"), "[1]"),
    Rendering("true", AnyValue(bool_value=True), "true"),
    Rendering("false", AnyValue(bool_value=False), "false"),
    Rendering("zero", whole(0), "0"),
    Rendering("least integer", whole(-(2**63)), "-9223372036854775808"),
    Rendering("integer beyond a double", whole(9007199254740993), "9007199254740993"),
    Rendering("real", real(0.1), "0.1"),
    Rendering("whole real", real(2.0), "2"),
    Rendering("not a number", real(math.nan), "NaN"),
    Rendering("infinite", real(math.inf), "Infinity"),
    Rendering("infinitely small", real(-math.inf), "-Infinity"),
    Rendering("bytes", AnyValue(bytes_value=b"\x00\xff\xfe"), "AP/+"),
    Rendering("nothing", AnyValue(), ""),
    Rendering("empty array", array(), "[]"),
    Rendering("empty map", mapping(), "{}"),
    Rendering("texts", array(text('a"b'), text(""), text("عربي")), '["a\\"b","","عربي"]'),
    Rendering("slash", array(text("a/b")), '["a/b"]'),
    Rendering("reals, some not finite", array(real(0.5), real(math.nan)), "[0.5,null]"),
    Rendering("integers", array(whole(-1), whole(0xFFFFFFFF)), "[-1,4294967295]"),
    Rendering(
        "mixed",
        array(AnyValue(bool_value=False), AnyValue(), AnyValue(bytes_value=b"\x01")),
        '[false,null,"AQ=="]',
    ),
    Rendering("map", mapping(a=whole(1), b=text("x")), '{"a":1,"b":"x"}'),
    Rendering(
        "three deep",
        array(mapping(a=array(whole(1), real(math.inf))), array(array(text("x")))),
        '[{"a":[1,null]},[["x"]]]',
    ),
    Rendering(
        "three deep, the other way",
        mapping(a=array(mapping(b=AnyValue(bool_value=True), c=real(1e30)))),
        '{"a":[{"b":true,"c":1e30}]}',
    ),
]


@pytest.fixture
def stored(store: Store, make_span: MakeSpan, make_segment: MakeSegment) -> Mapping[str, str]:
    """Every rendering as one attribute of one span, read back."""
    span = make_span(1, {case.id: case.value for case in RENDERINGS})
    SegmentInsert(store).insert("traces", "a", make_segment([span]))
    attributes: dict[str, str] = store.query("SELECT SpanAttributes FROM spans")[0][
        "SpanAttributes"
    ]
    return attributes


def test_every_kind_of_attribute_is_stored_as_its_text(stored: Mapping[str, str]) -> None:
    assert dict(stored) == {case.id: case.stored for case in RENDERINGS}


def test_what_is_stored_of_arrays_and_maps_is_json(stored: Mapping[str, str]) -> None:
    nested = [c for c in RENDERINGS if c.value.HasField("array_value")]
    assert [json.dumps(json.loads(stored[c.id]), ensure_ascii=False) for c in nested]


def test_a_span_becomes_a_row_of_the_exporters_columns(
    store: Store, make_span: MakeSpan, make_segment: MakeSegment
) -> None:
    span = make_span(7, {"retrospan.stage": text("retrieve")}, duration_ns=1234)
    span.trace_state = "ot=th:8"
    span.parent_span_id = b"\xab" * 8
    span.flags = 0x101
    span.dropped_attributes_count = 3
    span.dropped_events_count = 4
    span.status.CopyFrom(Status(code=Status.STATUS_CODE_ERROR, message="too slow"))
    span.events.add(time_unix_nano=span.start_time_unix_nano, name="retry").attributes.add(
        key="try", value=whole(2)
    )
    span.links.add(trace_id=b"\x01" * 16, span_id=b"\x02" * 8, trace_state="x=y")
    SegmentInsert(store).insert("traces", "a", make_segment([span]))
    [row] = store.query("SELECT *, toUnixTimestamp64Nano(Timestamp) AS Ns FROM spans")
    assert row["Ns"] == span.start_time_unix_nano
    assert {k: v for k, v in row.items() if k not in ("Timestamp", "Ns", "IngestedAt")} == {
        "TraceId": "00000000000000000000000000000007",
        "SpanId": "0000000000000007",
        "ParentSpanId": "abababababababab",
        "TraceState": "ot=th:8",
        "SpanName": "retrieve",
        "SpanKind": "Client",
        "ServiceName": "support",
        "ResourceAttributes": {"service.name": "support"},
        "ScopeName": "tests",
        "ScopeVersion": "1.2",
        "SpanAttributes": {"retrospan.stage": "retrieve"},
        "Duration": 1234,
        "StatusCode": "Error",
        "StatusMessage": "too slow",
        "Events.Timestamp": [row["Timestamp"]],
        "Events.Name": ["retry"],
        "Events.Attributes": [{"try": "2"}],
        "Links.TraceId": ["01" * 16],
        "Links.SpanId": ["02" * 8],
        "Links.TraceState": ["x=y"],
        "Links.Attributes": [{}],
        "DroppedAttributes": 3,
        "DroppedEvents": 4,
        "Flags": 0x101,
        "OperationName": "retrieve",
        "SampleKey": sample_key("00000000000000000000000000000007"),
    }


def test_each_event_and_link_keeps_its_own_attributes(
    store: Store, make_span: MakeSpan, make_segment: MakeSegment
) -> None:
    span = make_span(1, {"own": text("span")})
    for name, count in (("none", 0), ("two", 2), ("one", 1)):
        event = span.events.add(name=name)
        event.attributes.extend(KeyValue(key=f"e{i}", value=text(name)) for i in range(count))
    for number in range(3):
        link = span.links.add(trace_id=bytes([number] * 16))
        link.attributes.extend([KeyValue(key="l", value=array(whole(number)))] * (number % 2))
    SegmentInsert(store).insert("traces", "a", make_segment([span, make_span(2)]))
    rows = store.query("SELECT * FROM spans ORDER BY TraceId")
    assert rows[0]["SpanAttributes"] == {"own": "span"}
    assert rows[0]["Events.Attributes"] == [{}, {"e0": "two", "e1": "two"}, {"e0": "one"}]
    assert rows[0]["Links.Attributes"] == [{}, {"l": "[1]"}, {}]
    assert (rows[1]["Events.Attributes"], rows[1]["Links.Attributes"]) == ([], [])


def test_spans_of_several_resources_and_scopes_keep_theirs(
    store: Store, make_span: MakeSpan, make_segment: MakeSegment
) -> None:
    request = ExportTraceServiceRequest()
    for service in ("a", "b"):
        resource_spans = request.resource_spans.add()
        resource_spans.resource.attributes.add(key="service.name", value=text(service))
        for scope in ("x", "y"):
            scope_spans = resource_spans.scope_spans.add()
            scope_spans.scope.name = scope
            scope_spans.spans.extend([make_span(ord(service) * ord(scope))])
    request.resource_spans.add()
    SegmentInsert(store).insert("traces", "a", frame(request.SerializeToString()))
    rows = store.query("SELECT ServiceName, ScopeName, TraceId FROM spans ORDER BY ALL")
    expected = [(s, c, f"{ord(s) * ord(c):032x}") for s in "ab" for c in "xy"]
    assert [tuple(row.values()) for row in rows] == expected


def test_the_standard_operation_name_comes_before_our_stage(
    store: Store, make_span: MakeSpan, make_segment: MakeSegment
) -> None:
    named = {"gen_ai.operation.name": text("retrieval"), "retrospan.stage": text("retrieve")}
    SegmentInsert(store).insert("traces", "a", make_segment([make_span(1, named), make_span(2)]))
    rows = store.query("SELECT OperationName FROM spans ORDER BY TraceId")
    assert [row["OperationName"] for row in rows] == ["retrieval", ""]


def test_the_same_segment_twice_is_stored_once(
    store: Store, make_span: MakeSpan, make_segment: MakeSegment
) -> None:
    body = make_segment([make_span(1), make_span(2)], [make_span(3)])
    insert = SegmentInsert(store)
    for _ in range(3):
        insert.insert("traces", "same", body)
    for table in ("otel_traces", "touched", "otel_traces_trace_id_ts"):
        assert store.query(f"SELECT count() AS n FROM {table}") == [{"n": 3}], table


def test_a_span_that_is_sent_again_stands_once_in_the_view(
    store: Store, make_span: MakeSpan, make_segment: MakeSegment
) -> None:
    a, b, c = make_span(1), make_span(2), make_span(3)
    insert = SegmentInsert(store)
    for token, spans in (("first", [a, b]), ("second", [a, b]), ("third", [a, c])):
        insert.insert("traces", token, make_segment(spans))
    rows = store.query("SELECT SpanId, count() AS n FROM spans GROUP BY SpanId ORDER BY SpanId")
    assert [(row["SpanId"][-1], row["n"]) for row in rows] == [("1", 1), ("2", 1), ("3", 1)]


def test_the_last_of_two_contents_under_one_span_id_is_read(
    store: Store, make_span: MakeSpan, make_segment: MakeSegment
) -> None:
    start_ns = make_span(1).start_time_unix_nano
    insert = SegmentInsert(store)
    for token in ("first", "second"):
        span = make_span(1, {"said": text(token)}, start_ns=start_ns)
        insert.insert("traces", token, make_segment([span]))
    rows = store.query("SELECT SpanAttributes['said'] AS said FROM spans")
    assert rows == [{"said": "second"}]


def test_a_segment_of_many_days_is_stored_whole_and_once(
    store: Store, make_span: MakeSpan, make_segment: MakeSegment
) -> None:
    now_ns = make_span(1).start_time_unix_nano
    spans = [make_span(i + 1, start_ns=now_ns - i * DAY_NS) for i in range(130)]
    for _ in range(2):
        SegmentInsert(store).insert("traces", "wide", make_segment(spans))
    assert store.query("SELECT count() AS n FROM otel_traces") == [{"n": 130}]


@pytest.mark.parametrize(
    ("start_ns", "duration_ns", "stored_ns", "stored_duration"),
    [
        pytest.param(10**18, -1, 10**18, 0, id="ends before it starts"),
        pytest.param(10**18, -(10**18), 10**18, 0, id="never ended"),
        pytest.param(1000, 5, 1000, 5, id="in 1970"),
        pytest.param(2**63 + 5, 5, 2**63 - 1, 5, id="beyond the last day"),
    ],
)
def test_odd_times_are_stored_beside_their_neighbours(
    store: Store,
    make_span: MakeSpan,
    make_segment: MakeSegment,
    start_ns: int,
    duration_ns: int,
    stored_ns: int,
    stored_duration: int,
) -> None:
    odd = make_span(1, start_ns=start_ns, duration_ns=duration_ns)
    SegmentInsert(store).insert("traces", "a", make_segment([odd, make_span(2)]))
    rows = store.query(
        "SELECT toUnixTimestamp64Nano(Timestamp) AS ns, Duration FROM spans ORDER BY TraceId"
    )
    assert len(rows) == 2
    assert (rows[0]["ns"], rows[0]["Duration"]) == (stored_ns, stored_duration)


def test_the_sample_key_is_the_same_number_in_python_and_in_sql(
    store: Store, make_span: MakeSpan, make_segment: MakeSegment
) -> None:
    spans = [make_span(i * 7919 + 1) for i in range(200)]
    SegmentInsert(store).insert("traces", "a", make_segment(spans))
    rows = store.query("SELECT TraceId, SampleKey FROM spans")
    assert len(rows) == 200
    assert all(row["SampleKey"] == sample_key(row["TraceId"]) for row in rows)
    assert sample_key("0af7651916cd43dd8448eb211c80319c") == 0xECA49D27791B2E7A


def test_a_trace_is_found_by_its_key_without_reading_the_others(
    store: Store, make_span: MakeSpan, make_segment: MakeSegment
) -> None:
    spans = [make_span(i + 1) for i in range(30_000)]
    SegmentInsert(store).insert("traces", "a", make_segment(spans))
    store.command("OPTIMIZE TABLE otel_traces FINAL")
    trace_id = f"{12345:032x}"
    plan = store.query(
        "EXPLAIN indexes = 1 SELECT * FROM spans WHERE TraceId = {id:String} "
        "AND SampleKey = {key:UInt64}",
        {"id": trace_id, "key": sample_key(trace_id)},
    )
    granules = [row["explain"].split()[-1] for row in plan if "Granules:" in row["explain"]]
    assert granules[-1].partition("/")[0] in ("1", "2"), plan


def test_a_trace_is_touched_in_the_minute_its_spans_arrived(
    store: Store, make_span: MakeSpan, make_segment: MakeSegment
) -> None:
    two_of_one_trace: list[Span] = [make_span(1), make_span(1)]
    two_of_one_trace[1].span_id = b"\x09" * 8
    SegmentInsert(store).insert("traces", "a", make_segment(two_of_one_trace))
    [row] = store.query(
        "SELECT TraceId, SampleKey, At >= Bucket AND At < Bucket + 60 AS inside, "
        "abs(dateDiff('second', At, now64(3))) < 60 AS recent FROM touched"
    )
    assert row == {
        "TraceId": f"{1:032x}",
        "SampleKey": sample_key(f"{1:032x}"),
        "inside": 1,
        "recent": 1,
    }


def test_an_insert_of_the_exporters_own_columns_works(store: Store) -> None:
    store.command(
        "INSERT INTO otel_traces (Timestamp, TraceId, SpanId, ParentSpanId, TraceState, SpanName, "
        "SpanKind, ServiceName, ResourceAttributes, ScopeName, ScopeVersion, SpanAttributes, "
        "Duration, StatusCode, StatusMessage, Events.Timestamp, Events.Name, Events.Attributes, "
        "Links.TraceId, Links.SpanId, Links.TraceState, Links.Attributes) VALUES "
        "(now64(9), 'aa', 'bb', '', '', 'n', 'Client', 's', map(), '', '', "
        "map('retrospan.stage', 'retrieve'), 5, 'Ok', '', [], [], [], [], [], [], [])"
    )
    [row] = store.query("SELECT OperationName, SampleKey, Flags FROM spans")
    assert row == {"OperationName": "retrieve", "SampleKey": sample_key("aa"), "Flags": 0}
    assert store.query("SELECT TraceId FROM touched") == [{"TraceId": "aa"}]


def test_an_older_engine_is_told_in_its_own_words() -> None:
    assert "insert_deduplicate" in deduplication({"insert_deduplicate"})
    assert "deduplicate_insert" in deduplication({"insert_deduplicate", "deduplicate_insert"})
