"""What the library records, read by the assembler: from SDK spans to the row of a request."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode, format_span_id, format_trace_id

import retrospan
from retrospan import Passage, Retrieval
from retrospan._passages import passage_hash
from retrospan_collector.assembler.reading import Remembered, Trace
from retrospan_collector.assembler.span import Span
from retrospan_collector.assembler.trace import AssembledTrace, Settling, assemble_trace
from retrospan_collector.clickhouse.request_row import Completeness, RequestRow

KEY = "sixteen bytes or more"


class Recorded:
    """The spans of the library, as the store gives them to the assembler."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(shutdown_on_exit=False)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    def assembled(self, stage: str = "request") -> AssembledTrace:
        """The trace of the one span of a stage."""
        ended = self.exporter.get_finished_spans()
        [root] = [span for span in ended if (span.attributes or {})["retrospan.stage"] == stage]
        assert root.context is not None
        spans = [stored(span) for span in ended if _trace_id(span) == root.context.trace_id]
        return assemble_trace(
            Trace(trace_id=spans[0].trace_id, sample_key=7),
            spans,
            Remembered(),
            registration=None,
            settling=Settling(settle_ms=0, orphan_ms=0),
            now=datetime.now(UTC),
        )

    def row(self) -> RequestRow:
        """The row of the one request."""
        [row] = self.assembled().rows
        return row


def _trace_id(span: ReadableSpan) -> int:
    assert span.context is not None
    trace_id: int = span.context.trace_id
    return trace_id


def stored(span: ReadableSpan) -> Span:
    assert span.context is not None and span.start_time and span.end_time is not None
    return Span(
        trace_id=format_trace_id(span.context.trace_id),
        span_id=format_span_id(span.context.span_id),
        parent_span_id=format_span_id(span.parent.span_id) if span.parent else "",
        service_name="desk",
        name=span.name,
        start_ns=span.start_time,
        duration_ns=span.end_time - span.start_time,
        failed=span.status.status_code is StatusCode.ERROR,
        attributes={name: as_text(value) for name, value in (span.attributes or {}).items()},
        dropped_attributes=span.dropped_attributes,
        arrived_ms=span.end_time // 1_000_000,
    )


def as_text(value: Any) -> str:
    """A value as the store's map of texts holds it."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@pytest.fixture
def recorded() -> Iterator[Recorded]:
    recorded = Recorded()
    with retrospan.run_scope(run_id="r", tracer_provider=recorded.provider):
        yield recorded
    recorded.provider.shutdown()


@retrospan.retrieve(
    index_version={"snapshot": "2026-11"},
    data_source_id="handbook",
    embedding_model="embed-1",
    score_kind="similarity",
    tokenizer="words (estimated)",
    filter={"tenant": 7},
)
def find(query: str, depth: int) -> Retrieval:
    metadata = {"acl": ["staff"], "source_version": "v3", "updated_at": "2026-10-01"}
    return Retrieval(query, [Passage("a", "text of a", 0.5, tokens=3, metadata=metadata)])


@retrospan.generate(prompt_name="desk", prompt_version="4", model="m")
def say(query: str) -> Iterator[object]:
    retrospan.record_generation(prompt="the finished prompt")
    yield {"id": "c-1", "object": "chat.completion.chunk", "choices": [{"delta": {"content": "Y"}}]}
    yield {
        "model": "m-2026",
        "choices": [{"delta": {"content": "es"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 120, "completion_tokens": 30},
    }


def ask(question: object = "How long?", **settings: Any) -> None:
    with retrospan.request(name="desk", version="7", input=question, **settings):
        retrospan.record_caller(conversation_id="c", user_id="ada", user_roles=["staff"])
        retrospan.assemble(find("how long", 6).candidates, top_k=2, token_budget=9)
        list(say("q"))


def test_every_column_the_library_knows_something_about_is_filled(recorded: Recorded) -> None:
    ask(hash_key=KEY)
    row = recorded.row()
    assert (row.system_name, row.system_version, row.question) == ("desk", "7", "How long?")
    assert (row.conversation_id, row.caller_roles) == ("c", ("staff",))
    assert len(row.user_hash) == 32
    assert row.index_version == '{"snapshot":"2026-11"}'
    assert (row.data_source_id, row.embedding_model) == ("handbook", "embed-1")
    assert (row.score_kind, row.tokenizer) == ("similarity", "words (estimated)")
    assert (row.depth, row.top_k, row.token_budget, row.context_tokens) == (6, 2, 9, 3)
    assert row.passage_acl == ('["staff"]',)
    assert (row.passage_source_version, row.passage_updated_at) == (("v3",), ("2026-10-01",))
    assert (row.answer, row.model, row.finish_reason) == ("Yes", "m", "stop")
    assert (row.input_tokens, row.output_tokens) == (120, 30)
    assert (row.prompt_version, len(row.prompt_hash)) == ("4", 32)
    assert row.first_chunk_ns is not None and row.generation_ns is not None
    assert 0 < row.first_chunk_ns <= row.generation_ns
    assert (row.replay_class, row.completeness) == ("full", 0)


def test_a_hashed_request_can_be_replayed_from_the_applications_own_store(
    recorded: Recorded,
) -> None:
    ask(capture="hashed")
    row = recorded.row()
    assert (row.input, row.question, row.answer) == ("", "", "")
    assert (row.replay_class, row.retrieval_status) == ("ids", "recorded")
    metadata = {"acl": ["staff"], "source_version": "v3", "updated_at": "2026-10-01"}
    assert row.passage_hash == (bytes.fromhex(passage_hash("text of a", metadata)),)
    assert (row.cum_tokens, row.passage_prompt_position) == ((3,), (1,))
    assert recorded.assembled().lists[0].text == (None,)


def test_a_cut_passage_is_not_stored_under_the_hash_of_the_whole(recorded: Recorded) -> None:
    @retrospan.retrieve
    def fat(query: str) -> list[Passage]:
        return [Passage("fat", "x" * 200_000, tokens=1), Passage("thin", "y", tokens=1)]

    with retrospan.request(name="desk", input="q"):
        retrospan.assemble(fat("q"), top_k=2)
    row = recorded.row()
    assert Completeness(row.completeness).names == ("text_cut",)
    assert recorded.assembled().lists[0].text == (None, "y")
    assert row.replay_class == "ids"


def test_a_cut_input_is_not_replayed(recorded: Recorded) -> None:
    ask("q" * 200_000)
    row = recorded.row()
    assert Completeness(row.completeness).names == ("text_cut",)
    assert row.replay_class == "none"


def test_feedback_is_no_request(recorded: Recorded) -> None:
    retrospan.feedback("0af7651916cd43dd8448eb211c80319c", score=0)
    assert recorded.assembled("feedback").rows == ()


def test_a_system_whose_class_declares_them_fills_the_same_columns(recorded: Recorded) -> None:
    @retrospan.rag_system(
        name="desk", version="7", depth=3, top_k=1, index_version="1", prompt_version="p"
    )
    class Desk:
        def retrieve(self, input: str, depth: int) -> Retrieval:
            return Retrieval(input, [Passage("a", "t", 0.5)], filter={"x": 1}, index_version="2")

        def generate(self, input: str, context: tuple[Passage, ...]) -> dict[str, object]:
            retrospan.record_caller(user_roles=["staff"])
            usage = {"input_tokens": 5, "output_tokens": 2}
            response = {"model": "m", "stop_reason": "end_turn", "usage": usage}
            retrospan.record_generation(response, prompt="finished")
            return {"answer": "yes", "citations": ["a"]}

    retrospan.bind(Desk()).answer("q")
    row = recorded.row()
    assert (row.index_version, row.prompt_version, row.caller_roles) == ("2", "p", ("staff",))
    assert (row.model, row.finish_reason, row.input_tokens) == ("m", "end_turn", 5)
    assert (row.cited_positions, len(row.prompt_hash)) == ((1,), 32)
