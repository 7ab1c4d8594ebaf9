"""Cranfield through the whole path: what is stored is what trec_eval says of the same rankings."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.endtoend.cranfield import SAME_AS_TREC_EVAL, gains, queries, through_the_path
from tests.endtoend.cranfield_rag import abstracts, records


def test_the_judgements_are_read_by_position_with_code_one_as_the_best(real_data: Path) -> None:
    judged = gains()
    assert list(judged) == [f"q{position:03d}" for position in range(1, 226)]
    # The file's first line: query 1, document 184, code 2. Query 1 ends with a code of -1.
    assert next(iter(judged["q001"].items())) == ("184", 3)
    counted = Counter(gain for query in judged.values() for gain in query.values())
    assert counted == {0: 225, 1: 363, 2: 734, 3: 387, 4: 128}
    assert all(list(query.values()).count(0) == 1 for query in judged.values())


def test_the_third_query_is_the_third_in_the_file_and_numbered_four(real_data: Path) -> None:
    numbered = list(records(real_data / "cranfield" / "cran.qry"))
    assert [number for number, _ in numbered[:4]] == ["001", "002", "004", "008"]
    assert queries()[2].startswith("what problems of heat conduction in composite slabs")
    assert len(queries()) == 225


def test_every_abstract_is_read_and_two_of_them_are_empty(real_data: Path) -> None:
    every = abstracts()
    assert [abstract.id for abstract in every] == [str(n) for n in range(1, 1401)]
    assert [a.id for a in every if not a.text] == ["471", "995"]


@pytest.mark.timeout(300)
def test_stored_metrics_equal_trec_evals_on_the_stored_rankings_query_by_query(
    real_data: Path, tmp_path: Path
) -> None:
    report = through_the_path(f"embedded:{tmp_path}/data", tmp_path)

    assert report.run["cases"] == 225 and report.run["errors"] == 0
    assert len(report.ours) == len(report.rankings) == len(report.trec_eval) == 225
    for query, ranking in report.rankings.items():
        assert len(set(ranking.documents)) == 50, query
        assert (ranking.depth, ranking.top_k, ranking.kept) == (50, 10, 10), query
    for name in SAME_AS_TREC_EVAL:
        assert report.largest_difference(name) <= 1e-9, name
        # What was printed is the mean of what was stored.
        assert report.run["metrics"][name]["estimate"] == pytest.approx(report.mean(name), abs=1e-9)
        assert report.run["metrics"][name]["n"] == 225
    # The rankings are those of a retriever that works, so the comparison is one of real values.
    assert report.mean("ndcg_at_50") == pytest.approx(0.433, abs=0.01)
