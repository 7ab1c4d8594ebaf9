"""Forty questions of XQuAD, twenty in English and twenty in Arabic, through the whole product.

    uv run python -m tests.endtoend.xquad [--store embedded:DIR] [--questions 20]

Every step is the command a user would type, in a process of its own: `retrospan run` sends the
questions through a decorated system over OTLP and scores them, `retrospan diagnose` replays every
failed one, and for one failed request of each language the ladder and the replay are printed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

if not __package__:
    # Started as a file: the root of the checkout, where `tests` lies, is not searched then.
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.endtoend.command import Retrospan
from tests.endtoend.xquad_rag import Language, Paragraph, paragraphs

SYSTEMS: dict[Language, str] = {"en": "xquad_rag:EnglishRag", "ar": "xquad_rag:ArabicRag"}


def write_cases(path: Path, language: Language, questions: int | None) -> None:
    """One question of each of `questions` paragraphs, spread over the collection; None for all."""
    every = paragraphs(language)
    step = 1 if questions is None else max(1, len(every) // questions)
    with path.open("w", encoding="utf-8") as file:
        for paragraph in every[::step][:questions]:
            asked = paragraph.questions if questions is None else paragraph.questions[:1]
            for case in _cases(language, paragraph, asked):
                file.write(json.dumps(case, ensure_ascii=False) + "\n")


def _cases(
    language: Language, paragraph: Paragraph, asked: tuple[Mapping[str, Any], ...]
) -> Iterator[dict[str, Any]]:
    for question in asked:
        yield {
            "id": question["id"],
            "input": {"question": question["question"]},
            "expected": {
                "answer": question["answers"][0]["text"],
                "relevant": [{"document_id": paragraph.id}],
                "gold_context": [{"document_id": paragraph.id, "text": paragraph.text}],
            },
            "metadata": {"language": language},
        }


def print_metrics(run: dict[str, Any]) -> None:
    for name, metric in run["metrics"].items():
        print(
            f"  {name:<16} {metric['estimate']:.3f}"
            f"  [{metric['lower']:.3f}, {metric['upper']:.3f}]  n {metric['n']}"
            f"  excluded {metric['excluded']}  failed {metric['failed']}"
        )


def follow(retrospan: Retrospan, language: Language, folder: Path, questions: int) -> str:
    """Run, diagnose, and show one failed request; returns the label that request was given."""
    cases = folder / f"xquad.{language}.jsonl"
    write_cases(cases, language, questions)
    started = time.monotonic()
    run = retrospan.json("run", str(cases), "--system", SYSTEMS[language])
    print(f"\n== {language}: run {run['run_id']}, {run['cases']} questions", end=" ")
    print(f"in {time.monotonic() - started:.1f} s, start-up included")
    print_metrics(run)
    system = ("--system", SYSTEMS[language])
    diagnosis = retrospan.json("diagnose", run["run_id"], *system)
    print(f"  {diagnosis['selected']} failed; labels {diagnosis['labels']}")
    worst = max(diagnosis["cases"], key=lambda case: case["label"] != "UNRESOLVED")
    print(retrospan.text("trace", worst["trace_id"]))
    print(retrospan.text("replay", worst["trace_id"], *system, "--token-budget", "none"))
    return str(worst["label"])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--store", help="default: an embedded store in a temporary folder")
    parser.add_argument("--questions", type=int, default=20, help="of each language")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        retrospan = Retrospan(store=options.store or f"embedded:{folder}/data")
        for language in SYSTEMS:
            label = follow(retrospan, language, Path(folder), options.questions)
            print(f"== {language}: the request shown was labelled {label}")


if __name__ == "__main__":
    main()
