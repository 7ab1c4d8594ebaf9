"""Run a benchmark: `python -m tests.benchmarks NAME`, from the root of the checkout."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from rich.console import Console

from tests.benchmarks import assembler, instrumentation, instrumentation_soak, kills, lookups
from tests.benchmarks.measurement import Run
from tests.benchmarks.results import Results

BENCHMARKS: Final[Mapping[str, Run]] = {
    "assembler": assembler.run,
    "instrumentation": instrumentation.run,
    "kills": kills.run,
    "lookups": lookups.run,
    "soak": instrumentation_soak.run,
}


def main() -> None:
    """Measure, print the table and write the figures as JSON."""
    asked = _arguments()
    console = Console()
    if asked.name == "list":
        for name, run in BENCHMARKS.items():
            console.print(f"{name}: {sys.modules[run.__module__].__doc__}")
        return
    say = Console(stderr=True).print
    measured = BENCHMARKS[asked.name](quick=asked.quick, say=lambda line: say(line, markup=False))
    results = Results.now(asked.name, quick=asked.quick, measurements=measured)
    console.print(results.table())
    path = asked.json or Path("build", "benchmarks", f"{results.label}.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(results.json(), encoding="utf-8")
    console.print(f"written to {path}", markup=False)


class _Arguments(argparse.Namespace):
    name: str
    quick: bool
    json: Path | None


def _arguments() -> _Arguments:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=main.__doc__)
    parser.add_argument("name", choices=["list", *BENCHMARKS], help="which; `list` describes all")
    parser.add_argument("--quick", action="store_true", help="small, to see that it works")
    parser.add_argument(
        "--json", type=Path, metavar="PATH", help="default: build/benchmarks/NAME.json"
    )
    return parser.parse_args(namespace=_Arguments())


if __name__ == "__main__":
    main()
