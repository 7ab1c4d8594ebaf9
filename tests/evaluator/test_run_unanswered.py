"""Cases that gave no answer: never right or wrong, each kind of reason named, and how to go on."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from dirty_equals import IsPartialDict, IsStr
from typer.testing import CliRunner

from retrospan_evaluator.cli.app import app

SYSTEMS = """
    from retrospan import Passage, Retrieval, rag_system

    ABOUT = dict(version="1", depth=2, top_k=2, index_version="none", deterministic=True)

    class Pages:
        def retrieve(self, input, depth):
            if "index" in input:
                raise ConnectionError("the index is down")
            return Retrieval(input, [Passage("p1", "one", 2.0), Passage("p2", "two", 1.0)])

        def generate(self, input, context):
            if "model" in input:
                raise TimeoutError(f"the model gave up on {input!r}")
            return {"answer": "14 days"}

    @rag_system(name="pages", **ABOUT)
    class Found(Pages):
        pass

    @rag_system(name="pages", answer_path="text.out", **ABOUT)
    class Misplaced(Pages):
        pass

    @rag_system(name="pages", **ABOUT)
    class Mistaken(Pages):
        def generate(self, input, context):
            return {"answer": "30 days"}

    @rag_system(name="counting", **ABOUT)
    class Counting(Pages):
        def count_tokens(self, passage):
            return 1
"""


@pytest.fixture(autouse=True)
def systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "unanswered_systems.py").write_text(dedent(SYSTEMS))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def command(store_url: str) -> CliRunner:
    return CliRunner(env={"RETROSPAN_STORE": store_url, "COLUMNS": "100"})


def cases_of(tmp_path: Path, *inputs: str) -> str:
    path = tmp_path / "cases.jsonl"
    cases = [
        {"id": f"c{n}", "input": i, "expected": {"answer": "14"}} for n, i in enumerate(inputs)
    ]
    path.write_text("\n".join(json.dumps(case) for case in cases), "utf-8")
    return str(path)


def document(command: CliRunner, *arguments: str) -> Any:
    result = command.invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_an_answer_that_is_not_where_the_system_says_is_not_measured_and_the_path_is_named(
    command: CliRunner, tmp_path: Path
) -> None:
    arguments = ["run", cases_of(tmp_path, "q"), "--system", "unanswered_systems:Misplaced"]
    report = document(command, *arguments)
    assert report["metrics"]["answer_correct"] == IsPartialDict(
        estimate=None, n=0, failed=1, successes=0
    )
    assert report["errors"] == 0
    (why,) = report["unanswered"]
    assert why == IsPartialDict(kind="answer_not_found", cases=1, case_id="c0")
    page = " ".join(command.invoke(app, arguments).stdout.split())
    assert "1 case of" in page
    assert "not measured, 1 of 1 failed" in page
    assert "1 of 1 case gave no answer" in page
    assert "no answer at answer_path 'text.out' (its keys: 'answer'): set answer_path" in page
    assert "failed answer_correct" not in page

    diagnosis = document(
        command, "diagnose", report["run_id"], "--system", "unanswered_systems:Misplaced"
    )
    assert diagnosis == IsPartialDict(selected=0, not_measured=1)
    (reason,) = diagnosis["why_not_measured"]
    assert "answer_path 'text.out'" in reason


def test_a_replay_that_finds_no_answer_blames_nobody_and_names_the_path(
    command: CliRunner, tmp_path: Path
) -> None:
    run = document(
        command, "run", cases_of(tmp_path, "q"), "--system", "unanswered_systems:Misplaced"
    )
    trace_id = run["unanswered"][0]["trace_id"]
    typed = ["--expect", "14 days", "--gold", "p1"]
    arguments = ["replay", trace_id, "--system", "unanswered_systems:Misplaced", *typed]
    report = document(command, *arguments)
    assert report == IsPartialDict(
        label="UNRESOLVED", reason="evidence_missing", candidate_experiments=[], notes=[]
    )
    assert report["control"] == IsPartialDict(
        passed=0, n=0, errors=[], answer_missing=IsStr(regex=".*'text.out'.*")
    )
    page = " ".join(command.invoke(app, arguments).stdout.split())
    assert "control no answer in 5 runs, so it is not measured" in page
    assert "0 of 0" not in page

    found = document(
        command, "replay", trace_id, "--system", "unanswered_systems:Found", *typed[:2]
    )
    assert found["control"] == IsPartialDict(answer_missing=None)
    assert set(found["control"]["answers"]) == {"14 days"}


def test_each_kind_of_exception_is_named_in_full_and_the_headline_says_how_many_are_missing(
    command: CliRunner, tmp_path: Path
) -> None:
    path = cases_of(tmp_path, "a", "b", "model " + 200 * "long ", "index", "model c")
    arguments = ["run", path, "--system", "unanswered_systems:Found"]
    report = document(command, *arguments)
    assert report["errors"] == 3
    assert report["metrics"]["answer_correct"] == IsPartialDict(
        estimate=1.0, n=2, successes=2, failed=3, worst=0.4, best=1.0
    )
    assert [(why["kind"], why["cases"], why["case_id"]) for why in report["unanswered"]] == [
        ("TimeoutError", 2, "c2"),
        ("ConnectionError", 1, "c3"),
    ]
    printed = command.invoke(app, arguments).stdout
    assert all(len(line) <= 100 for line in printed.splitlines())
    page = " ".join(printed.split())
    assert "2 of 2 measured, 3 of 5 failed" in page
    assert "between 40.0 % and 100.0 % of all 5: 3 not measured" in page
    assert "3 of 5 cases gave no answer" in page
    assert "2 cases raised TimeoutError: the model gave up on 'model long" in page
    assert page.count("long") == 200
    assert "(and 1 other message of this kind) for instance c2, trace " in page
    assert "1 case raised ConnectionError: the index is down for instance c3, trace " in page


def test_a_budget_that_nothing_can_be_counted_for_is_refused_before_anything_is_started(
    command: CliRunner, tmp_path: Path
) -> None:
    never = tmp_path / "never"
    budget = ["--set", "token_budget=5"]
    arguments = ["run", cases_of(tmp_path, "q"), *budget]
    refused = command.invoke(
        app, [*arguments, "--system", "unanswered_systems:Found", "--store", f"embedded:{never}"]
    )
    assert refused.exit_code == 2
    assert refused.stderr.splitlines()[-1] == (
        "retrospan: a token budget of 5 needs token counts, and neither the system 'pages' nor the "
        "passage at position 1 (id 'p1') has one: set Passage.tokens, give the system a "
        "count_tokens method, or run with --set token_budget=none"
    )
    assert not never.exists()
    counting = document(command, *arguments, "--system", "unanswered_systems:Counting")
    assert counting["metrics"]["answer_correct"] == IsPartialDict(n=1, failed=0)


def test_a_failure_that_does_not_come_back_is_said_to_be_so_and_blames_no_stage(
    command: CliRunner, tmp_path: Path
) -> None:
    wrong = ["--system", "unanswered_systems:Mistaken"]
    run_id = document(command, "run", cases_of(tmp_path, "q"), *wrong)["run_id"]
    arguments = ["diagnose", run_id, "--system", "unanswered_systems:Found"]
    page = " ".join(command.invoke(app, arguments).stdout.split())
    assert "1 case failed answer_correct" in page
    assert "control 1 of 1 pass with nothing changed" in page
    assert "gold-context could not be compared in any case" in page
    assert "with nothing changed it is right now: the failure does not come back" in page


def test_a_retrieval_that_fails_is_for_the_run_to_tell_and_not_for_the_budget(
    command: CliRunner, tmp_path: Path
) -> None:
    arguments = ["run", cases_of(tmp_path, "index"), "--set", "token_budget=5"]
    report = document(command, *arguments, "--system", "unanswered_systems:Found")
    assert [why["kind"] for why in report["unanswered"]] == ["ConnectionError"]
