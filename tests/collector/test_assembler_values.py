"""The small readings of the assembler: tokens, citations, scripts, sampling, attribute values."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest

from retrospan_collector.assembler.attribute_reader import AttributeReader
from retrospan_collector.assembler.candidates import Candidates
from retrospan_collector.assembler.citations import resolve_citations
from retrospan_collector.assembler.record import PassageList
from retrospan_collector.assembler.sampling import adjusted_count
from retrospan_collector.assembler.script import script_of
from retrospan_collector.assembler.span import Span
from retrospan_collector.clickhouse.request_row import NO_HASH, UNKNOWN_TOKENS, Completeness

UNKNOWN = UNKNOWN_TOKENS


def candidates(
    tokens: tuple[int, ...],
    reasons: tuple[str, ...] | None = None,
    places: tuple[int | None, ...] | None = None,
) -> Candidates:
    n = len(tokens)
    ids = tuple(f"p{i}" for i in range(1, n + 1))
    return Candidates(
        passages=PassageList(
            id=ids,
            document_id=("doc",) * n,
            hash=(NO_HASH,) * n,
            score=(math.nan,) * n,
            tokens=tokens,
            source_version=("",) * n,
            updated_at=("",) * n,
            acl=("",) * n,
            text=(None,) * n,
            metadata=(None,) * n,
        ),
        prompt_position=places or (None,) * n,
        dropped_reason=reasons or ("",) * n,
    )


@dataclass(frozen=True, slots=True)
class TokensCase:
    id: str
    tokens: tuple[int, ...]
    reasons: tuple[str, ...]
    expected: tuple[int, ...]


TOKENS_CASES = [
    TokensCase("prefix sums", (10, 20, 30), ("", "", ""), (10, 30, 60)),
    TokensCase("cut at the unknown", (10, UNKNOWN, 30), ("", "", ""), (10,)),
    TokensCase("unknown at once", (UNKNOWN, 20), ("", ""), ()),
    TokensCase("duplicate weighs nothing", (10, 20, 30), ("", "duplicate", "top_k"), (10, 10, 40)),
    TokensCase(
        "an ineligible unknown is no cut", (10, UNKNOWN, 30), ("", "filter", ""), (10, 10, 40)
    ),
    TokensCase("dropped by the budget still weighs", (10, 20), ("", "budget"), (10, 30)),
    TokensCase("beyond what the column holds", (2**31, 2**31), ("", ""), (2**31,)),
]


@pytest.mark.parametrize("case", TOKENS_CASES, ids=lambda case: case.id)
def test_cumulative_tokens(case: TokensCase) -> None:
    assert candidates(case.tokens, case.reasons).cumulative_tokens() == case.expected


def test_numbers_are_not_resolved_where_the_prompt_is_not_recorded() -> None:
    resolved = resolve_citations(["p2", 1, "zz"], candidates((1, 1)))
    assert resolved.as_given == ("p2", "1", "zz")
    assert (resolved.positions, resolved.dangling) == ((2,), ("zz",))


def test_a_number_outside_the_prompt_dangles() -> None:
    resolved = resolve_citations([0, -1, 2, 1], candidates((1, 1), places=(0, 1)))
    assert (resolved.positions, resolved.dangling) == ((2,), ("0", "-1", "2"))


def test_a_document_is_cited_through_its_first_passage_in_the_prompt() -> None:
    resolved = resolve_citations(["doc"], candidates((1, 1, 1), places=(0, 2, 1)))
    assert resolved.positions == (3,)


@pytest.mark.parametrize(
    ("text", "script"),
    [
        ("How long?", "latin"),
        ("Où est la clé ?", "latin"),
        ("كم مدة الاسترداد؟", "arabic"),
        ("ما هي مدة الاسترداد في خطة Pro السنوية للشركات؟", "arabic"),
        ("ما هو معنى Annual plan", "mixed"),
        ("退款需要多少天?", "other"),
        ("14 + 3 = ?", ""),
        ("٣ + ٤", ""),
        ("", ""),
    ],
)
def test_scripts(text: str, script: str) -> None:
    assert script_of(text) == script


def one_span(attributes: dict[str, str], trace_state: str = "") -> Span:
    return Span(
        trace_id="t", span_id="s", start_ns=0, attributes=attributes, trace_state=trace_state
    )


@pytest.mark.parametrize(
    ("trace_state", "attributes", "count"),
    [
        ("", {}, 1.0),
        ("ot=th:8", {}, 2.0),
        ("vendor=x,ot=rv:abcdef12345678;th:c,other=y", {}, 4.0),
        ("ot=th:0", {}, 1.0),
        ("ot=th:ffffffffffffff", {}, 2.0**56),
        ("", {"SampleRate": "20"}, 20.0),
        ("", {"SampleRate": "often"}, 1.0),
        ("ot=th:8", {"SampleRate": "20"}, 2.0),
    ],
)
def test_adjusted_counts(trace_state: str, attributes: dict[str, str], count: float) -> None:
    assert adjusted_count(one_span(attributes, trace_state)) == count


def test_a_value_of_another_type_is_marked_and_not_taken() -> None:
    reader = AttributeReader()
    odd = one_span({"n": "six", "big": "99999999999", "list": "{}", "texts": "[1]"})
    assert reader.integer(odd, "n") is None
    assert reader.integer(odd, "big") is None
    assert reader.array(odd, "list") is None
    assert reader.texts(odd, "texts") is None
    assert reader.completeness == Completeness.UNREADABLE


def test_what_is_not_there_is_none_and_not_marked() -> None:
    reader = AttributeReader()
    assert reader.integer(one_span({}), "n") is None
    assert reader.scores(one_span({}), "s") is None
    assert reader.completeness == 0


def test_half_a_character_becomes_the_replacement_character() -> None:
    reader = AttributeReader()
    read = reader.objects(one_span({"d": '[{"content": "price \\ud83d", "score": NaN}]'}), "d")
    assert read is not None
    assert read[0]["content"] == "price \ufffd"
    assert reader.completeness == 0
