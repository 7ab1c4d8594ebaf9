"""Forty questions of XQuAD, twenty in English and twenty in Arabic, through the whole product.

    uv run python tests/endtoend/xquad.py [--store embedded:DIR] [--questions 20]

Every step is the command a user would type, in a process of its own: `retrospan run` sends the
questions through a decorated system over OTLP and scores them, `retrospan diagnose` replays every
failed one, and for one failed request of each language the ladder and the replay are printed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xquad_rag import Language, paragraphs

HERE = Path(__file__).resolve().parent
SYSTEMS: dict[Language, str] = {"en": "xquad_rag:EnglishRag", "ar": "xquad_rag:ArabicRag"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrospan:
    """The command, against one store."""

    store: str

    def text(self, *arguments: str) -> str:
        """What the command prints; a failure of the command is a failure of the script."""
        environment = os.environ | {"PYTHONPATH": str(HERE), "RETROSPAN_STORE": self.store}
        command = [str(Path(sys.executable).with_name("retrospan")), *arguments]
        done = subprocess.run(
            command, env=environment, cwd=HERE, capture_output=True, text=True, timeout=600
        )
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(arguments)}: exit {done.returncode}\n{done.stderr}")
        return done.stdout

    def json(self, *arguments: str) -> Any:
        return json.loads(self.text(*arguments, "--json"))


def write_cases(path: Path, language: Language, questions: int) -> None:
    """One question of each of `questions` paragraphs, spread over the collection."""
    every = paragraphs(language)
    chosen = every[:: max(1, len(every) // questions)][:questions]
    with path.open("w", encoding="utf-8") as file:
        for paragraph in chosen:
            asked = paragraph.questions[0]
            case = {
                "id": asked["id"],
                "input": {"question": asked["question"]},
                "expected": {
                    "answer": asked["answers"][0]["text"],
                    "relevant": [{"document_id": paragraph.id}],
                    "gold_context": [{"document_id": paragraph.id, "text": paragraph.text}],
                },
                "metadata": {"language": language},
            }
            file.write(json.dumps(case, ensure_ascii=False) + "\n")


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
