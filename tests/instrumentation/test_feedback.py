"""What people thought of an answer, from the process that gave it or from any other."""

from __future__ import annotations

import asyncio
import logging
import math
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from retrospan import (
    CaptureMode,
    Passage,
    RequestReference,
    Retrieval,
    bind,
    current_request,
    feedback,
    generate,
    rag_system,
    request,
    run_scope,
)

if TYPE_CHECKING:
    from tests.instrumentation.conftest import Recorder

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
SPAN_ID = "b7ad6b7169203331"


def attributes_of(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_feedback_is_a_span_of_its_own_that_takes_no_time(recorder: Recorder) -> None:
    feedback(TRACE_ID, score=0, label="wrong", comment="it is 30 days")
    [span] = recorder.spans
    assert span.name == "feedback complaint"
    assert span.parent is None
    assert span.start_time == span.end_time
    assert attributes_of(span) == {
        "retrospan.schema.version": "1",
        "retrospan.stage": "feedback",
        "retrospan.request.trace_id": TRACE_ID,
        "retrospan.run.id": "test-run",
        "gen_ai.evaluation.name": "complaint",
        "gen_ai.evaluation.score.value": 0.0,
        "gen_ai.evaluation.score.label": "wrong",
        "gen_ai.evaluation.explanation": "it is 30 days",
    }


@pytest.mark.parametrize(
    ("given", "linked"),
    [
        (TRACE_ID, False),
        (f" {TRACE_ID.upper()} ", False),
        (f"{TRACE_ID}-{SPAN_ID}", True),
        (f"00-{TRACE_ID}-{SPAN_ID}-01", True),
        (RequestReference(trace_id=TRACE_ID, span_id=SPAN_ID, recorded=True), True),
    ],
)
def test_the_request_is_linked_only_where_its_span_is_known(
    recorder: Recorder, given: Any, linked: bool
) -> None:
    feedback(given, kind="thumb", score=1)
    [span] = recorder.spans
    assert attributes_of(span)["retrospan.request.trace_id"] == TRACE_ID
    links = [trace.format_span_id(link.context.span_id) for link in span.links]
    assert links == ([SPAN_ID] if linked else [])


def test_inside_a_request_it_is_about_that_one(recorder: Recorder) -> None:
    with request(name="desk", input="q"):
        feedback(score=1, kind="self-check")
    given, asked = recorder.spans
    assert asked.context is not None and given.context is not None
    trace_id = trace.format_trace_id(asked.context.trace_id)
    assert attributes_of(given)["retrospan.request.trace_id"] == trace_id
    assert given.context.trace_id != asked.context.trace_id
    assert given.links[0].context.span_id == asked.context.span_id


def test_a_front_end_gets_what_feedback_takes_later(recorder: Recorder) -> None:
    @generate
    def say(query: str) -> str:
        return str(current_request())

    with request(name="desk", input="q"):
        known = current_request()
        said = say("q")
    assert known is not None and known.recorded
    assert said == str(known) == f"{known.trace_id}-{known.span_id}"
    assert current_request() is None
    feedback(said)
    root = recorder.span("request").context
    assert root is not None
    linked = recorder.span("feedback").links[0].context
    assert (linked.trace_id, linked.span_id) == (root.trace_id, root.span_id)


def test_two_requests_at_once_each_know_themselves(recorder: Recorder) -> None:
    async def ask(name: str) -> RequestReference | None:
        async with request(name=name, input=name):
            await asyncio.sleep(0)
            return current_request()

    async def both() -> tuple[RequestReference | None, RequestReference | None]:
        return await asyncio.gather(ask("one"), ask("two"))

    one, two = asyncio.run(both())
    spans = {span.name[-3:]: span.context for span in recorder.spans}
    for name, reference in (("one", one), ("two", two)):
        context = spans[name]
        assert reference is not None and context is not None
        assert reference.span_id == trace.format_span_id(context.span_id)


def test_a_request_that_is_not_sampled_says_so() -> None:
    provider = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    with run_scope(run_id="r", tracer_provider=provider), request(name="desk", input="q"):
        known = current_request()
    assert known is None or not known.recorded


def test_without_a_provider_there_is_no_request_to_keep() -> None:
    with request(name="desk", input="q"):
        assert current_request() is None
        feedback(score=1)


@pytest.mark.parametrize("given", ["", "yes", "0" * 32, TRACE_ID[:-1], f"{TRACE_ID}-xyz", 7, None])
def test_what_names_no_request_is_not_recorded_and_not_raised(
    recorder: Recorder, caplog: pytest.LogCaptureFixture, given: Any
) -> None:
    with caplog.at_level(logging.ERROR):
        feedback(given, score=1)
    assert recorder.spans == ()
    assert caplog.messages == []


@pytest.mark.parametrize("score", [math.nan, math.inf, "five", None, object()])
def test_a_score_that_is_no_number_is_left_out(recorder: Recorder, score: Any) -> None:
    feedback(TRACE_ID, score=score, comment="c")
    recorded = attributes_of(recorder.span("feedback"))
    assert "gen_ai.evaluation.score.value" not in recorded
    assert recorded["gen_ai.evaluation.explanation"] == "c"


@pytest.mark.parametrize(
    ("mode", "kept"), [("full", True), ("passages-hashed", True), ("hashed", False)]
)
def test_a_comment_is_content(recorder: Recorder, mode: CaptureMode, kept: bool) -> None:
    with request(name="desk", input="q", capture=mode, redact=lambda text: text.lower()):
        feedback(comment="WRONG")
    recorded = attributes_of(recorder.span("feedback"))
    assert recorded.get("gen_ai.evaluation.explanation") == ("wrong" if kept else None)


def test_the_outcome_of_a_decorated_system_says_what_feedback_is_given_with(
    recorder: Recorder,
) -> None:
    @rag_system(name="desk", version="1", depth=1, top_k=1, index_version="1")
    class Desk:
        def retrieve(self, input: str, depth: int) -> Retrieval:
            return Retrieval(input, [])

        def generate(self, input: str, context: tuple[Passage, ...]) -> str:
            return str(current_request())

    outcome = bind(Desk()).answer("q")
    assert outcome.request is not None
    assert outcome.answer == str(outcome.request)
    feedback(outcome.request, score=1, kind="thumb")
    root = recorder.span("request").context
    assert root is not None
    assert recorder.span("feedback").links[0].context.span_id == root.span_id
