"""Metrics of the answer."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrospan_evaluator.metrics.answer import answer_correct, citations_valid, contains
from retrospan_evaluator.metrics.request import ScoredRequest
from retrospan_evaluator.metrics.score import Score, ScoreState
from retrospan_evaluator.testsets.case import Case


@dataclass(frozen=True)
class Reading:
    name: str
    answer: str
    expected: str
    contained: bool


READINGS = [
    Reading("a plain part", "Within 14 days of purchase.", "14 days", True),
    Reading("another case", "WITHIN 14 DAYS.", "14 days", True),
    Reading("a sharp s", "in der HAUPTSTRASSE 5", "Hauptstraße", True),
    Reading("a line break", "within 14\n   days", "14 days", True),
    Reading("composed and decomposed", "cafe\u0301", "café", True),
    Reading("full width", "１４ days", "14 days", True),
    Reading("an Arabic phrase", "تقع في مدينة القاهرة الكبرى.", "القاهرة", True),
    Reading("Arabic with stretching", "القـــاهرة", "القاهرة", True),
    Reading("Arabic digits", "خلال ١٤ يوما", "14 يوما", True),
    Reading("direction marks", "في \u200f14\u200f يوما", "14 يوما", True),
    Reading("a Chinese phrase", "退款期限为十四天。", "十四天", True),
    Reading("something else", "within 30 days", "14 days", False),
    Reading("the end of a longer number", "within 114 days", "14 days", False),
    Reading("the start of a longer number", "for 140 euros", "14", False),
    Reading("the whole part of a decimal", "14.5 points", "14", False),
    Reading("the fraction of a decimal", "3.14 points", "14", False),
    Reading("thousands", "14,000 people", "14", False),
    Reading("thousands in Arabic", "١٤٬٠٠٠ نسمة", "14", False),
    Reading("a number at the end of a sentence", "It is 14.", "14", True),
    Reading("a later place where it stands whole", "not 114, but 14 days", "14 days", True),
    Reading("no answer at all", "", "14 days", False),
    Reading("nothing visible expected", "anything", "\u200f", False),
]


@pytest.mark.parametrize("reading", READINGS, ids=lambda reading: reading.name)
def test_contains_reads_as_a_person_would(reading: Reading) -> None:
    assert contains(reading.answer, reading.expected) is reading.contained


@given(before=st.text(), wanted=st.text(st.characters(categories=["L"]), min_size=1))
def test_text_contains_itself_among_words(before: str, wanted: str) -> None:
    assert contains(f"{before} {wanted} and more", wanted)


def request(answer: str | None, **changes: object) -> ScoredRequest:
    case = Case(id="c", input="q", expected_answer="14 days")
    return ScoredRequest(case=case, answer=answer, **changes)  # type: ignore[arg-type]


def test_an_answer_is_right_when_it_contains_the_expected_text() -> None:
    assert answer_correct(request("14 days")).passed is True
    assert answer_correct(request("30 days")).passed is False
    assert answer_correct(request("")).passed is False


def test_a_missing_answer_is_a_failed_score_and_not_a_wrong_answer() -> None:
    score = answer_correct(request(None))

    assert (score.state, score.value) == (ScoreState.FAILED, None)
    assert citations_valid(request(None)).state is ScoreState.FAILED


def test_a_case_without_an_expected_answer_is_left_out() -> None:
    score = answer_correct(ScoredRequest(case=Case(id="c", input="q"), answer="anything"))

    assert score.state is ScoreState.UNDEFINED


def test_j_citations_a_citation_of_nothing_in_the_prompt_makes_the_answer_invalid() -> None:
    assert citations_valid(request("a", citations=2)).passed is True

    dangling = citations_valid(request("a", citations=2, dangling_citations=("9",)))
    assert dangling.passed is False
    assert "9" in dangling.explanation


def test_an_answer_without_citations_is_left_out() -> None:
    assert citations_valid(request("a")).state is ScoreState.UNDEFINED


def test_a_score_is_finite_and_a_failed_one_has_no_value() -> None:
    with pytest.raises(ValueError, match="finite"):
        Score.measured("m", float("nan"))
    with pytest.raises(ValueError, match="no value"):
        Score(name="m", value=0.0, failure="broken")
