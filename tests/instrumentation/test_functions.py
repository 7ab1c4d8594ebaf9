"""What is recorded of functions and blocks, and what is found out without being told."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, assert_type

import pytest
from opentelemetry import trace

from retrospan import (
    ConfigurationError,
    Passage,
    Retrieval,
    assemble,
    generate,
    request,
    retrieve,
)

if TYPE_CHECKING:
    from tests.instrumentation.conftest import Recorder


def test_a_bare_retriever_is_recorded_with_what_can_be_told(recorder: Recorder) -> None:
    @retrieve
    def find(question: str, k: int = 4, filter: dict[str, str] | None = None) -> list[Passage]:
        return [Passage("a", "text", 0.5)]

    assert_type(find("how?", filter={"lang": "en"}), list[Passage])
    recorded = recorder.attributes("retrieve")
    assert recorder.span("retrieve").name == "retrieval"
    assert recorded["gen_ai.retrieval.query.text"] == "how?"
    assert recorded["gen_ai.retrieval.top_k"] == 4
    assert json.loads(recorded["retrospan.retrieval.filter"]) == {"lang": "en"}
    assert recorded["retrospan.passages.id"] == ("a",)
    assert recorded["retrospan.passages.score"] == (0.5,)


def test_everything_that_is_declared_of_a_retriever_is_recorded(recorder: Recorder) -> None:
    @retrieve(
        passages=lambda rows: [Passage(row[0], row[1]) for row in rows],
        index_version={"snapshot": "2026-11"},
        depth=20,
        query="words",
        score_kind="similarity",
        data_source_id="shelf",
        embedding_model="embedder-2",
        tokenizer="words",
        count_tokens=lambda passage: len(passage.text.split()),
        filter="only",
    )
    def find(only: str, words: str) -> list[tuple[str, str]]:
        return [("a", "one two three")]

    assert find("de", "q") == [("a", "one two three")]
    recorded = recorder.attributes("retrieve")
    assert recorder.span("retrieve").name == "retrieval shelf"
    expected = {
        "gen_ai.retrieval.query.text": "q",
        "gen_ai.retrieval.top_k": 20,
        "retrospan.index.version": '{"snapshot":"2026-11"}',
        "retrospan.retrieval.score_kind": "similarity",
        "gen_ai.data_source.id": "shelf",
        "gen_ai.request.model": "embedder-2",
        "retrospan.tokenizer": "words",
        "retrospan.retrieval.filter": '"de"',
        "retrospan.passages.tokens": (3,),
    }
    assert {name: recorded[name] for name in expected} == expected


def test_functions_may_tell_what_a_call_was_asked(recorder: Recorder) -> None:
    class Index:
        version = "7"

        @retrieve(
            index_version=lambda self, text, **_: self.version,
            query=lambda self, text, **_: text.lower(),
            filter=lambda self, text, **more: more,
            depth="count",
        )
        def find(self, text: str, *, count: int) -> list[str]:
            return [text] * count

    Index().find("QUERY", count=2)
    recorded = recorder.attributes("retrieve")
    assert recorded["retrospan.index.version"] == "7"
    assert recorded["gen_ai.retrieval.query.text"] == "query"
    assert recorded["gen_ai.retrieval.top_k"] == 2
    assert json.loads(recorded["retrospan.retrieval.filter"]) == {"count": 2}


def test_an_index_version_without_arguments_is_asked_at_each_call(recorder: Recorder) -> None:
    versions = iter(["1", "2"])

    @retrieve(index_version=lambda: next(versions))
    def find(query: str) -> list[str]:
        return []

    find("q")
    find("q")
    recorded = [(span.attributes or {})["retrospan.index.version"] for span in recorder.spans]
    assert recorded == ["1", "2"]


def test_a_retrieval_tells_more_than_the_arguments(recorder: Recorder) -> None:
    @retrieve
    def find(query: str) -> Retrieval:
        return Retrieval("rewritten", [Passage("a")], depth=9)

    find("original")
    recorded = recorder.attributes("retrieve")
    assert recorded["gen_ai.retrieval.query.text"] == "rewritten"
    assert recorded["gen_ai.retrieval.top_k"] == 9


def test_what_is_not_understood_is_never_an_empty_retrieval(
    recorder: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    @retrieve
    def find_something(query: str) -> Any:
        return {"rows": 1}

    with caplog.at_level(logging.WARNING, logger="retrospan"):
        assert find_something("q") == {"rows": 1}
        assert find_something("q") == {"rows": 1}
    for span in recorder.spans:
        recorded = span.attributes or {}
        assert recorded["gen_ai.retrieval.query.text"] == "q"
        assert not [name for name in recorded if name.startswith("retrospan.passages.")]
    [message] = caplog.messages
    assert "find_something returned (a dict) is not understood" in message


@pytest.mark.parametrize(
    "declared",
    [
        {"passages": lambda value: 1 / 0},
        {"index_version": lambda: 1 / 0},
        {"query": lambda query: 1 / 0},
        {"filter": lambda query: 1 / 0},
        {"count_tokens": lambda passage: 1 / 0},
    ],
    ids=lambda declared: next(iter(declared)),
)
def test_a_declared_function_that_raises_breaks_nothing(
    declared: dict[str, Any], recorder: Recorder
) -> None:
    @retrieve(**declared)
    def find(query: str) -> list[str]:
        return ["text"]

    assert find("q") == ["text"]
    assert recorder.attributes("retrieve")["gen_ai.operation.name"] == "retrieval"


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"depth": 0}, "depth must be a whole number of 1 or more, or the name"),
        ({"depth": True}, "depth must be a whole number"),
        ({"depth": "n"}, "depth='n' is no parameter of the function; it has query"),
        ({"query": "words"}, "query='words' is no parameter of the function; it has query"),
        ({"index_version": ""}, "index_version must be a text that is not empty; it is ''"),
        ({"score_kind": 3}, "score_kind must be a text that is not empty; it is 3"),
        ({"passages": "id"}, "passages must be a function; it is 'id'"),
    ],
)
def test_a_retriever_declared_wrongly_is_refused_at_decoration(
    declared: dict[str, Any], message: str
) -> None:
    def find(query: str) -> list[str]:
        return []

    with pytest.raises(ConfigurationError, match=f"^retrieve: {message}"):
        retrieve(**declared)(find)


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"name": ""}, "generate: name must be a text that is not empty; it is ''"),
        ({"answer": ""}, "generate: answer must be a path such as 'answer.text', or a function"),
        ({"citations": 3}, "generate: citations must be a path"),
    ],
)
def test_a_generator_declared_wrongly_is_refused_at_decoration(
    declared: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"^{message}"):
        generate(**declared)


def test_a_failed_retrieval_says_what_was_asked(recorder: Recorder) -> None:
    problem = TimeoutError("index down")

    @retrieve
    def find(query: str) -> list[str]:
        raise problem

    with pytest.raises(TimeoutError) as caught:
        find("q")
    assert caught.value is problem
    recorded = recorder.attributes("retrieve")
    assert recorded["gen_ai.retrieval.query.text"] == "q"
    assert recorded["error.type"] == "TimeoutError"
    assert "retrospan.passages.id" not in recorded


def test_a_bare_generator_gives_its_answer_and_citations(recorder: Recorder) -> None:
    @generate
    def reply(question: str) -> Mapping[str, object]:
        return {"answer": "yes", "citations": ["a", 2]}

    reply("q")
    recorded = recorder.attributes("generate")
    assert recorder.span("generate").name == "generate reply"
    assert recorded["retrospan.answer"] == "yes"
    assert recorded["retrospan.citations"] == '["a", 2]'
    assert recorded["retrospan.completed"] is True


def test_everything_that_is_declared_of_a_generator_is_recorded(recorder: Recorder) -> None:
    @generate(
        answer=lambda output: output[0],
        citations=lambda output: output[1],
        model="model-5",
        prompt_name="short",
        prompt_version="3",
    )
    async def reply(question: str) -> tuple[str, list[int]]:
        return "yes", [1]

    assert asyncio.run(reply("q")) == ("yes", [1])
    recorded = recorder.attributes("generate")
    assert recorder.span("generate").name == "chat model-5"
    expected = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "model-5",
        "gen_ai.prompt.name": "short",
        "gen_ai.prompt.version": "3",
        "retrospan.answer": "yes",
        "retrospan.citations": "[1]",
    }
    assert {name: recorded[name] for name in expected} == expected


@pytest.mark.parametrize("part", ["answer", "citations"])
def test_a_function_that_cannot_find_a_part_costs_that_part_only(
    part: str, recorder: Recorder
) -> None:
    broken: dict[str, Any] = {part: lambda output: 1 / 0}

    @generate(**broken)
    def reply(question: str) -> Mapping[str, object]:
        return {"answer": "yes", "citations": ["a"]}

    reply("q")
    recorded = recorder.attributes("generate")
    assert recorded["retrospan.completed"] is True
    assert f"retrospan.{part}" not in recorded
    assert ("retrospan.answer" in recorded) != ("retrospan.citations" in recorded)


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


def test_without_a_provider_functions_are_called_straight_through() -> None:
    @retrieve
    def find(query: str) -> list[str]:
        return [query]

    @generate
    async def reply(question: str) -> str:
        return question

    with request(name="r", input="q") as reference:
        assert find("q") == ["q"]
        assert asyncio.run(reply("a")) == "a"
    assert reference is None


def test_a_function_that_names_no_parameters_is_recorded_all_the_same(recorder: Recorder) -> None:
    @request
    def serve(*args: object, **kwargs: object) -> list[str]:
        return find(*args, **kwargs)

    @retrieve
    def find(*args: object, **kwargs: object) -> list[str]:
        return []

    serve(7, "q", k=2)
    assert recorder.attributes("request")["retrospan.input"] == '{"k": 2, "args": [7, "q"]}'
    assert recorder.attributes("retrieve")["gen_ai.retrieval.query.text"] == "q"
