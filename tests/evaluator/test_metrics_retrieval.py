"""Retrieval metrics: the published failure stories, and equality with trec_eval."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from retrospan_evaluator.metrics.relevance import JudgedRanking, judge_ranking
from retrospan_evaluator.metrics.request import Candidate
from retrospan_evaluator.metrics.retrieval import (
    hit_rate_at,
    ndcg_at,
    ndcg_exp_at,
    precision_at,
    recall_at,
    recall_capped_at,
    reciprocal_rank,
)
from retrospan_evaluator.testsets.case import Relevant


def judged(ranking: Sequence[str], gold: dict[str, float]) -> JudgedRanking:
    """Documents that are their own passages, against graded documents."""
    candidates = [Candidate(id=name, document_id=name) for name in ranking]
    return judge_ranking(
        candidates, [Relevant(document_id=name, grade=grade) for name, grade in gold.items()]
    )


def chunks(*names: str) -> list[Candidate]:
    """Passages `document#chunk`."""
    return [Candidate(id=name, document_id=name.partition("#")[0]) for name in names]


def test_m_dup_docs_a_second_copy_earns_nothing_and_keeps_its_place() -> None:
    twice = judged(["A", "A"], {"A": 1})
    assert ndcg_at(twice, 2) == 1
    assert recall_at(twice, 2) == 1
    assert precision_at(twice, 2) == 0.5

    mixed = judged(["A", "A", "B"], {"A": 1, "B": 1})
    assert recall_at(mixed, 2) == 0.5
    assert recall_at(mixed, 3) == 1
    assert precision_at(mixed, 3) == pytest.approx(2 / 3)
    assert ndcg_at(mixed, 3) == pytest.approx(0.9197, abs=5e-5)


def test_m_dup_docs_copies_are_never_renamed_into_another_id() -> None:
    ranking = judged(["a", "a", "z"], {"a_2": 1})

    assert [recall_at(ranking, 3), precision_at(ranking, 3), ndcg_at(ranking, 3)] == [0, 0, 0]
    assert reciprocal_rank(ranking) == 0


def test_m_order_ties_distance_only_the_recorded_position_counts() -> None:
    third = judged(["d1", "d2", "d3"], {"d3": 1})
    assert reciprocal_rank(third) == pytest.approx(1 / 3)
    assert ndcg_at(third, 3) == 0.5

    renamed = judged(["z", "y", "a"], {"a": 1})
    assert (reciprocal_rank(renamed), ndcg_at(renamed, 3)) == (
        reciprocal_rank(third),
        ndcg_at(third, 3),
    )


def test_m_empty_failed_an_empty_retrieval_is_zero_and_missing_gold_is_undefined() -> None:
    empty = judged([], {"A": 1})
    assert [recall_at(empty, 3), precision_at(empty, 3), ndcg_at(empty, 3)] == [0, 0, 0]
    assert (reciprocal_rank(empty), hit_rate_at(empty, 3)) == (0, 0)

    for nothing_known in (judged(["A"], {}), judged(["A"], {"A": 0})):
        assert hit_rate_at(nothing_known, 1) is None
        assert recall_at(nothing_known, 1) is None
        assert precision_at(nothing_known, 1) is None
        assert reciprocal_rank(nothing_known) is None
        assert ndcg_at(nothing_known, 1) is None
        assert ndcg_exp_at(nothing_known, 1) is None


def test_m_k_and_gain_each_variant_has_its_own_name() -> None:
    short = judged(["a", "b"], dict.fromkeys("abcde", 1))
    assert precision_at(short, 10) == 0.2
    assert recall_at(short, 10) == 0.4
    assert ndcg_at(short, 10) == pytest.approx(0.5531, abs=5e-5)
    assert ndcg_at(short, 2) == 1

    graded = judged(["c", "a", "b"], {"a": 3, "b": 2, "c": 1})
    assert ndcg_at(graded, 3) == pytest.approx(0.8175, abs=5e-5)
    assert ndcg_exp_at(graded, 3) == pytest.approx(0.7364, abs=5e-5)

    first = judged(["a"], dict.fromkeys("abcd", 1))
    assert recall_at(first, 1) == 0.25
    assert recall_capped_at(first, 1) == 1

    many = judged("abcdefghij", dict.fromkeys("abcdefghijkl", 1))
    assert ndcg_at(many, 10) == 1


def test_a_chunk_label_matches_the_passage_and_a_document_label_its_first_chunk() -> None:
    by_chunk = judge_ranking(chunks("d#1", "d#2"), [Relevant(document_id="d", chunk_id="d#2")])
    assert list(by_chunk.gains) == [0, 1]

    by_document = judge_ranking(chunks("e#1", "d#1", "d#2"), [Relevant(document_id="d")])
    assert list(by_document.gains) == [0, 1, 0]
    assert by_document.best_position == 2


def test_a_label_given_twice_counts_once_with_its_higher_grade() -> None:
    ranking = judged(["a"], {"a": 1})
    twice = judge_ranking(
        chunks("a"), [Relevant(document_id="a", grade=1), Relevant(document_id="a", grade=3)]
    )

    assert recall_at(twice, 1) == recall_at(ranking, 1) == 1
    assert [*twice.gains, *twice.ideal] == [3, 3]


def test_a_copy_of_a_labelled_chunk_cannot_stand_for_its_labelled_document_too() -> None:
    labels = [Relevant(document_id="d", chunk_id="d#1"), Relevant(document_id="d")]

    assert list(judge_ranking(chunks("d#1", "d#1"), labels).gains) == [1, 0]
    assert list(judge_ranking(chunks("d#1", "d#2"), labels).gains) == [1, 1]


def test_a_document_recorded_whole_leaves_a_chunk_label_unsure() -> None:
    label = [Relevant(document_id="d", chunk_id="d#2")]

    assert judge_ranking([Candidate(id=None, document_id="d")], label).unsure == (1,)
    assert judge_ranking([Candidate(id="d", document_id="d")], label).unsure == (1,)
    assert judge_ranking([Candidate(id=None, document_id="e")], label).unsure == ()
    assert judge_ranking(chunks("d#1"), label).unsure == ()


def test_a_cut_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        recall_at(judged(["a"], {"a": 1}), 0)


rankings = st.lists(st.sampled_from([f"d{n}" for n in range(12)]), max_size=15)
golds = st.dictionaries(
    st.sampled_from([f"d{n}" for n in range(15)]), st.integers(-1, 4), max_size=8
)


@given(ranking=rankings, gold=golds, k=st.integers(1, 20))
def test_no_metric_leaves_the_unit_interval(
    ranking: list[str], gold: dict[str, float], k: int
) -> None:
    read = judged(ranking, gold)
    values = [
        hit_rate_at(read, k),
        recall_at(read, k),
        recall_capped_at(read, k),
        precision_at(read, k),
        reciprocal_rank(read),
        ndcg_at(read, k),
        ndcg_exp_at(read, k),
    ]

    assert all(value is None or 0 <= value <= 1 + 1e-12 for value in values)
    assert len({value is None for value in values}) == 1


@given(ranking=rankings, gold=golds, k=st.integers(1, 20))
def test_renaming_every_document_changes_no_metric(
    ranking: list[str], gold: dict[str, float], k: int
) -> None:
    renamed = judged(
        [name[::-1] for name in ranking], {name[::-1]: grade for name, grade in gold.items()}
    )

    assert renamed == judged(ranking, gold)
    assert ndcg_at(renamed, k) == ndcg_at(judged(ranking, gold), k)


@given(
    ranking=st.lists(st.sampled_from([f"d{n}" for n in range(60)]), min_size=1, unique=True),
    gold=st.dictionaries(
        st.sampled_from([f"d{n}" for n in range(60)]), st.integers(-1, 4), min_size=1
    ).filter(lambda gold: max(gold.values()) > 0),
    k=st.sampled_from([1, 2, 3, 5, 10, 20, 100]),
)
def test_metrics_equal_trec_eval_on_generated_rankings(
    ranking: list[str], gold: dict[str, int], k: int
) -> None:
    evaluator = pytrec_eval.RelevanceEvaluator(
        {"q": gold},
        {f"{name}.{k}" for name in ("success", "P", "recall", "ndcg_cut")} | {"recip_rank"},
    )
    scores = {name: float(-position) for position, name in enumerate(ranking)}
    theirs = evaluator.evaluate({"q": scores})["q"]
    read = judged(ranking, dict(gold))

    ours = {
        f"success_{k}": hit_rate_at(read, k),
        f"P_{k}": precision_at(read, k),
        f"recall_{k}": recall_at(read, k),
        f"ndcg_cut_{k}": ndcg_at(read, k),
        "recip_rank": reciprocal_rank(read),
    }
    for name, value in ours.items():
        assert value is not None
        assert math.isclose(value, theirs[name], abs_tol=1e-9)
