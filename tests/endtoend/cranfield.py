"""Cranfield's 225 queries through the whole product, and every stored metric held to trec_eval's.

    uv run python -m tests.endtoend.cranfield [--store embedded:DIR]

The queries go through a decorated BM25 system over OTLP by `retrospan run`. Then both sides are
read back from the store: the metrics from `scores`, the rankings from `requests`; pytrec_eval
(trec_eval's own code) is given those rankings, and the values are compared query by query.

Two traps of the collection: the judgements number the queries by position, 1 to 225, and not by
their `.I` numbers; and code 1 is the best and 4 the least, so that the gain is 5 − code. One
document a query has code −1. It is taken as judged and not relevant (gain 0), although most of
those documents stand close to their query: the code says no, and nothing says otherwise.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytrec_eval

if not __package__:
    # Started as a file: the root of the checkout, where `tests` lies, is not searched then.
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from retrospan_collector.clickhouse.connection import open_store
from tests.endtoend.command import Retrospan
from tests.endtoend.cost import Cost, cost_of_run
from tests.endtoend.cranfield_rag import folder, records
from tests.endtoend.serving import serving

SYSTEM = "cranfield_rag:CranfieldRag"

SAME_AS_TREC_EVAL = {
    "hit_rate_at_10": "success_10",
    "recall_at_10": "recall_10",
    "mrr": "recip_rank",
    "ndcg_at_50": "ndcg_cut_50",
}
"""Metrics of ours, and the measure of trec_eval that has the same definition."""

_SCORES = """
SELECT r.CaseId AS CaseId, s.Name AS Name, s.Value AS Value
FROM (SELECT * FROM scores FINAL WHERE RunId = {run_id:String}) AS s
JOIN (SELECT * FROM runs FINAL WHERE RunId = {run_id:String}) AS r ON r.TraceId = s.TraceId
"""
_RANKINGS = """
SELECT CaseId, PassageId, PassagePromptPosition, Depth, TopK
FROM requests FINAL
WHERE RunId = {run_id:String}
"""

Values = Mapping[str, Mapping[str, float]]
"""By query, by metric."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """What the store has of one query's retrieval and assembly."""

    documents: tuple[str, ...]
    """In their recorded order."""
    kept: int
    """How many of them entered the prompt."""
    depth: int
    top_k: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Both sides of the comparison."""

    run: Mapping[str, Any]
    """What `retrospan run --json` printed."""
    rankings: Mapping[str, Ranking]
    ours: Values
    trec_eval: Values
    cost: Cost

    def largest_difference(self, ours: str) -> float:
        """The largest difference of any one query between a metric and trec_eval's."""
        theirs = SAME_AS_TREC_EVAL[ours]
        return max(
            abs(values[ours] - self.trec_eval[query][theirs]) for query, values in self.ours.items()
        )

    def mean(self, ours: str) -> float:
        """The mean of a metric over all queries."""
        return sum(values[ours] for values in self.ours.values()) / len(self.ours)


def queries() -> list[str]:
    """The questions by position: the first is query 1 of the judgements, whatever its number."""
    return [sections["W"] for _, sections in records(folder() / "cran.qry")]


def gains() -> dict[str, dict[str, int]]:
    """What is known of each query's documents: 5 − code, and 0 for the code −1."""
    judged: dict[str, dict[str, int]] = {}
    for line in (folder() / "cranqrel").read_text("ascii").splitlines():
        query, document, code = line.split()
        gain = 0 if code == "-1" else 5 - int(code)
        judged.setdefault(f"q{int(query):03d}", {})[document] = gain
    return judged


def write_cases(path: Path) -> None:
    """The queries as a dataset, with every judged document as its relevance."""
    judged = gains()
    with path.open("w", encoding="utf-8") as file:
        for position, question in enumerate(queries(), start=1):
            relevant = [
                {"document_id": document, "grade": gain}
                for document, gain in judged[f"q{position:03d}"].items()
            ]
            case = {
                "id": f"q{position:03d}",
                "input": {"question": question},
                "expected": {"relevant": relevant},
            }
            file.write(json.dumps(case) + "\n")


def through_the_path(store: str, working: Path) -> Report:
    """Run all queries through a service on the store, and read both sides back."""
    cases = working / "cranfield.jsonl"
    write_cases(cases)
    with serving(store, working / "serve.log") as service:
        retrospan = Retrospan(store=store)
        run, cost = cost_of_run(
            service, lambda: retrospan.json("run", str(cases), "--system", SYSTEM)
        )
        ours, rankings = _read_back(store, run["run_id"])
    return Report(run=run, rankings=rankings, ours=ours, trec_eval=_trec_eval(rankings), cost=cost)


def _read_back(store: str, run_id: str) -> tuple[Values, Mapping[str, Ranking]]:
    ours: dict[str, dict[str, float]] = {}
    rankings = {}
    with open_store(store) as opened:
        for row in opened.query(_SCORES, {"run_id": run_id}):
            if row["Name"] in SAME_AS_TREC_EVAL:
                ours.setdefault(row["CaseId"], {})[row["Name"]] = row["Value"]
        for row in opened.query(_RANKINGS, {"run_id": run_id}):
            rankings[row["CaseId"]] = Ranking(
                documents=tuple(row["PassageId"]),
                kept=sum(position > 0 for position in row["PassagePromptPosition"]),
                depth=row["Depth"],
                top_k=row["TopK"],
            )
    return ours, rankings


def _trec_eval(rankings: Mapping[str, Ranking]) -> Values:
    """The measures of trec_eval, which sorts by score: the recorded position is made the score."""
    measures = {"success.10", "recall.10", "recip_rank", "ndcg_cut.50"}
    run = {
        query: {document: float(-position) for position, document in enumerate(ranking.documents)}
        for query, ranking in rankings.items()
    }
    values: Values = pytrec_eval.RelevanceEvaluator(gains(), measures).evaluate(run)
    return values


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--store", help="default: an embedded store in a temporary folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as working:
        report = through_the_path(options.store or f"embedded:{working}/data", Path(working))
    print(f"{len(report.rankings)} queries; code -1 (one document a query) is read as gain 0")
    for ours, theirs in SAME_AS_TREC_EVAL.items():
        print(
            f"  {ours:<15} {report.mean(ours):.4f}  trec_eval {theirs:<12}"
            f" largest difference of a query {report.largest_difference(ours):.1e}"
        )
    print(*report.cost.lines(), sep="\n")


if __name__ == "__main__":
    main()
