"""What is recorded of functions and blocks, and what is found out without being told."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, assert_type

import pytest

from retrospan import (
    ConfigurationError,
    Passage,
    Retrieval,
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
