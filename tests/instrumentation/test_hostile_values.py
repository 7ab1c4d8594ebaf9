"""Whatever values a host hands over by whichever way in: its own result, and a valid record."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.trace import ReadableSpan

from retrospan import (
    Passage,
    assemble,
    feedback,
    generate,
    record_caller,
    record_context,
    record_generation,
    request,
    retrieve,
    run_scope,
)
from tests.instrumentation.conftest import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable

    Redact = Callable[[str], str]


class Hostile:
    """Raises from everything, and has the parts of a document and of a response."""

    def __str__(self) -> NoReturn:
        raise RuntimeError("no text")

    __repr__ = __str__

    def __eq__(self, other: object) -> NoReturn:
        raise RuntimeError("no comparison")

    def __bool__(self) -> NoReturn:
        raise RuntimeError("neither true nor false")

    def __hash__(self) -> NoReturn:
        raise RuntimeError("no hash")

    def __float__(self) -> NoReturn:
        raise RuntimeError("no number")

    def __index__(self) -> NoReturn:
        raise RuntimeError("no number")

    @property
    def usage(self) -> NoReturn:
        raise RuntimeError("no usage")

    @property
    def page_content(self) -> NoReturn:
        raise RuntimeError("no text")


class HostileText(str):
    """A text that misbehaves wherever a subclass may."""

    def __str__(self) -> NoReturn:
        raise RuntimeError("no text")

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> NoReturn:
        raise RuntimeError("no bytes")

    def isascii(self) -> NoReturn:
        raise RuntimeError("no telling")

    def __len__(self) -> NoReturn:
        raise RuntimeError("no length")


def circular() -> list[object]:
    loop: list[object] = [{"id": "a"}]
    loop.append(loop)
    return loop


NAMES = st.sampled_from(
    ["id", "text", "score", "metadata", "acl", "answer", "citations", "usage", "model", "node"]
)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=8)
    | st.binary(max_size=8)
    | st.decimals()
    | st.builds(Hostile)
    | st.builds(lambda: HostileText("h"))
    | st.builds(circular)
    | st.builds(lambda: 10**5000)
    | st.sampled_from([object(), Ellipsis, type, len])
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(NAMES | st.text(max_size=3), inner, max_size=4)
        | st.dictionaries(st.tuples(st.integers(), st.text(max_size=2)), inner, max_size=2)
        | st.builds(Passage, inner, inner, inner, inner, inner, inner)
    ),
    max_leaves=8,
)
QUICK = settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)


def check(spans: Sequence[ReadableSpan]) -> None:
    """Every span can be sent: valid Unicode, one type an array, JSON that parses."""
    for span in spans:
        span.name.encode("utf-8")
        (span.status.description or "").encode("utf-8")
        for name, value in (span.attributes or {}).items():
            items = value if isinstance(value, tuple) else (value,)
            assert len({type(item) for item in items}) <= 1, name
            for item in items:
                assert type(item) in (str, int, float, bool), name
                if isinstance(item, str):
                    item.encode("utf-8")
        for name in ("gen_ai.retrieval.documents", "retrospan.input", "retrospan.citations"):
            text = (span.attributes or {}).get(name)
            if isinstance(text, str):
                json.loads(text, parse_constant=lambda constant: pytest.fail(constant))


@QUICK
@given(VALUES, VALUES, VALUES)
def test_functions_give_back_what_they_were_given(found: Any, output: Any, asked: Any) -> None:
    recorder = Recorder()

    @retrieve
    def search(query: Any, filter: Any) -> Any:
        return found

    @generate
    def say(query: Any) -> Any:
        return output

    with run_scope(run_id="r", tracer_provider=recorder.provider):
        with request(name="desk", input=asked):
            assert search(asked, filter=output) is found
            said = say(asked)
    assert said is output or not isinstance(output, list | dict | str)
    assert [dict(span.attributes or {})["retrospan.stage"] for span in recorder.spans] == [
        "retrieve",
        "generate",
        "request",
    ]
    check(recorder.spans)


@QUICK
@given(VALUES, VALUES, VALUES)
def test_what_is_added_by_hand_may_be_anything(one: Any, two: Any, three: Any) -> None:
    recorder = Recorder()
    with run_scope(run_id="r", tracer_provider=recorder.provider):
        with request(name="desk", input=one, user_id=two, user_roles=three, hash_key="k" * 16):
            record_caller(conversation_id=one, user_id=two, user_roles=three)
            record_generation(one, prompt=two, prompt_name=three, prompt_version=one, model=two)
            record_context(one, dropped=two, candidates=three, top_k=one, prompt=two)
            feedback(one, score=two, label=three, comment=one, kind=two)
            feedback(score=one, label=two, comment=three, kind=one)
    check(recorder.spans)


@QUICK
@given(VALUES, VALUES)
def test_a_users_own_functions_may_return_anything(converted: Any, redacted: Any) -> None:
    recorder = Recorder()

    @retrieve(
        passages=lambda value: converted,
        index_version=lambda: converted,
        count_tokens=lambda passage: redacted,
        query=lambda query: converted,
    )
    def search(query: str) -> list[str]:
        return ["t"]

    @generate(answer=lambda output: converted, citations=lambda output: redacted)
    def say(query: str) -> str:
        return "yes"

    with run_scope(run_id="r", tracer_provider=recorder.provider):
        with request(name="desk", input=converted, redact=lambda text: redacted):
            assert search("q") == ["t"]
            assert say("q") == "yes"
    assert len(recorder.spans) == 3
    check(recorder.spans)


def test_a_circular_dict_a_tuple_key_and_a_raising_repr_break_no_request(
    recorder: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    loop: dict[Any, Any] = {("a", 1): Hostile()}
    loop["self"] = loop
    passages = [Passage("a", "t", metadata=loop)]

    @retrieve
    def search(query: object) -> list[Passage]:
        return passages

    with caplog.at_level(logging.ERROR), request(name="desk", input=loop):
        assembly = assemble(search(loop), top_k=1)
    assert assembly.context == tuple(passages)
    [document] = json.loads(recorder.attributes("retrieve")["gen_ai.retrieval.documents"])
    assert document["metadata"]["self"] == "<left out: contains itself>"
    assert set(document["metadata"]) == {"('a', 1)", "self"}
    assert caplog.messages == []


def test_scores_of_numpy_are_doubles_for_functions_too(recorder: Recorder) -> None:
    """Case I-SCORE-TYPES."""
    numpy = pytest.importorskip("numpy", reason="numpy is not a dependency of the library")
    scores = [numpy.float32(0.5), None, 1, float("nan"), numpy.int64(3)]

    @retrieve
    def search(query: str) -> list[tuple[str, str, Any]]:
        return [(f"p{n}", "t", score) for n, score in enumerate(scores)]

    search("q")
    recorded = recorder.attributes("retrieve")
    assert repr(recorded["retrospan.passages.score"]) == "(0.5, nan, 1.0, nan, 3.0)"
    assert recorded["retrospan.passages.id"] == ("p0", "p1", "p2", "p3", "p4")


def test_fifty_passages_of_a_function_arrive_whole(recorder: Recorder) -> None:
    """Case I-ATTR-128."""

    @retrieve
    def search(query: str) -> list[dict[str, object]]:
        return [{"id": f"p{n}", "text": f"text {n}", "score": 1 / n} for n in range(1, 51)]

    search("q")
    span = recorder.span("retrieve")
    recorded = recorder.attributes("retrieve")
    assert recorded["retrospan.passages.id"] == tuple(f"p{n}" for n in range(1, 51))
    documents = json.loads(recorded["gen_ai.retrieval.documents"])
    assert [document["content"] for document in documents] == [f"text {n}" for n in range(1, 51)]
    assert span.dropped_attributes == 0
    assert len(recorded) < 40


def test_a_half_character_in_any_declared_name_costs_no_span(recorder: Recorder) -> None:
    """Case I-BAD-UNICODE."""
    half = "q \ud83d"

    @retrieve(data_source_id=half, tokenizer=half, score_kind=half, index_version=half)
    def search(query: str) -> list[tuple[str, str]]:
        return [("a\0b", half)]

    @generate(name=half, model=half, prompt_name=half)
    def say(query: str) -> str:
        raise ValueError(half)

    with request(name=half, input=half, conversation_id=half):
        search(half)
        with pytest.raises(ValueError):
            say(half)
    feedback("0" * 31 + "1", kind=half, label=half, comment=half)
    check(recorder.spans)
    assert recorder.span("feedback").name == "feedback q \ufffd"
    assert recorder.attributes("retrieve")["retrospan.passages.id"] == ("a\0b",)
