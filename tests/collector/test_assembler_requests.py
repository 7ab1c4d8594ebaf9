"""From the spans of one trace to the row of a request, on spans written by hand."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import pytest

from retrospan import attributes
from retrospan_collector.assembler.reading import Remembered, Trace
from retrospan_collector.assembler.span import Span
from retrospan_collector.assembler.trace import AssembledTrace, Settling, assemble_trace
from retrospan_collector.clickhouse.request_row import (
    NO_HASH,
    UNKNOWN_TOKENS,
    Completeness,
    RequestRow,
)

TRACE = Trace(trace_id="0af7651916cd43dd8448eb211c80319c", sample_key=7)
NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
START_NS = int(datetime(2026, 3, 1, 11, 0, tzinfo=UTC).timestamp()) * 10**9
SECOND = 10**9
HASHES = [f"{n:032x}" for n in range(1, 9)]


def span(
    span_id: str,
    stage: str | None,
    recorded: Mapping[str, object] | None = None,
    *,
    parent: str = "root",
    at_s: float = 0.0,
    lasted_s: float = 0.1,
    failed: bool = False,
    dropped: int = 0,
    service: str = "support",
) -> Span:
    """A stored span; its attributes become text as the store keeps them."""
    known: dict[str, object] = dict(recorded or {})
    if stage is not None:
        known |= {attributes.SCHEMA_VERSION: "1", attributes.STAGE: stage}
    return Span(
        trace_id=TRACE.trace_id,
        span_id=span_id,
        parent_span_id="" if span_id == parent else parent,
        service_name=service,
        environment="production",
        name=f"{stage} something",
        start_ns=START_NS + int(at_s * SECOND),
        duration_ns=int(lasted_s * SECOND),
        failed=failed,
        attributes={name: stored(value) for name, value in known.items()},
        dropped_attributes=dropped,
        arrived_ms=START_NS // 1_000_000,
    )


def stored(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def request_span(asked: object = "How long?") -> Span:
    known = {attributes.SYSTEM_NAME: "support_rag", attributes.INPUT: json.dumps(asked)}
    return span("root", "request", known, lasted_s=2.0)


def retrieval(
    ids: Sequence[str] = ("a", "b", "c"), changed: Mapping[str, object] | None = None
) -> dict[str, object]:
    n = len(ids)
    documents = [{"id": i, "score": 0.5, "content": f"text of {i}"} for i in ids]
    return {
        attributes.RETRIEVAL_TOP_K: 6,
        attributes.RETRIEVAL_QUERY_TEXT: "how long",
        attributes.RETRIEVAL_DOCUMENTS: documents,
        attributes.PASSAGES_ID: list(ids),
        attributes.PASSAGES_DOCUMENT_ID: [f"doc-{i}" for i in ids],
        attributes.PASSAGES_SCORE: [0.9, 0.8, 0.7, 0.6][:n],
        attributes.PASSAGES_TOKENS: [10, 20, 30, 40][:n],
        attributes.PASSAGES_HASH: HASHES[:n],
        **(changed or {}),
    }


def assembly(
    ids: Sequence[str] = ("a", "b", "c"),
    places: Sequence[int] = (1, 0, 0),
    reasons: Sequence[str] = ("", "budget", "top_k"),
) -> dict[str, object]:
    return {
        attributes.ASSEMBLY_RULE: "stop",
        attributes.ASSEMBLY_TOP_K: 2,
        attributes.ASSEMBLY_TOKEN_BUDGET: 25,
        attributes.ASSEMBLY_CONTEXT_TOKENS: 10,
        attributes.ASSEMBLY_ID: list(ids),
        attributes.ASSEMBLY_POSITION: list(range(1, len(ids) + 1)),
        attributes.ASSEMBLY_PROMPT_POSITION: list(places),
        attributes.ASSEMBLY_DROPPED_REASON: list(reasons),
    }


def answer(text: str = "14 days", citations: Sequence[object] = ()) -> dict[str, object]:
    return {attributes.ANSWER: text, attributes.CITATIONS: list(citations)}


def usual() -> list[Span]:
    return [
        request_span(),
        span("r", "retrieve", retrieval(), at_s=0.1),
        span("m", "assemble", assembly(), at_s=0.3),
        span("g", "generate", answer(), at_s=0.5),
    ]


def look(spans: Sequence[Span]) -> AssembledTrace:
    return assemble_trace(
        TRACE,
        spans,
        Remembered(),
        registration=None,
        settling=Settling(settle_ms=30_000, orphan_ms=600_000),
        now=NOW,
    )


def only(spans: Sequence[Span]) -> RequestRow:
    (row,) = look(spans).rows
    return row


def flags(row: RequestRow) -> tuple[str, ...]:
    return Completeness(row.completeness).names


def test_a_usual_request_is_recorded_whole() -> None:
    row = only(usual())
    assert (row.root_span_id, row.service_name, row.environment) == (
        "root",
        "support",
        "production",
    )
    assert (row.question, row.answer, row.script) == ("How long?", "14 days", "latin")
    assert row.passage_id == ("a", "b", "c")
    assert row.passage_document_id == ("doc-a", "doc-b", "doc-c")
    assert row.passage_hash == tuple(bytes.fromhex(text) for text in HASHES[:3])
    assert row.passage_prompt_position == (1, 0, 0)
    assert row.passage_dropped_reason == ("", "budget", "top_k")
    assert row.cum_tokens == (10, 30, 60)
    assert (row.depth, row.top_k, row.token_budget, row.budget_rule) == (6, 2, 25, "stop")
    assert (row.replay_class, row.retrieval_status, row.status) == ("full", "recorded", "ok")
    assert row.completeness == 0
    assert row.stage_kind == ("retrieve", "assemble", "generate")
    assert (row.duration_ns, row.retrieval_ns) == (2 * SECOND, SECOND // 10)


def test_texts_are_given_under_the_hashes_that_the_row_holds() -> None:
    (passages,) = look(usual()).lists
    assert passages.text == ("text of a", "text of b", "text of c")
    assert passages.hash == only(usual()).passage_hash


def test_an_http_span_above_a_request_is_not_its_root() -> None:
    http = span("http", None, parent="gone", lasted_s=3)
    inside = [request_span(), *usual()[1:]]
    root = span("root", "request", {attributes.INPUT: '"How?"'}, parent="http", lasted_s=2)
    row = only([http, root, *inside[1:]])
    assert row.root_span_id == "root"
    assert flags(row) == ()


def test_several_requests_in_a_trace_are_several_rows() -> None:
    second = [
        span("root2", "request", {attributes.INPUT: '"Second?"'}, parent="http", at_s=5),
        span("r2", "retrieve", retrieval(["x"]), parent="root2", at_s=5.1),
        span("g2", "generate", answer("no"), parent="root2", at_s=5.2),
    ]
    rows = look([span("http", None, parent="http", lasted_s=9), *usual(), *second]).rows
    assert [(row.root_span_id, row.question, row.passage_id) for row in rows] == [
        ("root", "How long?", ("a", "b", "c")),
        ("root2", "Second?", ("x",)),
    ]


def test_a_system_inside_a_system_is_one_request() -> None:
    inner = span("inner", "request", {attributes.INPUT: '"inner"'}, parent="root", at_s=0.05)
    found = span("r", "retrieve", retrieval(), parent="inner", at_s=0.1)
    assert only([request_span(), inner, found, *usual()[2:]]).root_span_id == "root"


def test_an_orphan_group_is_listed_under_the_missing_parents_id() -> None:
    row = only(usual()[1:])
    assert row.root_span_id == "root"
    assert flags(row) == ("root_missing",)
    assert (row.status, row.duration_ns, row.replay_class) == ("unknown", None, "none")
    assert row.question == "how long"
    assert row.passage_id == ("a", "b", "c")


def test_without_an_assembly_record_nothing_is_said_about_the_prompt() -> None:
    spans = [item for item in usual() if item.span_id != "m"]
    row = only(spans)
    assert row.passage_prompt_position == (None, None, None)
    assert (row.budget_rule, row.top_k, row.token_budget) == ("", None, None)
    assert row.replay_class == "text"


def test_nothing_retrieved_is_another_thing_than_nothing_recorded() -> None:
    empty = [
        request_span(),
        span("r", "retrieve", retrieval([]), at_s=0.1),
        span("m", "assemble", assembly([], [], []), at_s=0.3),
    ]
    recorded = only(empty)
    assert (recorded.passage_id, recorded.retrieval_status) == ((), "recorded")
    assert recorded.replay_class == "full"
    silent = only([request_span(), span("g", "generate", answer(), at_s=0.5)])
    assert (silent.passage_id, silent.retrieval_status) == ((), "not_recorded")
    assert silent.replay_class == "none"


def test_a_failed_retrieval_is_failed_and_not_empty() -> None:
    failed = span("r", "retrieve", {attributes.ERROR_TYPE: "TimeoutError"}, at_s=0.1, failed=True)
    row = only([request_span(), failed])
    assert (row.retrieval_status, row.replay_class) == ("failed", "none")
    assert row.stage_error_type == ("TimeoutError",)


def test_a_failed_try_and_a_retry_that_worked_are_one_result_and_two_stages() -> None:
    failed = span("r0", "retrieve", {attributes.ERROR_TYPE: "TimeoutError"}, failed=True)
    row = only([*usual(), failed])
    assert (row.retrieval_status, row.passage_id) == ("recorded", ("a", "b", "c"))
    assert row.stage_span_id == ("r0", "r", "m", "g")
    assert row.stage_error_type == ("TimeoutError", "", "", "")
    assert row.error_type == ""


def test_a_rerank_gives_the_list_and_the_retrieval_its_texts() -> None:
    reranked = retrieval(["b", "a"], {attributes.PASSAGES_HASH: [HASHES[1], HASHES[0]]})
    del reranked[attributes.RETRIEVAL_DOCUMENTS]
    row = only(
        [
            *usual()[:2],
            span("k", "rerank", reranked, at_s=0.2),
            span("m", "assemble", assembly(["b", "a"], [1, 2], ["", ""]), at_s=0.3),
        ]
    )
    assert row.passage_id == ("b", "a")
    assert row.passage_hash == (bytes.fromhex(HASHES[1]), bytes.fromhex(HASHES[0]))
    assert row.stage_ids == (("a", "b", "c"), ("b", "a"), ("b", "a"))
    assert row.replay_class == "full"


def test_a_list_put_together_from_two_legs_takes_its_details_by_id() -> None:
    keyword = retrieval(["p", "r"])
    vector = retrieval(["p2", "q"], {attributes.PASSAGES_HASH: [HASHES[0], HASHES[4]]})
    row = only(
        [
            request_span(),
            span("k", "retrieve", keyword, at_s=0.1),
            span("v", "retrieve", vector, at_s=0.2),
            span("m", "assemble", assembly(["p", "q"], [1, 2], ["", ""]), at_s=0.3),
        ]
    )
    assert row.passage_id == ("p", "q")
    assert row.passage_hash == (bytes.fromhex(HASHES[0]), bytes.fromhex(HASHES[4]))
    assert row.stage_ids[:2] == (("p", "r"), ("p2", "q"))


def test_a_replay_has_its_passages_from_the_assembly_alone() -> None:
    spans = [item for item in usual() if item.span_id != "r"]
    row = only(spans)
    assert row.passage_id == ("a", "b", "c")
    assert row.passage_document_id == ("a", "b", "c")
    assert row.passage_hash == (NO_HASH,) * 3
    assert row.passage_tokens == (UNKNOWN_TOKENS,) * 3
    assert all(math.isnan(score) for score in row.passage_score)
    assert row.passage_prompt_position == (1, 0, 0)
    assert (row.cum_tokens, row.depth, row.replay_class) == ((), None, "ids")


def test_the_last_generation_without_an_error_gives_the_answer() -> None:
    row = only(
        [
            *usual(),
            span("g2", "generate", answer("second"), at_s=0.7),
            span("g3", "generate", answer("third"), at_s=0.9, failed=True),
        ]
    )
    assert row.answer == "second"


def test_a_step_spanned_twice_is_one() -> None:
    inner = span("r-in", "retrieve", retrieval(["z"]), parent="r", at_s=0.12, lasted_s=0.01)
    row = only([*usual(), inner])
    assert row.passage_id == ("a", "b", "c")
    assert row.retrieval_ns == SECOND // 10


def test_missing_scores_are_not_numbers_whether_written_as_null_or_nan() -> None:
    for scores in ("[0.5,null,NaN]", "[0.5,NaN,null]"):
        found = retrieval(changed={attributes.PASSAGES_SCORE: scores})
        row = only([request_span(), span("r", "retrieve", found)])
        assert row.passage_score[0] == 0.5
        assert all(math.isnan(score) for score in row.passage_score[1:])
        assert flags(row) == ()


def test_unknown_token_counts_stay_unknown_and_make_it_no_full_replay() -> None:
    found = retrieval(changed={attributes.PASSAGES_TOKENS: [10, -1, 30]})
    row = only([request_span(), span("r", "retrieve", found), *usual()[2:]])
    assert row.passage_tokens == (10, UNKNOWN_TOKENS, 30)
    assert (row.cum_tokens, row.replay_class) == ((10,), "text")


def test_dropped_attributes_are_flagged_and_nothing_rests_on_them() -> None:
    spans = usual()
    spans[1] = span("r", "retrieve", {attributes.PASSAGES_TOKENS: [1]}, at_s=0.1, dropped=3)
    row = only(spans)
    assert flags(row) == ("attributes_dropped",)
    assert row.replay_class == "none"
    alone = only([request_span(), spans[1]])
    assert (alone.retrieval_status, alone.passage_id) == ("unreadable", ())


def test_lists_of_unequal_length_are_flagged_and_not_guessed() -> None:
    found = retrieval(changed={attributes.PASSAGES_SCORE: [0.9, 0.8]})
    row = only([request_span(), span("r", "retrieve", found, at_s=0.1), *usual()[2:]])
    assert flags(row) == ("truncated",)
    assert all(math.isnan(score) for score in row.passage_score)
    assert row.replay_class == "none"


def test_a_list_that_cannot_be_read_is_not_an_empty_retrieval() -> None:
    found = retrieval(changed={attributes.PASSAGES_ID: '["a", "b'})
    row = only([request_span(), span("r", "retrieve", found, at_s=0.1)])
    assert flags(row) == ("unreadable",)
    assert (row.retrieval_status, row.replay_class) == ("unreadable", "none")


def test_a_redacted_text_is_flagged_and_not_stored() -> None:
    documents = [{"id": i, "content": "__REDACTED__"} for i in "abc"]
    found = retrieval(changed={attributes.RETRIEVAL_DOCUMENTS: documents})
    looked = look([request_span(), span("r", "retrieve", found, at_s=0.1)])
    assert looked.lists[0].text == (None,) * 3
    assert flags(looked.rows[0]) == ("redacted",)


@pytest.mark.parametrize(("at_s", "lasted_s"), [(-0.2, 0.1), (-1.7e9, 0.1), (0.1, 2.0**63 / 1e9)])
def test_times_that_contradict_each_other_are_flagged(at_s: float, lasted_s: float) -> None:
    found = span("r", "retrieve", retrieval(), at_s=at_s, lasted_s=lasted_s)
    assert flags(only([request_span(), found])) == ("clock_skew",)


def test_citations_mean_passages_as_the_prompt_showed_them() -> None:
    spans = [
        *usual()[:2],
        span("m", "assemble", assembly(places=[2, 0, 1], reasons=["", "budget", ""]), at_s=0.3),
        span("g", "generate", answer(citations=[1, "a", "doc-c", "b", 9, 1]), at_s=0.5),
    ]
    row = only(spans)
    assert row.citations == ("1", "a", "doc-c", "b", "9", "1")
    assert row.cited_positions == (3, 1)
    assert row.dangling_citations == ("b", "9")
