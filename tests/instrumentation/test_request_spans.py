"""What one request leaves behind: four spans, and what stands on each."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode

from retrospan import Passage, Retrieval, bind, rag_system
from retrospan._passages import describe, identity, passage_hash

if TYPE_CHECKING:
    from tests.instrumentation.conftest import Recorder

CANDIDATES = (
    Passage("kb-1#2", "Refunds take 14 days.", 0.9, "kb-1", metadata={"acl": ["staff"], "v": 3}),
    Passage("kb-2", "Prices rise in May.", None, tokens=4),
    Passage("kb-3", "سياسة الاسترداد", 0.25),
)


@rag_system(
    name="help-desk",
    version="7",
    depth=3,
    top_k=2,
    token_budget=6,
    index_version={"snapshot": "2026-11-01", "chunker": "v2"},
    prompt_version="p4",
)
class HelpDesk:
    """Returns the same three passages for every question."""

    def retrieve(self, input: Mapping[str, str], depth: int) -> Retrieval:
        assert depth == 3
        return Retrieval(f"find: {input['question']}", CANDIDATES)

    def count_tokens(self, passage: Passage) -> int:
        return len(passage.text.split())

    def generate(self, input: Mapping[str, str], context: tuple[Passage, ...]) -> dict[str, Any]:
        return {"answer": f"نعم: {context[0].text}", "citations": ["kb-1", 1], "model": "none"}


def ask(question: str = "How long?") -> object:
    return bind(HelpDesk()).answer({"question": question}).output


def test_a_request_is_one_trace_of_four_spans(recorder: Recorder) -> None:
    ask()
    request = recorder.span("request")
    assert request.parent is None
    assert request.context is not None
    shape = {
        span.name: (span.kind, span.parent.span_id if span.parent else None)
        for span in recorder.spans
    }
    root = request.context.span_id
    assert shape == {
        "retrieval": (SpanKind.CLIENT, root),
        "assemble": (SpanKind.INTERNAL, root),
        "generate help-desk": (SpanKind.INTERNAL, root),
        "invoke_workflow help-desk": (SpanKind.INTERNAL, None),
    }
    assert {span.context.trace_id for span in recorder.spans if span.context} == {
        request.context.trace_id
    }
    assert all(span.status.status_code is StatusCode.UNSET for span in recorder.spans)


def test_every_span_carries_the_schema_version_and_its_stage(recorder: Recorder) -> None:
    ask()
    stages: list[object] = []
    for span in recorder.spans:
        assert span.attributes is not None
        assert span.attributes["retrospan.schema.version"] == "1"
        stages.append(span.attributes["retrospan.stage"])
    assert stages == ["retrieve", "assemble", "generate", "request"]


def test_the_request_span_names_the_system_and_holds_the_input(recorder: Recorder) -> None:
    ask("كم يوما؟")
    assert dict(recorder.attributes("request")) == {
        "retrospan.schema.version": "1",
        "retrospan.stage": "request",
        "gen_ai.operation.name": "invoke_workflow",
        "gen_ai.workflow.name": "help-desk",
        "retrospan.system.name": "help-desk",
        "retrospan.system.version": "7",
        "retrospan.run.id": "test-run",
        "retrospan.input": '{"question": "كم يوما؟"}',
    }


def test_the_retrieve_span_holds_every_candidate(recorder: Recorder) -> None:
    ask()
    recorded = dict(recorder.attributes("retrieve"))
    scores = recorded.pop("retrospan.passages.score")
    assert scores[::2] == (0.9, 0.25)
    assert math.isnan(scores[1])
    assert len(bytes.fromhex(recorded.pop("retrospan.retrieval.identity"))) == 16
    assert json.loads(recorded.pop("gen_ai.retrieval.documents")) == [
        {
            "id": "kb-1#2",
            "score": 0.9,
            "content": "Refunds take 14 days.",
            "metadata": {"acl": ["staff"], "v": 3},
        },
        {"id": "kb-2", "score": None, "content": "Prices rise in May."},
        {"id": "kb-3", "score": 0.25, "content": "سياسة الاسترداد"},
    ]
    assert recorded == {
        "retrospan.schema.version": "1",
        "retrospan.stage": "retrieve",
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.top_k": 3,
        "gen_ai.retrieval.query.text": "find: How long?",
        "retrospan.index.version": '{"chunker":"v2","snapshot":"2026-11-01"}',
        "retrospan.passages.id": ("kb-1#2", "kb-2", "kb-3"),
        "retrospan.passages.document_id": ("kb-1", "kb-2", "kb-3"),
        "retrospan.passages.tokens": (4, 4, 2),
        "retrospan.passages.hash": tuple(
            passage_hash(passage.text, passage.metadata) for passage in CANDIDATES
        ),
        "retrospan.passages.acl": ('["staff"]', "", ""),
    }


def test_the_assemble_span_tells_what_was_kept_and_why_the_rest_was_not(
    recorder: Recorder,
) -> None:
    ask()
    assert dict(recorder.attributes("assemble")) == {
        "retrospan.schema.version": "1",
        "retrospan.stage": "assemble",
        "gen_ai.prompt.version": "p4",
        "retrospan.assembly.top_k": 2,
        "retrospan.assembly.token_budget": 6,
        "retrospan.assembly.rule": "stop",
        "retrospan.assembly.context_tokens": 4,
        "retrospan.assembly.id": ("kb-1#2", "kb-2", "kb-3"),
        "retrospan.assembly.position": (1, 2, 3),
        "retrospan.assembly.prompt_position": (1, 0, 0),
        "retrospan.assembly.dropped_reason": ("", "budget", "top_k"),
    }


def test_the_generate_span_holds_the_answer_and_the_citations_as_given(
    recorder: Recorder,
) -> None:
    ask()
    assert dict(recorder.attributes("generate")) == {
        "retrospan.schema.version": "1",
        "retrospan.stage": "generate",
        "gen_ai.prompt.version": "p4",
        "retrospan.context.identity": identity([describe(CANDIDATES[0])]),
        "retrospan.completed": True,
        "retrospan.answer": "نعم: Refunds take 14 days.",
        "retrospan.citations": '["kb-1", 1]',
    }


def test_answer_returns_what_generate_returned(recorder: Recorder) -> None:
    answer = getattr(HelpDesk(), "answer")  # noqa: B009  # the method the decorator added
    assert answer({"question": "?"}) == ask("?")
    assert len([span for span in recorder.spans if span.name.startswith("invoke")]) == 2


def test_spans_of_the_application_nest_inside_the_step_they_belong_to(
    recorder: Recorder,
) -> None:
    tracer = recorder.provider.get_tracer("application")

    @rag_system(name="nesting", version="1", depth=1, top_k=1, index_version="1")
    class Nesting:
        def retrieve(self, input: str, depth: int) -> Retrieval:
            with tracer.start_as_current_span("search"):
                return Retrieval(input, [])

        def generate(self, input: str, context: tuple[Passage, ...]) -> str:
            with tracer.start_as_current_span("chat"):
                return "yes"

    bind(Nesting()).answer("q")
    spans = {span.name: span for span in recorder.spans}
    for inner, outer in (("search", "retrieval"), ("chat", "generate nesting")):
        parent, context = spans[inner].parent, spans[outer].context
        assert parent is not None and context is not None
        assert parent.span_id == context.span_id
    assert trace.get_current_span() is trace.INVALID_SPAN


def test_fifty_passages_arrive_whole_under_the_default_limits(recorder: Recorder) -> None:
    """Case I-ATTR-128."""
    many = [Passage(f"p{n}", f"text {n}", 1 / n) for n in range(1, 51)]

    @rag_system(name="many", version="1", depth=50, top_k=50, index_version="1")
    class Many:
        def retrieve(self, input: str, depth: int) -> Retrieval:
            return Retrieval(input, many)

        def generate(self, input: str, context: tuple[Passage, ...]) -> str:
            return "yes"

    bind(Many()).answer("q")
    recorded = recorder.attributes("retrieve")
    assert recorded["retrospan.passages.id"] == tuple(f"p{n}" for n in range(1, 51))
    assert recorder.attributes("assemble")["retrospan.assembly.position"] == tuple(range(1, 51))
    assert recorder.span("retrieve").dropped_attributes == 0


def test_an_empty_retrieval_is_recorded_as_empty_and_not_as_missing(recorder: Recorder) -> None:
    @rag_system(name="empty", version="1", depth=2, top_k=1, token_budget=5, index_version="1")
    class Empty:
        def retrieve(self, input: str, depth: int) -> Retrieval:
            return Retrieval(input, [])

        def generate(self, input: str, context: tuple[Passage, ...]) -> str:
            return f"{len(context)} passages"

    assert bind(Empty()).answer("q").answer == "0 passages"
    assert recorder.attributes("retrieve")["retrospan.passages.id"] == ()
    assert recorder.attributes("retrieve")["gen_ai.retrieval.documents"] == "[]"
    assert recorder.attributes("assemble")["retrospan.assembly.id"] == ()
    assert recorder.attributes("assemble")["retrospan.assembly.context_tokens"] == 0


def test_a_list_longer_than_the_depth_is_recorded_whole(recorder: Recorder) -> None:
    @rag_system(name="generous", version="1", depth=2, top_k=1, index_version="1")
    class Generous:
        def retrieve(self, input: str, depth: int) -> Retrieval:
            return Retrieval(input, CANDIDATES)

        def generate(self, input: str, context: tuple[Passage, ...]) -> str:
            return "yes"

    bind(Generous()).answer("q")
    recorded = recorder.attributes("retrieve")
    assert len(recorded["retrospan.passages.id"]) == 3
    assert recorded["gen_ai.retrieval.top_k"] == 2


def test_the_depth_the_retriever_really_used_is_recorded(recorder: Recorder) -> None:
    @rag_system(name="deeper", version="1", depth=2, top_k=1, index_version="1")
    class Deeper:
        def retrieve(self, input: str, depth: int) -> Retrieval:
            return Retrieval(input, CANDIDATES, depth=20)

        def generate(self, input: str, context: tuple[Passage, ...]) -> str:
            return "yes"

    bind(Deeper()).answer("q")
    assert recorder.attributes("retrieve")["gen_ai.retrieval.top_k"] == 20


def test_a_reranker_has_a_span_and_assembly_takes_its_order(recorder: Recorder) -> None:
    @rag_system(name="reranked", version="1", depth=3, top_k=2, index_version="1")
    class Reranked:
        def retrieve(self, input: str, depth: int) -> Retrieval:
            return Retrieval(input, CANDIDATES)

        def rerank(self, input: str, passages: tuple[Passage, ...]) -> list[Passage]:
            first, _, third = passages
            return [Passage("kb-3", third.text, 0.99), first, Passage("added", "new")]

        def generate(self, input: str, context: tuple[Passage, ...]) -> str:
            return "yes"

    outcome = bind(Reranked()).answer("q")
    assert [passage.id for passage in outcome.assembly.context] == ["kb-3", "kb-1#2"]
    recorded = recorder.attributes("rerank")
    assert recorded["gen_ai.operation.name"] == "rerank"
    assert recorded["retrospan.passages.id"] == ("kb-3", "kb-1#2", "added")
    assert recorded["retrospan.rerank.input_position"] == (3, 1, 0)
    assert recorder.attributes("assemble")["retrospan.assembly.id"] == ("kb-3", "kb-1#2", "added")


@pytest.mark.parametrize(
    ("output", "answer", "citations"),
    [
        ("plain", "plain", None),
        ({"answer": "a"}, "a", None),
        ({"answer": "a", "citations": []}, "a", "[]"),
        ({"answer": "a", "citations": "kb-1"}, "a", '["kb-1"]'),
        ({"answer": "a", "citations": (2, "x", True)}, "a", '[2, "x", "True"]'),
        ({"answer": None, "citations": None}, None, None),
        ({"other": "a"}, None, None),
        ({"answer": {"text": "a"}}, '{"text": "a"}', None),
    ],
)
def test_answers_and_citations_are_read_out_of_what_generate_returned(
    recorder: Recorder, output: object, answer: str | None, citations: str | None
) -> None:
    @rag_system(name="outputs", version="1", depth=1, top_k=1, index_version="1")
    class Outputs:
        def retrieve(self, input: str, depth: int) -> Retrieval:
            return Retrieval(input, [])

        def generate(self, input: str, context: tuple[Passage, ...]) -> object:
            return output

    outcome = bind(Outputs()).answer("q")
    assert outcome.output is output
    assert outcome.answer == answer
    recorded = recorder.attributes("generate")
    assert recorded.get("retrospan.answer") == answer
    assert recorded.get("retrospan.citations") == citations
    assert list(outcome.citations) == json.loads(citations or "[]")


def test_paths_descend_into_nested_mappings(recorder: Recorder) -> None:
    @rag_system(
        name="nested",
        version="1",
        depth=1,
        top_k=1,
        index_version="1",
        answer_path="result.text",
        citations_path="result.sources",
    )
    class Nested:
        def retrieve(self, input: str, depth: int) -> Retrieval:
            return Retrieval(input, [])

        def generate(self, input: str, context: tuple[Passage, ...]) -> object:
            return {"result": {"text": "deep", "sources": ["a"]}}

    outcome = bind(Nested()).answer("q")
    assert (outcome.answer, outcome.citations) == ("deep", ("a",))


@pytest.mark.parametrize("kind", [LookupError, StopIteration, RuntimeError])
def test_an_exception_of_generate_passes_unchanged_and_assembly_is_still_recorded(
    recorder: Recorder, kind: type[Exception]
) -> None:
    problem = kind("no \ud83d model")

    @rag_system(name="failing", version="1", depth=3, top_k=3, index_version="1")
    class Failing:
        def retrieve(self, input: str, depth: int) -> Retrieval:
            return Retrieval(input, CANDIDATES)

        def generate(self, input: str, context: tuple[Passage, ...]) -> str:
            raise problem

    with pytest.raises(kind) as caught:
        bind(Failing()).answer("q")
    assert caught.value is problem
    assert caught.value.__cause__ is None and caught.value.__context__ is None
    assert recorder.attributes("assemble")["retrospan.assembly.prompt_position"] == (1, 2, 3)
    for stage in ("generate", "request"):
        span = recorder.span(stage)
        assert span.status.status_code is StatusCode.ERROR
        assert span.status.description == f"{kind.__name__}: no \ufffd model"
        assert recorder.attributes(stage)["error.type"] == kind.__name__
    assert recorder.attributes("generate")["retrospan.completed"] is False
    assert recorder.span("retrieve").status.status_code is StatusCode.UNSET


def test_an_exception_of_retrieve_marks_the_retrieval_and_ends_the_request(
    recorder: Recorder,
) -> None:
    @rag_system(name="down", version="1", depth=3, top_k=3, index_version="1")
    class Down:
        def retrieve(self, input: str, depth: int) -> Retrieval:
            raise ConnectionError("index down")

        def generate(self, input: str, context: tuple[Passage, ...]) -> str:
            return "never"

    with pytest.raises(ConnectionError):
        bind(Down()).answer("q")
    assert [span.name for span in recorder.spans] == ["retrieval", "invoke_workflow down"]
    assert recorder.attributes("retrieve")["error.type"] == "ConnectionError"
    assert "retrospan.passages.id" not in recorder.attributes("retrieve")


def test_an_interrupt_ends_the_spans_and_passes(recorder: Recorder) -> None:
    @rag_system(name="interrupted", version="1", depth=3, top_k=3, index_version="1")
    class Interrupted:
        def retrieve(self, input: str, depth: int) -> Retrieval:
            return Retrieval(input, [])

        def generate(self, input: str, context: tuple[Passage, ...]) -> str:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bind(Interrupted()).answer("q")
    assert recorder.attributes("request")["error.type"] == "KeyboardInterrupt"
    assert len(recorder.spans) == 4
