"""Which metrics a dataset gets, and what a summary says of scores of every kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrospan_evaluator.metrics.request import Candidate, ScoredRequest
from retrospan_evaluator.metrics.score import Score, ScoreState
from retrospan_evaluator.metrics.suite import Metric, default_metrics
from retrospan_evaluator.metrics.summary import MetricSummary, summarise
from retrospan_evaluator.statistics.betting import betting_interval
from retrospan_evaluator.statistics.interval import clopper_pearson
from retrospan_evaluator.testsets.case import Case, Relevant
from retrospan_evaluator.testsets.dataset import Dataset

RELEVANT = (Relevant(document_id="a"),)
FULL = Case(id="full", input="q", expected_answer="yes", relevant=RELEVANT)
BARE = Case(id="bare", input="q")


def dataset(*cases: Case) -> Dataset:
    return Dataset(path=Path("cases.jsonl"), version="v", cases=cases)


def names(metrics: tuple[Metric, ...]) -> list[str]:
    return [metric.name for metric in metrics]


def found(*documents: str) -> tuple[Candidate, ...]:
    return tuple(Candidate(id=name, document_id=name) for name in documents)


def summaries(*requests: ScoredRequest) -> dict[str, MetricSummary]:
    metrics = default_metrics(dataset(FULL, BARE), top_k=2, depth=6)
    scores = [metric.score(request) for request in requests for metric in metrics]
    return {summary.name: summary for summary in summarise(metrics, scores)}


def test_the_metrics_are_read_at_the_systems_own_cuts() -> None:
    assert names(default_metrics(dataset(FULL), top_k=2, depth=6)) == [
        "answer_correct",
        "hit_rate_at_2",
        "recall_at_2",
        "mrr",
        "ndcg_at_6",
        "citations_valid",
    ]
    assert "hit_rate_at_6" in names(default_metrics(dataset(FULL), top_k=None, depth=6))


def test_cases_that_expect_nothing_bring_no_metric_of_it() -> None:
    assert names(default_metrics(dataset(BARE), top_k=2, depth=6)) == ["citations_valid"]


def test_a_rate_gets_the_exact_interval_and_counts_its_successes() -> None:
    right = ScoredRequest(case=FULL, answer="yes", candidates=found("a"))
    wrong = ScoredRequest(case=FULL, answer="no", candidates=found("b", "c", "a"))

    summary = summaries(*[right] * 9, *[wrong] * 4)["answer_correct"]

    exact = clopper_pearson(9, 13)
    assert (summary.n, summary.successes) == (13, 9)
    assert (summary.estimate, summary.lower, summary.upper) == (
        exact.estimate,
        exact.lower,
        exact.upper,
    )
    assert summary.method == "Clopper–Pearson"


def test_a_mean_gets_the_betting_interval_and_no_successes() -> None:
    first = ScoredRequest(case=FULL, answer="yes", candidates=found("a"))
    third = ScoredRequest(case=FULL, answer="yes", candidates=found("b", "c", "a"))

    summary = summaries(first, third)["mrr"]

    bet = betting_interval([1, 1 / 3])
    assert summary.successes is None
    assert (summary.lower, summary.upper) == (bet.lower, bet.upper)
    assert summary.method == "betting"


def test_m_empty_failed_empty_undefined_and_failed_stand_apart() -> None:
    empty = ScoredRequest(case=FULL, answer="yes", candidates=())
    without_gold = ScoredRequest(case=BARE, answer="yes", candidates=found("a"))
    failed = ScoredRequest(case=FULL, answer=None, retrieval_failed=True)

    read = summaries(empty, without_gold, failed)

    for name in ("hit_rate_at_2", "recall_at_2", "mrr", "ndcg_at_6"):
        summary = read[name]
        assert (summary.estimate, summary.n, summary.excluded, summary.failed) == (0, 1, 1, 1)
    answer = read["answer_correct"]
    assert (answer.estimate, answer.n, answer.excluded, answer.failed) == (1, 1, 1, 1)
    assert (answer.worst, answer.best) == (0.5, 1)


def test_a_failed_measurement_of_a_mean_widens_its_interval_on_both_sides() -> None:
    half = ScoredRequest(case=FULL, answer="yes", candidates=found("b", "a"))
    failed = ScoredRequest(case=FULL, answer=None, retrieval_failed=True)

    without, beside = summaries(*[half] * 6)["mrr"], summaries(*[half] * 6, failed)["mrr"]

    assert beside.estimate == without.estimate == 0.5
    assert beside.lower is not None and without.lower is not None
    assert beside.upper is not None and without.upper is not None
    assert beside.lower < without.lower < without.upper < beside.upper


def test_nothing_measured_is_never_zero() -> None:
    failed = ScoredRequest(case=FULL, answer=None, retrieval_failed=True)

    summary = summaries(failed)["hit_rate_at_2"]

    assert (summary.estimate, summary.lower, summary.upper) == (None, None, None)
    assert (summary.n, summary.failed) == (0, 1)


def test_citations_are_summarised_only_where_answers_carry_them() -> None:
    plain = ScoredRequest(case=FULL, answer="yes", candidates=found("a"))
    cited = ScoredRequest(case=FULL, answer="yes", candidates=found("a"), citations=1)

    assert "citations_valid" not in summaries(plain)
    assert summaries(plain, cited)["citations_valid"].n == 1


def test_a_chunk_label_against_documents_only_is_left_out_and_says_where() -> None:
    case = Case(id="c", input="q", relevant=(Relevant(document_id="a", chunk_id="a#2"),))
    metrics = default_metrics(dataset(case), top_k=2, depth=6)
    request = ScoredRequest(case=case, candidates=found("b", "a"))

    scores = [metric.score(request) for metric in metrics if "at" in metric.name.split("_")]

    assert {score.state for score in scores} == {ScoreState.UNDEFINED}
    assert "position 2" in scores[0].explanation


def test_a_score_of_a_metric_that_was_not_asked_for_is_refused() -> None:
    with pytest.raises(KeyError, match="other"):
        summarise(default_metrics(dataset(FULL), top_k=2, depth=6), [Score.measured("other", 1)])
