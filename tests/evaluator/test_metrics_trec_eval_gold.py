"""trec_eval's own published output, to its printed digits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import pytest

from retrospan_evaluator.metrics.relevance import JudgedRanking, judge_ranking
from retrospan_evaluator.metrics.request import Candidate
from retrospan_evaluator.metrics.retrieval import (
    hit_rate_at,
    ndcg_at,
    precision_at,
    recall_at,
    reciprocal_rank,
)
from retrospan_evaluator.testsets.case import Relevant

Measure = Callable[[JudgedRanking, int], float | None]
GRADED: dict[str, Measure] = {"ndcg_cut": ndcg_at}
BINARY: dict[str, Measure] = {"P": precision_at, "recall": recall_at, "success": hit_rate_at}


@pytest.fixture(scope="module")
def gold(real_data: Path) -> Path:
    folder = real_data / "trec_eval_gold"
    if not folder.is_dir():
        pytest.skip(f"trec_eval's published output is not at {folder}")
    return folder


def _judgements(file: Path) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = defaultdict(dict)
    for line in file.read_text().splitlines():
        topic, _, document, grade = line.split()
        found[topic][document] = int(grade)
    return found


def _rankings(file: Path) -> dict[str, list[str]]:
    """Positions as trec_eval forms them: by score, equal scores by document name, descending."""
    found: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for line in file.read_text().splitlines():
        topic, _, document, _, score, _ = line.split()
        found[topic].append((float(score), document))
    return {
        topic: [document for _, document in sorted(entries, reverse=True)]
        for topic, entries in found.items()
    }


def _printed(file: Path) -> dict[tuple[str, str], str]:
    """(measure, topic) → value as printed."""
    rows = [line.split() for line in file.read_text().splitlines()]
    return {(row[0], row[1]): row[2] for row in rows if len(row) == 3}


def _read(ranking: list[str], judgements: dict[str, int], level: int) -> JudgedRanking:
    """The ranking with every grade below the level counted as not relevant."""
    relevant = [
        Relevant(document_id=name, grade=grade if grade >= level else 0)
        for name, grade in judgements.items()
    ]
    return judge_ranking([Candidate(id=name, document_id=name) for name in ranking], relevant)


def _value(measure: str, binary: JudgedRanking, graded: JudgedRanking) -> float | None:
    """Our value of one of trec_eval's measures; None for a measure that is not ours."""
    if measure == "recip_rank":
        return reciprocal_rank(binary)
    name, _, cut = measure.rpartition("_")
    if not cut.isdigit():
        return None
    if name in BINARY:
        return BINARY[name](binary, int(cut))
    return GRADED[name](graded, int(cut)) if name in GRADED else None


@pytest.mark.parametrize(
    ("judgements", "results", "output", "level"),
    [
        ("qrels.test", "results.test", "out.test.aq", 1),
        ("qrels.rel_level", "results.test", "out.test.aql", 2),
    ],
    ids=["binary", "graded"],
)
def test_every_value_of_a_topic_equals_the_printed_one(
    gold: Path, judgements: str, results: str, output: str, level: int
) -> None:
    judged = _judgements(gold / judgements)
    reads = {
        topic: (_read(ranking, judged[topic], level), _read(ranking, judged[topic], 1))
        for topic, ranking in _rankings(gold / results).items()
    }
    compared = 0
    for (measure, topic), printed in _printed(gold / output).items():
        value = _value(measure, *reads[topic]) if topic in reads else None
        if value is not None:
            assert f"{value:.4f}" == printed, (measure, topic)
            compared += 1

    # recip_rank and four families at nine or three cuts, for each of three topics.
    assert compared == 3 * (1 + 9 + 9 + 9 + 3)


def test_the_means_over_all_topics_equal_the_printed_ones(gold: Path) -> None:
    judged = _judgements(gold / "qrels.test")
    reads = [
        _read(ranking, judged[topic], 1)
        for topic, ranking in _rankings(gold / "results.test").items()
    ]
    printed = _printed(gold / "out.test.a")

    for measure, cut in (("P", 10), ("recall", 100), ("ndcg_cut", 20), ("success", 5)):
        name = f"{measure}_{cut}"
        values = [_value(name, read, read) for read in reads]
        mean = fmean(value for value in values if value is not None)
        assert f"{mean:.4f}" == printed[name, "all"]
