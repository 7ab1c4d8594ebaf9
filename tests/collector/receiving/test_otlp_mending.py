"""What the store could not decode is mended and reported; everything else stays byte for byte."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from retrospan_collector.otlp import mending
from retrospan_collector.otlp.inspection import inspect
from retrospan_collector.otlp.mending import LATEST_NS, MAX_NESTING
from retrospan_collector.otlp.refusals import TooLarge, Undecodable

MakeRequest = Callable[..., ExportTraceServiceRequest]


def _spans(payload: bytes) -> list[Span]:
    request = ExportTraceServiceRequest.FromString(payload)
    return [s for r in request.resource_spans for ss in r.scope_spans for s in ss.spans]


def _nested(levels: int) -> AnyValue:
    value = AnyValue(int_value=7)
    for level in range(levels):
        outer = AnyValue()
        if level % 2:
            outer.kvlist_value.values.add(key="k").value.CopyFrom(value)
        else:
            outer.array_value.values.add().CopyFrom(value)
        value = outer
    return value


scalars = st.one_of(
    st.builds(lambda v: AnyValue(string_value=v), st.text(max_size=5)),
    st.builds(lambda v: AnyValue(int_value=v), st.integers(-(2**63), 2**63 - 1)),
    st.builds(lambda v: AnyValue(double_value=v), st.floats()),
    st.builds(lambda v: AnyValue(bool_value=v), st.booleans()),
    st.builds(lambda v: AnyValue(bytes_value=v), st.binary(max_size=5)),
    st.just(AnyValue()),
)


def _list_or_map(values: st.SearchStrategy[AnyValue]) -> st.SearchStrategy[AnyValue]:
    def as_list(items: list[AnyValue]) -> AnyValue:
        value = AnyValue()
        value.array_value.values.extend(items)
        return value

    def as_map(items: list[tuple[str, AnyValue]]) -> AnyValue:
        value = AnyValue()
        value.kvlist_value.values.extend(KeyValue(key=key, value=item) for key, item in items)
        return value

    pairs = st.lists(st.tuples(st.sampled_from("abc"), values), max_size=3)
    return st.lists(values, max_size=3).map(as_list) | pairs.map(as_map)


any_values = st.recursive(scalars, _list_or_map, max_leaves=8)
attributes = st.lists(st.tuples(st.sampled_from("abcd"), any_values), max_size=4)


def _depth(value: AnyValue) -> int:
    inner = [item for item in value.array_value.values]
    inner += [entry.value for entry in value.kvlist_value.values]
    container = value.WhichOneof("value") in ("array_value", "kvlist_value")
    return int(container) + max((_depth(item) for item in inner), default=0)


def _keys_are_unique(attributes: list[KeyValue]) -> bool:
    nested = [list(a.value.kvlist_value.values) for a in attributes]
    nested += [
        list(item.kvlist_value.values) for a in attributes for item in a.value.array_value.values
    ]
    return len({a.key for a in attributes}) == len(attributes) and all(
        map(_keys_are_unique, nested)
    )


@given(attributes=attributes, start=st.integers(0, 2**64 - 1), end=st.integers(0, 2**64 - 1))
def test_what_leaves_the_inspection_is_always_storable_and_never_changed_again(
    attributes: list[tuple[str, AnyValue]], start: int, end: int
) -> None:
    request = ExportTraceServiceRequest()
    span = (
        request.resource_spans.add()
        .scope_spans.add()
        .spans.add(
            trace_id=b"t" * 16, span_id=b"s" * 8, start_time_unix_nano=start, end_time_unix_nano=end
        )
    )
    span.attributes.extend(KeyValue(key=key, value=value) for key, value in attributes)
    sent = request.SerializeToString()
    inspected = inspect(sent)
    (stored,) = _spans(inspected.payload)
    assert _keys_are_unique(list(stored.attributes))
    assert all(_depth(attribute.value) <= MAX_NESTING for attribute in stored.attributes)
    assert max(stored.start_time_unix_nano, stored.end_time_unix_nano) <= LATEST_NS
    assert {a.key for a in stored.attributes} == {key for key, _ in attributes}
    assert bool(inspected.mended) == (inspected.payload != sent)
    again = inspect(inspected.payload)
    assert again.payload == inspected.payload
    assert not again.mended


def test_a_request_without_need_of_mending_keeps_fields_nobody_knows_here(
    make_request: MakeRequest,
) -> None:
    future_field = bytes([0xF2, 0x3F, 3]) + b"new"
    payload = make_request(spans=2).SerializeToString() + future_field
    assert inspect(payload).payload == payload


@pytest.mark.parametrize("levels", range(MAX_NESTING + 1))
def test_a_value_within_the_nesting_is_left_alone(levels: int, make_request: MakeRequest) -> None:
    request = make_request()
    span = request.resource_spans[0].scope_spans[0].spans[0]
    span.attributes.add(key="nested").value.CopyFrom(_nested(levels))
    assert not inspect(request.SerializeToString()).mended


def test_a_value_nested_deeper_becomes_json_text_where_it_goes_too_deep(
    make_request: MakeRequest,
) -> None:
    request = make_request()
    span = request.resource_spans[0].scope_spans[0].spans[0]
    span.attributes.add(key="nested").value.CopyFrom(_nested(MAX_NESTING + 3))
    inspected = inspect(request.SerializeToString())
    value = _spans(inspected.payload)[0].attributes[1].value
    while value.WhichOneof("value") != "string_value":
        value = (
            value.array_value.values[0]
            if value.HasField("array_value")
            else value.kvlist_value.values[0].value
        )
    assert json.loads(value.string_value) == [{"k": [7]}]
    assert inspected.mended == {"values nested deeper than 3 stored as JSON text": 1}


def test_json_text_keeps_every_kind_of_value(make_request: MakeRequest) -> None:
    request = make_request()
    span = request.resource_spans[0].scope_spans[0].spans[0]
    value = span.attributes.add(key="deep").value
    for _ in range(MAX_NESTING):
        value = value.array_value.values.add()
    deepest = value.array_value.values
    deepest.add(string_value="نص")
    deepest.add(int_value=2**60 + 1)
    deepest.add(double_value=float("nan"))
    deepest.add(bytes_value=b"\x00\xff")
    deepest.add(bool_value=True)
    deepest.add()
    stored = _spans(inspect(request.SerializeToString()).payload)[0].attributes[1].value
    for _ in range(MAX_NESTING):
        stored = stored.array_value.values[0]
    assert stored.string_value == '["نص", 1152921504606846977, "nan", "AP8=", true, null]'


@dataclass(frozen=True)
class Case:
    id: str
    spoil: Callable[[Span], object]
    change: str
    check: Callable[[Span], bool]


CASES = [
    Case(
        "the last of two values of a key stays",
        lambda span: span.attributes.add(key="text", value=AnyValue(string_value="last")),
        "attributes dropped for a later one of the same key",
        lambda span: [a.value.string_value for a in span.attributes] == ["last"],
    ),
    Case(
        "a start in the year 2300 is set to the last day there is",
        lambda span: span.MergeFrom(Span(start_time_unix_nano=10_413_792_000_000_000_000)),
        "times beyond 2262-04-11 set to that day",
        lambda span: span.start_time_unix_nano == LATEST_NS,
    ),
    Case(
        "so is the time of an event",
        lambda span: span.events.add(name="e", time_unix_nano=2**64 - 1),
        "times beyond 2262-04-11 set to that day",
        lambda span: span.events[0].time_unix_nano == LATEST_NS,
    ),
    Case(
        "a parent id of zeros is no parent",
        lambda span: span.MergeFrom(Span(parent_span_id=bytes(8))),
        "parent ids of zeros removed",
        lambda span: span.parent_span_id == b"",
    ),
    Case(
        "a link to nowhere is dropped and counted on the span",
        lambda span: span.links.add(trace_id=b"short", span_id=b"s" * 8),
        "links with broken ids dropped",
        lambda span: not span.links and span.dropped_links_count == 1,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_mended_span_is_stored_beside_its_neighbours_and_reported(
    case: Case, make_request: MakeRequest
) -> None:
    request = make_request(spans=3)
    case.spoil(request.resource_spans[0].scope_spans[0].spans[1])
    inspected = inspect(request.SerializeToString())
    assert inspected.mended == {case.change: 1}
    assert inspected.accepted == 3
    first, mended, third = _spans(inspected.payload)
    assert case.check(mended)
    assert [first, third] == [request.resource_spans[0].scope_spans[0].spans[n] for n in (0, 2)]
    answer = ExportTraceServiceResponse.FromString(inspected.response())
    assert answer.partial_success.rejected_spans == 0
    assert answer.partial_success.error_message == f"1 {case.change}"


def test_attributes_of_resource_and_scope_are_mended_as_well(make_request: MakeRequest) -> None:
    request = make_request()
    resource_spans = request.resource_spans[0]
    for attributes in (
        resource_spans.resource.attributes,
        resource_spans.scope_spans[0].scope.attributes,
    ):
        attributes.add(key="service.name").value.string_value = "first"
        attributes.add(key="service.name").value.string_value = "last"
    stored = ExportTraceServiceRequest.FromString(inspect(request.SerializeToString()).payload)
    (resource,) = stored.resource_spans[0].resource.attributes
    (scope,) = stored.resource_spans[0].scope_spans[0].scope.attributes
    assert resource.value.string_value == scope.value.string_value == "last"


@pytest.mark.parametrize(
    "broken",
    [
        Span(trace_id=b"", span_id=b"s" * 8),
        Span(trace_id=b"t" * 15, span_id=b"s" * 8),
        Span(trace_id=b"5b8efff798038103d269b633813fc60c", span_id=b"s" * 8),
        Span(trace_id=bytes(16), span_id=b"s" * 8),
        Span(trace_id=b"t" * 16, span_id=b""),
        Span(trace_id=b"t" * 16, span_id=bytes(8)),
        Span(trace_id=b"t" * 16, span_id=b"s" * 8, parent_span_id=b"p" * 7),
    ],
    ids=["no trace id", "15 bytes", "hex text", "zeros", "no span id", "zero span id", "parent"],
)
def test_a_span_with_a_broken_id_is_rejected_alone(broken: Span, make_request: MakeRequest) -> None:
    request = make_request(spans=2)
    request.resource_spans[0].scope_spans[0].spans.insert(1, broken)
    inspected = inspect(request.SerializeToString())
    assert (inspected.accepted, inspected.rejected.total()) == (2, 1)
    assert [span.name for span in _spans(inspected.payload)] == ["span 1", "span 2"]


def test_a_request_of_rejected_spans_only_leaves_nothing_to_store(
    make_request: MakeRequest,
) -> None:
    request = make_request(spans=2)
    for span in request.resource_spans[0].scope_spans[0].spans:
        span.trace_id = bytes(16)
    inspected = inspect(request.SerializeToString())
    assert (inspected.payload, inspected.accepted, inspected.rejected.total()) == (b"", 0, 2)


def test_spans_without_any_ids_are_taken_for_another_signal(make_request: MakeRequest) -> None:
    request = make_request(spans=2)
    for span in request.resource_spans[0].scope_spans[0].spans:
        span.ClearField("trace_id")
        span.ClearField("span_id")
    with pytest.raises(Undecodable, match="are these logs"):
        inspect(request.SerializeToString())


def test_more_than_a_million_values_are_refused() -> None:
    value = AnyValue()
    value.array_value.values.extend([AnyValue()] * (mending.MAX_ATTRIBUTES + 1))
    request = ExportTraceServiceRequest()
    span = (
        request.resource_spans.add()
        .scope_spans.add()
        .spans.add(trace_id=b"t" * 16, span_id=b"s" * 8)
    )
    span.attributes.add(key="many", value=value)
    with pytest.raises(TooLarge, match="smaller batches"):
        inspect(request.SerializeToString())
