"""What entered a prompt, told by the library's assembly or by code that assembles by itself."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

import retrospan
from retrospan import Passage, assemble, record_context, request, retrieve, run_scope

if TYPE_CHECKING:
    from tests.instrumentation.conftest import Recorder


@dataclass
class Document:
    """A document as a framework has it."""

    page_content: str
    id: str | None = None


@retrieve
def find(query: str) -> list[Document]:
    return [Document("one", "a"), Document("two", "b"), Document("three"), Document("two", "b")]


def recorded(recorder: Recorder) -> dict[str, Any]:
    prefix = "retrospan.assembly."
    return {
        name.removeprefix(prefix): value
        for name, value in recorder.attributes("assemble").items()
        if name.startswith(prefix)
    }


def test_ids_name_what_the_request_retrieved(recorder: Recorder) -> None:
    with request(name="own", input="q"):
        find("q")
        record_context(["b", "a"], dropped={"b": "duplicate"}, top_k=4, prompt_name="short")
    assert recorder.span("assemble").name == "assemble short"
    assert recorded(recorder) == {
        "id": ("a", "b", "", "b"),
        "position": (1, 2, 3, 4),
        "prompt_position": (2, 1, 0, 0),
        "dropped_reason": ("", "", "", "duplicate"),
        "top_k": 4,
    }


def test_documents_name_themselves_by_id_or_by_text(recorder: Recorder) -> None:
    with request(name="own", input="q"):
        found = find("q")
        record_context([found[2], found[0]], dropped=[(found[1], "budget")], token_budget=9)
    assert recorded(recorder)["prompt_position"] == (2, 0, 1, 0)
    assert recorded(recorder)["dropped_reason"] == ("", "budget", "", "")
    assert recorded(recorder)["token_budget"] == 9


def test_what_was_never_retrieved_takes_a_place_after_the_rest(recorder: Recorder) -> None:
    with request(name="own", input="q"):
        find("q")
        record_context(["pinned", "a"])
    assert recorded(recorder)["id"] == ("a", "b", "", "b", "pinned")
    assert recorded(recorder)["prompt_position"] == (2, 0, 0, 0, 1)


def test_beside_another_instrumentations_spans_the_candidates_are_given(
    recorder: Recorder,
) -> None:
    tracer = recorder.provider.get_tracer("another")
    stage = {"retrospan.stage": "foreign"}
    with tracer.start_as_current_span("chain", attributes=stage) as chain:
        record_context(
            ["b"], candidates=["a", "b"], dropped={"a": "score"}, rule="skip", prompt="Be brief."
        )
    span = recorder.span("assemble")
    assert span.parent is not None and span.context is not None
    assert span.parent.span_id == chain.get_span_context().span_id
    values = recorded(recorder)
    assert values["prompt_position"] == (0, 1)
    assert values["rule"] == "skip"
    assert len(values["prompt_hash"]) == 32


def test_the_context_of_a_generation_is_the_one_recorded(recorder: Recorder) -> None:
    @retrospan.generate
    def reply(question: str) -> str:
        return "yes"

    with request(name="own", input="q"):
        find("q")
        record_context(["a"])
        reply("q")
    assert len(recorder.attributes("generate")["retrospan.context.identity"]) == 32


def test_outside_of_any_recorded_span_nothing_is_recorded(recorder: Recorder) -> None:
    record_context(["a"])
    assert assemble([Passage("a")], top_k=1).context == (Passage("a"),)
    assert recorder.spans == ()


def test_an_unsampled_request_records_no_context() -> None:
    provider = TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False)
    with (
        run_scope(run_id="r", tracer_provider=provider),
        request(name="own", input="q") as reference,
    ):
        assert find("q")
        record_context(["a"])
        assert assemble([Passage("a")], top_k=1).context == (Passage("a"),)
    assert reference is not None and not reference.recorded


class Hostile:
    """Raises from everything."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    "arguments",
    [
        {"kept": [Hostile()]},
        {"kept": None},
        {"kept": ["a"], "dropped": [("a",)]},
        {"kept": ["a"], "dropped": 7},
        {"kept": ["a"], "candidates": [object(), None, 3]},
        {"kept": ["a"], "dropped": {"b": "because"}},
        {"kept": ["a"], "top_k": "many", "prompt": Hostile()},
    ],
    ids=str,
)
def test_whatever_is_given_nothing_is_raised(arguments: dict[str, Any], recorder: Recorder) -> None:
    with request(name="own", input="q"):
        record_context(**arguments)
    assert len([span for span in recorder.spans if span.name.startswith("invoke")]) == 1


def test_an_unknown_reason_is_noted_once_and_recorded_as_unknown(
    recorder: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.WARNING, logger="retrospan"),
        request(name="own", input="q"),
    ):
        record_context(["b"], candidates=["a", "b"], dropped={"a": "too long ago"})
    assert recorded(recorder)["dropped_reason"] == ("", "")


def test_a_recorded_assembly_decides_as_the_pure_one_does(recorder: Recorder) -> None:
    passages = [Passage("a", tokens=4), Passage("b", tokens=9), Passage("c", tokens=1)]
    alone = assemble(passages, top_k=3, token_budget=5, rule="skip", ineligible={3: "filter"})
    with request(name="own", input="q"):
        inside = assemble(passages, top_k=3, token_budget=5, rule="skip", ineligible={3: "filter"})
    assert inside == alone
    assert recorded(recorder)["dropped_reason"] == ("", "budget", "filter")


def test_an_assembly_that_cannot_be_raises_as_the_pure_one_does(recorder: Recorder) -> None:
    with (
        pytest.raises(TypeError, match=r"^assemble: the passage at position 1"),
        request(name="own", input="q"),
    ):
        assemble([Passage("a")], token_budget=5)
    assert recorder.attributes("assemble")["error.type"] == "TypeError"
