"""A request as a block or on a function: what it encloses, and what is recorded of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import trace

from retrospan import ConfigurationError, Passage, assemble, generate, request, retrieve

if TYPE_CHECKING:
    from tests.instrumentation.conftest import Recorder


def test_a_request_of_functions_is_one_trace_with_its_context(recorder: Recorder) -> None:
    @retrieve
    def find(query: str) -> list[Passage]:
        return [Passage("a", "one", tokens=3), Passage("b", "two", tokens=9)]

    @generate
    def reply(question: str, context: tuple[Passage, ...]) -> str:
        return context[0].text

    @request(name="desk", version="2", conversation_id="c-1", user_roles=("staff",))
    def serve(question: str) -> str:
        assembly = assemble(find(question), top_k=2, token_budget=5, prompt_name="short")
        return reply(question, assembly.context)

    assert serve("q") == "one"
    assert [span.name for span in recorder.spans] == [
        "retrieval",
        "assemble short",
        "generate reply",
        "invoke_workflow desk",
    ]
    assert len({span.context.trace_id for span in recorder.spans if span.context}) == 1
    asked = recorder.attributes("request")
    assert asked["retrospan.input"] == '"q"'
    assert asked["retrospan.system.version"] == "2"
    assert asked["gen_ai.conversation.id"] == "c-1"
    assert asked["user.roles"] == ("staff",)
    assembled = recorder.attributes("assemble")
    assert assembled["retrospan.assembly.dropped_reason"] == ("", "budget")
    assert assembled["gen_ai.prompt.name"] == "short"
    assert recorder.attributes("generate")["retrospan.context.identity"] != ""


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda serve: serve("q"), '{"question": "q", "limit": 3}'),
        (lambda serve: serve("q", limit=5), '{"question": "q", "limit": 5}'),
    ],
)
def test_the_input_of_a_decorated_request_is_its_arguments(
    call: Callable[[Any], object], expected: str, recorder: Recorder
) -> None:
    @request
    def serve(question: str, limit: int = 3) -> str:
        return question

    call(serve)
    assert recorder.attributes("request")["retrospan.input"] == expected


def test_the_input_of_a_request_can_be_told_by_a_function(recorder: Recorder) -> None:
    class Handler:
        @request(name="handler", input=lambda self, body: body["question"])
        async def post(self, body: dict[str, str]) -> str:
            return "ok"

    asyncio.run(Handler().post({"question": "q", "token": "secret"}))
    assert recorder.attributes("request")["retrospan.input"] == '"q"'


def test_a_request_as_a_block_gives_its_reference(recorder: Recorder) -> None:
    with request(name="block", input={"question": "q"}) as reference:
        assert trace.get_current_span().get_span_context().is_valid
    [span] = recorder.spans
    assert reference is not None and span.context is not None
    assert int(reference.trace_id, 16) == span.context.trace_id
    assert recorder.attributes("request")["retrospan.input"] == '{"question": "q"}'


def test_one_request_object_serves_several_blocks_at_once(recorder: Recorder) -> None:
    shared = request(name="shared", input="q")

    async def serve(turns: int) -> str:
        async with shared as reference:
            for _ in range(turns):
                await asyncio.sleep(0)
            assert reference is not None
            return reference.trace_id

    async def main() -> tuple[str, ...]:
        return await asyncio.gather(serve(5), serve(1), serve(3))

    traces = asyncio.run(main())
    assert len(set(traces)) == 3
    ended = [format(span.context.trace_id, "032x") for span in recorder.spans if span.context]
    assert ended == [traces[1], traces[2], traces[0]]
    assert not trace.get_current_span().get_span_context().is_valid


def test_an_exception_in_a_request_passes_and_marks_it(recorder: Recorder) -> None:
    problem = ValueError("mine")
    with pytest.raises(ValueError, match="mine") as caught, request(name="block", input="q"):
        raise problem
    assert caught.value is problem
    assert recorder.attributes("request")["error.type"] == "ValueError"


def test_a_request_without_a_name_or_with_an_unknown_capture_is_refused() -> None:
    nameless: Any = request
    with pytest.raises(ConfigurationError, match="request needs a name"):
        nameless()
    unknown: Any = "everything"
    with pytest.raises(ConfigurationError, match="capture must be one of"):
        request(name="r", capture=unknown)


def test_what_a_request_may_record_holds_for_everything_inside(recorder: Recorder) -> None:
    @retrieve
    def find(query: str) -> list[str]:
        raise ValueError("secret")

    with pytest.raises(ValueError, match="secret"), request(name="r", input="i", capture="none"):
        find("secret")
    assert "secret" not in str([(dict(s.attributes or {}), s.status) for s in recorder.spans])
    assert "secret" not in str([span.status.description for span in recorder.spans])
