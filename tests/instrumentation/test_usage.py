"""What providers' responses say: tokens, model, finish reason, answer; whole or in chunks."""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from retrospan import generate
from retrospan._output import answer_of
from retrospan._usage import generation_facts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.instrumentation.conftest import Recorder

COMPLETION = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "model": "gpt-x-2026",
    "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "Yes."}}],
    "usage": {
        "prompt_tokens": 120,
        "completion_tokens": 30,
        "prompt_tokens_details": {"cached_tokens": 100},
        "completion_tokens_details": {"reasoning_tokens": 20},
    },
}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "model": "gpt-x-2026",
    "status": "completed",
    "output_text": "Yes.",
    "usage": {
        "input_tokens": 120,
        "output_tokens": 30,
        "input_tokens_details": {"cached_tokens": 100},
        "output_tokens_details": {"reasoning_tokens": 20},
    },
}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "model": "claude-x",
    "stop_reason": "max_tokens",
    "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Yes."}],
    "usage": {
        "input_tokens": 15,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 5,
        "output_tokens": 30,
    },
}
LANGCHAIN = {
    "content": "Yes.",
    "id": "run-1",
    "response_metadata": {"model_name": "gpt-x", "finish_reason": "stop", "id": "chatcmpl-1"},
    "usage_metadata": {
        "input_tokens": 120,
        "output_tokens": 30,
        "input_token_details": {"cache_read": 100},
        "output_token_details": {"reasoning": 20},
    },
}


def as_object(value: Any) -> Any:
    """The same response as an object with attributes, as the providers' packages give it."""
    if isinstance(value, dict):
        return SimpleNamespace(**{name: as_object(part) for name, part in value.items()})
    return [as_object(item) for item in value] if isinstance(value, list) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a response says."""

    name: str
    response: dict[str, Any]
    facts: dict[str, Any]


CASES = [
    Case(
        name="completion",
        response=COMPLETION,
        facts={
            "gen_ai.usage.input_tokens": 120,
            "gen_ai.usage.output_tokens": 30,
            "gen_ai.usage.cache_read.input_tokens": 100,
            "gen_ai.usage.reasoning.output_tokens": 20,
            "gen_ai.response.finish_reasons": ["stop"],
            "gen_ai.response.model": "gpt-x-2026",
            "gen_ai.response.id": "chatcmpl-1",
        },
    ),
    Case(
        name="response",
        response=RESPONSE,
        facts={
            "gen_ai.usage.input_tokens": 120,
            "gen_ai.usage.output_tokens": 30,
            "gen_ai.usage.cache_read.input_tokens": 100,
            "gen_ai.usage.reasoning.output_tokens": 20,
            "gen_ai.response.finish_reasons": ["completed"],
            "gen_ai.response.model": "gpt-x-2026",
            "gen_ai.response.id": "resp_1",
        },
    ),
    Case(
        name="message, cached tokens counted in",
        response=MESSAGE,
        facts={
            "gen_ai.usage.input_tokens": 120,
            "gen_ai.usage.output_tokens": 30,
            "gen_ai.usage.cache_read.input_tokens": 100,
            "gen_ai.usage.cache_write.input_tokens": 5,
            "gen_ai.response.finish_reasons": ["max_tokens"],
            "gen_ai.response.model": "claude-x",
            "gen_ai.response.id": "msg_1",
        },
    ),
    Case(
        name="langchain message",
        response=LANGCHAIN,
        facts={
            "gen_ai.usage.input_tokens": 120,
            "gen_ai.usage.output_tokens": 30,
            "gen_ai.usage.cache_read.input_tokens": 100,
            "gen_ai.usage.reasoning.output_tokens": 20,
            "gen_ai.response.finish_reasons": ["stop"],
            "gen_ai.response.model": "gpt-x",
            "gen_ai.response.id": "chatcmpl-1",
        },
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_facts_of_a_response_are_read_from_dicts_and_from_objects(case: Case) -> None:
    assert generation_facts(case.response) == case.facts
    assert generation_facts(as_object(case.response)) == case.facts


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_answer_of_a_response_is_read_too(case: Case) -> None:
    assert answer_of(case.response, "answer") == "Yes."
    assert answer_of(as_object(case.response), "answer") == "Yes."


@pytest.mark.parametrize("name", ["response", "raw_response", "raw", "completion"])
def test_a_response_that_an_application_hands_on_beside_its_answer_is_found(name: str) -> None:
    output = {"answer": "Yes.", "citations": [1], name: as_object(COMPLETION)}
    assert generation_facts(output) == generation_facts(COMPLETION)


@pytest.mark.parametrize(
    "output",
    [
        None,
        "text",
        7,
        {"answer": "x", "model": "mine", "id": "mine"},
        {"usage": None},
        {"usage": {"input_tokens": "many", "output_tokens": -1, "prompt_tokens": True}},
        SimpleNamespace(model="mine"),
    ],
)
def test_what_is_no_response_says_nothing(output: object) -> None:
    assert generation_facts(output) == {}


def test_a_response_whose_parts_raise_costs_nothing() -> None:
    class Broken:
        @property
        def usage(self) -> NoReturn:
            raise RuntimeError("lazy")

        @property
        def choices(self) -> NoReturn:
            raise RuntimeError("lazy")

    assert generation_facts(Broken()) == {}


def test_the_facts_of_chunks_add_up(recorder: Recorder) -> None:
    events = [
        {
            "type": "message_start",
            "message": {
                "id": "msg_1",
                "model": "claude-x",
                "usage": {"input_tokens": 15, "output_tokens": 1},
            },
        },
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "Ye"}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "s."}},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn"},
            "usage": {"output_tokens": 30},
        },
    ]

    @generate
    def stream(query: str) -> Iterator[Any]:
        yield from map(as_object, events)

    assert len(list(stream("q"))) == 4
    said = recorder.attributes("generate")
    assert said["retrospan.answer"] == "Yes."
    assert (said["gen_ai.usage.input_tokens"], said["gen_ai.usage.output_tokens"]) == (15, 30)
    assert said["gen_ai.response.finish_reasons"] == ("end_turn",)
    assert said["gen_ai.response.model"] == "claude-x"


def test_a_decorated_function_records_what_the_provider_said(recorder: Recorder) -> None:
    @generate(model="gpt-x", prompt_name="desk", prompt_version="4")
    def complete(query: str) -> object:
        return as_object(COMPLETION)

    complete("q")
    said = recorder.attributes("generate")
    assert recorder.span("generate").name == "chat gpt-x"
    assert said["retrospan.answer"] == "Yes."
    assert said["gen_ai.request.model"] == "gpt-x"
    assert said["gen_ai.response.model"] == "gpt-x-2026"
    assert said["gen_ai.prompt.name"] == "desk"
    assert json.loads(json.dumps(said["gen_ai.usage.output_tokens"])) == 30
