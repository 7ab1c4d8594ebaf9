"""`retrospan demo`: from nothing to a finding, in a store of its own."""

from __future__ import annotations

import json
import time

from dirty_equals import IsPartialDict
from typer.testing import CliRunner

from retrospan_evaluator.cli.app import app


def test_the_demo_tells_the_whole_story_with_the_figures_it_measured(store_url: str) -> None:
    result = CliRunner().invoke(app, ["demo", "--store", store_url])
    assert result.exit_code == 0, result.stderr
    page = " ".join(result.stdout.split())
    for said in (
        "What you are looking at",
        "9 of 13 answers are right",
        "control 0 of 4 pass with nothing changed",
        "gold-context recovers 3 of 4",
        "RETRIEVAL_MISS 1",
        "CONTEXT_ASSEMBLY_LOSS 2",
        "GENERATION_FAILURE 1",
        "The context budget is implicated in 2 of the 3",
        "top-k 4 recovers 0 of 4",
        "token budget 120 recovers 0 of 4",
        "In 2 of them the dropped page is back in the prompt",
        "The larger budget is not the fix here",
        "What to type next",
        f"--store {store_url}",
    ):
        assert said in page


def test_without_a_store_the_demo_starts_its_own_and_leaves_nothing_behind() -> None:
    started = time.monotonic()
    result = CliRunner().invoke(app, ["demo", "--json"])
    assert result.exit_code == 0, result.stderr
    assert time.monotonic() - started < 60
    found = json.loads(result.stdout)
    assert found["run"]["metrics"]["answer_correct"] == IsPartialDict(successes=9, n=13)
    assert found["diagnosis"] == IsPartialDict(selected=4, control={"passed": 0, "n": 4})
    assert found["context_budget_implicated"] == 2
