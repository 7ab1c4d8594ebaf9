"""Nothing that recording meets reaches the host: odd values, broken objects, broken tracers."""

from __future__ import annotations

import json
import logging
import math
import random
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NonRecordingSpan, Tracer
from opentelemetry.trace import TracerProvider as ApiTracerProvider

from retrospan import Passage, Retrieval, bind, rag_system, run_scope
from retrospan._encoding import MAX_DEPTH, MAX_NODES, clean_text, plain, to_json

if TYPE_CHECKING:
    from tests.instrumentation.conftest import Recorder


class Unprintable:
    """Raises from everything a recorder might try."""

    def __str__(self) -> NoReturn:
        raise RuntimeError("no text")

    __repr__ = __str__

    def __float__(self) -> NoReturn:
        raise RuntimeError("no number")

    def __bool__(self) -> NoReturn:
        raise RuntimeError("neither true nor false")

    def __len__(self) -> NoReturn:
        raise RuntimeError("no length")

    def tolist(self) -> NoReturn:
        raise RuntimeError("no list")


class BrokenMapping(Mapping[str, object]):
    """A mapping whose items cannot be read."""

    def __getitem__(self, key: str) -> NoReturn:
        raise RuntimeError("no item")

    def __iter__(self) -> Iterator[str]:
        raise RuntimeError("no keys")

    def __len__(self) -> int:
        return 3


class NumberLike:
    """A number of another library."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __float__(self) -> float:
        return self.value


@rag_system(name="given", version="1", depth=9, top_k=9, index_version="1")
class Given:
    """Finds what it is given, and answers with it too."""

    def __init__(self, passages: list[Passage], output: object = "yes") -> None:
        self.passages = passages
        self.output = output

    def retrieve(self, input: object, depth: int) -> Retrieval:
        return Retrieval("q", self.passages)

    def generate(self, input: object, context: tuple[Passage, ...]) -> object:
        return self.output


def test_scores_of_every_number_type_stay_aligned(recorder: Recorder) -> None:
    """Case I-SCORE-TYPES, with numbers that need no other library."""
    scores: list[Any] = [
        NumberLike(0.5),
        None,
        1,
        math.nan,
        math.inf,
        "0.5",
        Unprintable(),
        10**400,
    ]
    bind(Given([Passage(f"p{n}", score=score) for n, score in enumerate(scores)])).answer("q")
    recorded = recorder.attributes("retrieve")["retrospan.passages.score"]
    assert recorded[0] == 0.5
    assert recorded[2] == 1.0
    assert all(type(score) is float for score in recorded)
    assert [math.isnan(score) for score in recorded] == [False, True, False, *[True] * 5]
    documents = json.loads(recorder.attributes("retrieve")["gen_ai.retrieval.documents"])
    assert [document["score"] for document in documents] == [0.5, None, 1.0, *[None] * 5]


def test_numpy_scores_are_recorded_as_doubles(
    recorder: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    """Case I-SCORE-TYPES, as reported."""
    numpy = pytest.importorskip("numpy", reason="numpy is not a dependency of the library")
    scores = [numpy.float32(0.5), None, 1, float("nan"), numpy.int64(3)]
    with caplog.at_level(logging.WARNING):
        bind(
            Given(
                [
                    Passage(f"p{n}", "t", score, None, numpy.int64(n))
                    for n, score in enumerate(scores)
                ]
            )
        ).answer({"limit": numpy.float32(0.25), "vector": numpy.array([1, 2])})
    recorded = recorder.attributes("retrieve")
    assert repr(recorded["retrospan.passages.score"]) == "(0.5, nan, 1.0, nan, 3.0)"
    assert recorded["retrospan.passages.tokens"] == (0, 1, 2, 3, 4)
    assert recorder.attributes("request")["retrospan.input"] == '{"limit": 0.25, "vector": [1, 2]}'
    assert caplog.messages == []


def test_half_a_character_becomes_the_replacement_character(recorder: Recorder) -> None:
    """Case I-BAD-UNICODE."""
    system = rag_system(name="q \ud83d", version="1", depth=3, top_k=3, index_version="1")
    odd: Any = b"\xff\xfe"

    class Half:
        def retrieve(self, input: str, depth: int) -> Retrieval:
            found = [
                Passage("id \ud83d", "price \ud83d", metadata={"key \ude00": "v \ud83d"}),
                Passage("a\0b", odd),
            ]
            return Retrieval("q \ud83d\ude00", found)

        def generate(self, input: str, context: tuple[Passage, ...]) -> dict[str, object]:
            return {"answer": "a \ud83d", "citations": ["id \ud83d"]}

    bind(system(Half)()).answer("i \ud83d")
    assert recorder.span("request").name == "invoke_workflow q \ufffd"
    assert recorder.attributes("request")["retrospan.input"] == '"i \ufffd"'
    retrieved = recorder.attributes("retrieve")
    assert retrieved["gen_ai.retrieval.query.text"] == "q \N{GRINNING FACE}"
    assert retrieved["retrospan.passages.id"] == ("id \ufffd", "a\0b")
    first, second = json.loads(retrieved["gen_ai.retrieval.documents"])
    assert (first["content"], first["metadata"]) == ("price \ufffd", {"key \ufffd": "v \ufffd"})
    assert second["content"] == "\ufffd\ufffd"
    assert recorder.attributes("generate")["retrospan.answer"] == "a \ufffd"
    assert recorder.attributes("generate")["retrospan.citations"] == '["id \ufffd"]'


def test_objects_that_raise_cost_their_own_place_only(recorder: Recorder) -> None:
    broken: Any = Unprintable()
    found = [
        Passage("p1", "fine", metadata={"broken": broken, "fine": 1}),
        Passage("p2", "fine", metadata=BrokenMapping()),
        Passage("p3", broken, broken, broken, broken, broken),
    ]
    outcome = bind(Given(found, {"answer": broken, "citations": [broken, "p1"]})).answer(
        {"question": "q", "session": broken}
    )
    assert outcome.answer == "<unreadable Unprintable>"
    assert outcome.citations == ("<unprintable Unprintable>", "p1")
    recorded = recorder.attributes("retrieve")
    assert recorded["retrospan.passages.id"] == ("p1", "p2", "p3")
    assert recorded["retrospan.passages.document_id"][2] == "<unprintable Unprintable>"
    assert recorded["retrospan.passages.tokens"] == (-1, -1, -1)
    documents = json.loads(recorded["gen_ai.retrieval.documents"])
    assert documents[0]["metadata"]["fine"] == 1
    assert json.loads(recorder.attributes("request")["retrospan.input"])["question"] == "q"
    assert len(recorder.spans) == 4


def test_a_broken_mapping_as_output_reaches_the_caller_untouched(recorder: Recorder) -> None:
    output = BrokenMapping()
    outcome = bind(Given([], output)).answer("q")
    assert outcome.output is output
    assert (outcome.answer, outcome.citations) == (None, ())


def test_metadata_that_contains_itself_is_cut_there() -> None:
    loop: dict[str, Any] = {"name": "x"}
    loop["self"] = loop
    assert plain(loop) == {"name": "x", "self": "<left out: contains itself>"}


def test_a_value_shared_between_places_is_written_in_each() -> None:
    shared = [1]
    assert plain({"a": shared, "b": shared}) == {"a": [1], "b": [1]}


def test_deep_and_huge_values_are_bounded() -> None:
    deep: Any = []
    for _ in range(10 * MAX_DEPTH):
        deep = [deep]
    assert "nested too deep" in to_json(deep)
    wide: Any = "x"
    for _ in range(MAX_DEPTH - 1):  # doubles at each level: 2**31 leaves, were it unfolded
        wide = [wide, wide]
    assert to_json(wide).count('"x"') <= MAX_NODES


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.text(st.characters(exclude_categories=())))
def test_every_text_becomes_valid_unicode_and_valid_text_stays(text: str) -> None:
    cleaned = clean_text(text)
    assert cleaned.encode("utf-8").decode("utf-8") == cleaned
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert cleaned == text


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=()), max_size=8)
    | st.binary(max_size=8)
    | st.datetimes()
    | st.uuids()
    | st.decimals()
    | st.complex_numbers()
    | st.builds(Unprintable)
    | st.builds(BrokenMapping)
    | st.builds(lambda: 10**5000),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=4) | st.integers() | st.none(), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(ANYTHING)
def test_every_value_becomes_json_that_parses(value: object) -> None:
    json.loads(to_json(value), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    to_json(value).encode("utf-8")


@settings(max_examples=60)
@given(
    st.lists(
        st.builds(Passage, ANYTHING, ANYTHING, ANYTHING, ANYTHING, ANYTHING, ANYTHING),
        max_size=4,
    ),
    ANYTHING,
    ANYTHING,
    ANYTHING,
)
def test_whatever_a_system_hands_over_the_host_gets_its_answer_and_four_spans(
    passages: list[Passage], input: object, answer: object, citations: object
) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(Keeping(exporter))
    output = {"answer": answer, "citations": citations}
    with run_scope(run_id="r", tracer_provider=provider):
        outcome = bind(Given(passages, output)).answer(input)
    assert outcome.output is output
    ended = exporter.get_finished_spans()
    assert len(ended) == 4
    arrays = dict(ended[0].attributes or {})
    for name in ("id", "document_id", "score", "tokens", "hash"):
        values = arrays[f"retrospan.passages.{name}"]
        assert isinstance(values, tuple)
        assert len(values) == len(passages)
        assert len({type(value) for value in values}) <= 1


class Keeping(SpanProcessor):
    """Hands each ended span to an exporter as it is."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self.exporter = exporter

    def on_end(self, span: ReadableSpan) -> None:
        self.exporter.export([span])


class FailingProcessor(SpanProcessor):
    """Raises where the SDK calls it, at a span's start or at its end."""

    def __init__(self, *, at_start: Exception | None = None, at_end: Exception | None = None):
        self.at_start = at_start
        self.at_end = at_end

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        if self.at_start is not None:
            raise self.at_start

    def on_end(self, span: ReadableSpan) -> None:
        if self.at_end is not None:
            raise self.at_end


class FailingSpan(NonRecordingSpan):
    """Says it records, and then cannot."""

    def is_recording(self) -> bool:
        return True

    def set_attributes(self, attributes: Any) -> NoReturn:
        raise RuntimeError("span down")

    def end(self, end_time: int | None = None) -> NoReturn:
        raise RuntimeError("span down")


class FailingTracerProvider(ApiTracerProvider):
    """Breaks at a chosen place."""

    def __init__(self, at: str) -> None:
        self.at = at

    def get_tracer(self, *args: Any, **kwargs: Any) -> Tracer:
        if self.at == "get_tracer":
            raise RuntimeError("provider down")
        at = self.at

        class FailingTracer(Tracer):
            def start_span(self, *args: Any, **kwargs: Any) -> Any:
                if at == "start_span":
                    raise RuntimeError("tracer down")
                from opentelemetry.trace import INVALID_SPAN_CONTEXT

                return FailingSpan(INVALID_SPAN_CONTEXT)

            def start_as_current_span(self, *args: Any, **kwargs: Any) -> Any:
                raise RuntimeError("tracer down")

        return FailingTracer()


@pytest.mark.parametrize("at", ["get_tracer", "start_span", "span"])
def test_a_broken_tracer_costs_the_record_and_not_the_answer(at: str) -> None:
    with run_scope(run_id="r", tracer_provider=FailingTracerProvider(at)):
        assert bind(Given([Passage("a")])).answer("q").answer == "yes"


@pytest.mark.parametrize("at", ["at_start", "at_end"])
def test_a_broken_span_processor_costs_the_record_and_not_the_answer(at: str) -> None:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(FailingProcessor(**{at: RuntimeError("processor down")}))
    with run_scope(run_id="r", tracer_provider=provider):
        assert bind(Given([Passage("a")])).answer("q").answer == "yes"


def test_a_fault_of_recording_is_logged_once_for_each_cause(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class OnlyHere(Exception):
        pass

    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(FailingProcessor(at_end=OnlyHere()))
    with caplog.at_level(logging.WARNING), run_scope(run_id="r", tracer_provider=provider):
        for _ in range(3):
            bind(Given([Passage("a")])).answer("q")
    [message] = [record.getMessage() for record in caplog.records if record.name == "retrospan"]
    assert message.startswith("could not end a span (")
    assert "OnlyHere" in message


def test_a_hosts_exception_that_cannot_be_printed_passes_unchanged(recorder: Recorder) -> None:
    class Mute(Exception):
        def __str__(self) -> NoReturn:
            raise RuntimeError("no text")

    problem = Mute()

    @rag_system(name="mute", version="1", depth=1, top_k=1, index_version="1")
    class Muted:
        def retrieve(self, input: str, depth: int) -> Retrieval:
            raise problem

        def generate(self, input: str, context: tuple[Passage, ...]) -> str:
            return ""

    with pytest.raises(Mute) as caught:
        bind(Muted()).answer("q")
    assert caught.value is problem
    assert recorder.span("retrieve").status.description is not None


def test_sets_are_written_in_the_same_order_in_every_process() -> None:
    names = [f"n{random.Random(7).random()}-{n}" for n in range(20)]
    assert to_json(set(names)) == to_json(set(reversed(names))) == json.dumps(sorted(names))
