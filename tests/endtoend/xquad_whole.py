"""All of XQuAD, 1,190 questions in each language, and why every failed one failed.

    uv run python -m tests.endtoend.xquad_whole [--store embedded:DIR]

The same questions about the same paragraphs are asked in English and in Arabic, so that the
figures stand side by side. `retrospan run` scores them, `retrospan diagnose` replays every request
whose answer was wrong; both against one running service, whose share of time is printed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if not __package__:
    # Started as a file: the root of the checkout, where `tests` lies, is not searched then.
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.endtoend.command import Retrospan
from tests.endtoend.cost import Cost, cost_of_diagnosis, cost_of_run
from tests.endtoend.serving import Service, serving
from tests.endtoend.xquad import SYSTEMS, write_cases
from tests.endtoend.xquad_rag import Language

LABELS = (
    "RETRIEVAL_MISS",
    "RANKED_OUT",
    "CONTEXT_ASSEMBLY_LOSS",
    "GENERATION_FAILURE",
    "UNRESOLVED",
)

WIDTH = 36
"""Of a language's column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    """One language, from its questions to its labels."""

    run: Mapping[str, Any]
    """What `retrospan run --json` printed."""
    run_cost: Cost
    diagnosis: Mapping[str, Any]
    """What `retrospan diagnose --json` printed."""
    diagnosis_cost: Cost

    @property
    def failed(self) -> int:
        """Questions that were answered wrongly."""
        correct = self.run["metrics"]["answer_correct"]
        return int(correct["n"] - correct["successes"])


def follow_all(store: str, working: Path) -> dict[Language, Followed]:
    """Every question of both languages through one service."""
    with serving(store, working / "serve.log") as service:
        return {language: _follow(service, language, working) for language in SYSTEMS}


def _follow(service: Service, language: Language, working: Path) -> Followed:
    cases = working / f"xquad.{language}.jsonl"
    write_cases(cases, language, None)
    retrospan = Retrospan(store=service.store)
    system = ("--system", SYSTEMS[language])
    run, run_cost = cost_of_run(service, lambda: retrospan.json("run", str(cases), *system))
    diagnosis, diagnosis_cost = cost_of_diagnosis(
        service, lambda: retrospan.json("diagnose", run["run_id"], *system)
    )
    return Followed(run=run, run_cost=run_cost, diagnosis=diagnosis, diagnosis_cost=diagnosis_cost)


def side_by_side(followed: Mapping[Language, Followed]) -> Iterator[str]:
    """The figures, a column a language."""
    columns = list(followed.values())
    yield _row("", *(f"{language:>{WIDTH}}" for language in followed))
    yield _row("questions", *(f"{one.run['cases']:>{WIDTH}}" for one in columns))
    for name in columns[0].run["metrics"]:
        yield _row(name, *(_figure(one.run["metrics"][name]) for one in columns))
    yield _row("failed, all diagnosed", *(f"{one.failed:>{WIDTH}}" for one in columns))
    for label in LABELS:
        counts = [one.diagnosis["labels"].get(label, 0) for one in columns]
        shares = zip(counts, columns, strict=True)
        yield _row(f"  {label}", *(_share(count, one.failed) for count, one in shares))
    recovered = [one.diagnosis["arms"][0] for one in columns]
    yield _row("gold context recovers", *(_share(a["recovered"], a["n"]) for a in recovered))


def _row(name: str, *cells: str) -> str:
    return f"{name:<24}" + "".join(cells)


def _figure(metric: Mapping[str, Any]) -> str:
    limits = f"[{metric['lower']:.3f}, {metric['upper']:.3f}]"
    left_out = f", {metric['excluded']} excluded" if metric["excluded"] else ""
    return f"{metric['estimate']:.3f} {limits}{left_out}".rjust(WIDTH)


def _share(count: int, of: int) -> str:
    return (f"{count} ({count / of:.1%})" if of else f"{count}").rjust(WIDTH)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--store", help="default: an embedded store in a temporary folder")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as working:
        followed = follow_all(options.store or f"embedded:{working}/data", Path(working))
    print(*side_by_side(followed), sep="\n")
    for language, one in followed.items():
        for command, cost in (("run", one.run_cost), ("diagnose", one.diagnosis_cost)):
            print(f"\n{command} in {language}", *cost.lines(), sep="\n  ")


if __name__ == "__main__":
    main()
