"""Our encoder writes what the SDK's writes, for spans of ours and of anybody else's."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    TraceState,
    set_span_in_context,
)

from retrospan import Passage, rag_system
from tests.instrumentation.conftest import Recorder

encoder = pytest.importorskip(
    "opentelemetry.exporter.otlp.proto.common.trace_encoder",
    reason="retrospan[otlp] is not installed",
)
wire = pytest.importorskip("retrospan._wire")

PROVIDER = TracerProvider(shutdown_on_exit=False, resource=Resource({"service.name": "one"}))
TRACER = PROVIDER.get_tracer("application", "1", schema_url="https://example.org/schema")
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.one_of(
    TEXTS,
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),  # unequal to itself, also in a message
    st.lists(TEXTS),
    st.lists(st.integers(-1, 2**40)),
    st.lists(st.floats(allow_nan=False)),
    st.lists(st.booleans()),
)


def readable(span: object) -> ReadableSpan:
    assert isinstance(span, ReadableSpan)
    return span


def is_the_same(*spans: ReadableSpan) -> bool:
    expected = encoder.encode_spans(spans)
    return bool(expected.FromString(wire.encoded(spans)) == expected)


@given(st.dictionaries(st.text("abc.", min_size=1), VALUES), TEXTS, st.sampled_from(SpanKind))
def test_any_attributes_are_the_same_message(
    attributes: dict[str, object], name: str, kind: SpanKind
) -> None:
    span = TRACER.start_span(name, kind=kind, attributes=attributes)  # type: ignore[arg-type]  # any
    span.end()
    assert is_the_same(readable(span))


def test_a_recorded_request_is_the_same_message(recorder: Recorder) -> None:
    @rag_system(name="wire", version="1", depth=3, top_k=2, token_budget=9, index_version="1")
    class System:
        def retrieve(self, input: str, depth: int) -> object:
            from retrospan import Retrieval

            found = [Passage("ä", "text", 0.5, tokens=5), Passage("b", "السؤال", 1.5)]
            return Retrieval(input, [*found, Passage("c", "", 0.1, tokens=7)])

        def count_tokens(self, passage: Passage) -> int:
            return 4

        def generate(self, input: str, context: object) -> str:
            raise ValueError("no answer")

    with pytest.raises(ValueError, match="no answer"):
        System().answer("why?")  # type: ignore[attr-defined]  # added by the decorator
    assert len(recorder.spans) == 4
    assert is_the_same(*recorder.spans)


def test_parents_statuses_events_links_and_states_are_the_same_message() -> None:
    state = TraceState([("vendor", "1")])
    remote = SpanContext(2**120 + 1, 2**60 + 1, True, TraceFlags(1), state)
    plain = SpanContext(3, 4, True, TraceFlags(1))
    spans = []
    for parent in (remote, plain):
        inside = set_span_in_context(NonRecordingSpan(parent))
        for links in ([], [Link(remote, {"why": "because"})]):
            span = TRACER.start_span("chat", context=inside, links=links)
            span.set_status(Status(StatusCode.ERROR, "it broke: ä"))
            spans.append(span)
    spans[0].add_event("exception", {"message": "no"})
    ok = TRACER.start_span("fine")
    ok.set_status(StatusCode.OK)
    for span in [*spans, ok]:
        span.end()
    assert is_the_same(*[readable(span) for span in [*spans, ok]])


def test_spans_of_several_resources_and_scopes_are_grouped_alike() -> None:
    other = TracerProvider(shutdown_on_exit=False, resource=Resource({"service.name": "two"}))
    tracers = [TRACER, other.get_tracer("b"), PROVIDER.get_tracer("c"), TRACER]
    spans = [tracer.start_span("chat") for tracer in tracers]
    for span in spans:
        span.end()
    assert is_the_same(*[readable(span) for span in spans])


def test_missing_scores_are_the_same_bytes() -> None:
    tracer = PROVIDER.get_tracer("without a schema")
    span = tracer.start_span("retrieval", attributes={"scores": [0.5, float("nan"), -0.0]})
    span.end()
    assert wire.encoded([readable(span)]) == encoder.encode_spans([span]).SerializeToString()


def test_an_attribute_that_cannot_be_encoded_costs_itself_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    span = TRACER.start_span("chat", attributes={"half": "a\ud83d", "huge": 2**70, "text": "b"})
    span.end()
    with caplog.at_level(logging.WARNING, "retrospan"):
        request = encoder.encode_spans([]).FromString(wire.encoded([readable(span)]))
    [scope] = request.resource_spans[0].scope_spans
    assert [pair.key for pair in scope.spans[0].attributes] == ["text"]
    assert all(record.levelno < logging.ERROR for record in caplog.records)
