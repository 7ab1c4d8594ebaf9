"""`retrospan replay`: the command, its JSON, its page, its refusals."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from textwrap import dedent

import pytest
from dirty_equals import IsList, IsPartialDict, IsStr
from typer.testing import CliRunner

from retrospan_collector.clickhouse.connection import Store
from retrospan_evaluator.cli.app import app
from retrospan_evaluator.demo import SYSTEM, demo_dataset
from retrospan_evaluator.identifiers import Identifiers
from retrospan_evaluator.runs import RunReport, run_dataset
from retrospan_evaluator.systems import load_system

WITHOUT_INDEX = """
    from retrospan import rag_system
    from retrospan_evaluator.examples.support_rag.system import SupportRag

    @rag_system(name="support_rag", version="1", depth=6, top_k=2, token_budget=40,
                index_version="help-pages-1", prompt_version="one-sentence-1",
                deterministic=True)
    class Offline:
        count_tokens = SupportRag.count_tokens
        generate = SupportRag.generate

        def retrieve(self, input, depth):
            raise ConnectionError("the index is out of reach")
"""


@pytest.fixture(scope="module")
def run(store: Store, otlp_grpc: str, identifiers: Identifiers) -> RunReport:
    """A run of the example."""
    return run_dataset(
        demo_dataset(),
        load_system(SYSTEM),
        store,
        otlp_grpc,
        identifiers=identifiers,
        now=datetime.now().astimezone(),
    )


@pytest.fixture
def dropped(run: RunReport) -> str:
    """The trace of a case whose relevant passage the budget dropped."""
    for result in run.results:
        score = result.score("answer_correct")
        gold = {entry.document_id for entry in result.case.relevant}
        reasons = {p.dropped_reason for p in result.request.passages if p.document_id in gold}
        if score is not None and score.passed is False and reasons == {"budget"}:
            return result.request.trace_id
    raise AssertionError("the example has no such case")


@pytest.fixture
def command(store_url: str) -> CliRunner:
    return CliRunner(env={"RETROSPAN_STORE": store_url})


def test_a_run_s_trace_finds_criterion_and_gold_by_itself(
    command: CliRunner, dropped: str, store: Store
) -> None:
    arguments = ["replay", dropped, "--system", SYSTEM, "--top-k", "4", "--json"]
    result = command.invoke(app, arguments)
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    assert report == IsPartialDict(
        trace_id=dropped,
        label="CONTEXT_ASSEMBLY_LOSS",
        reason="relevant_dropped",
        strength="intervention_recovery",
        best_relevant_position=2,
        implicated=["context_budget"],
        criterion="answer_correct",
    )
    assert report["control"] == IsPartialDict(passed=0, n=1, answers=IsList(IsStr))
    gold, top_k = report["arms"]
    assert gold == IsPartialDict(
        intervention="gold-context", passed=1, n=1, recovered=True, dropped=[]
    )
    assert top_k == IsPartialDict(intervention="top-k 4", passed=0, n=1, recovered=False)
    assert {(d["position"], d["reason"]) for d in top_k["dropped"]} >= {(2, "budget")}
    (experiment,) = report["candidate_experiments"]
    budget = int(experiment["command"].split()[-1])
    assert experiment["text"].startswith(f"A token budget of {budget} is the smallest")
    assert experiment["command"] == (
        f"retrospan replay {dropped} --system {SYSTEM} --token-budget {budget}"
    )
    (row,) = store.query(
        "SELECT Label, CaseId FROM diagnoses FINAL WHERE DiagnosisId = {id:String}",
        {"id": report["replay_id"]},
    )
    assert row["Label"] == "CONTEXT_ASSEMBLY_LOSS"


def test_the_candidate_experiment_puts_the_passage_back(command: CliRunner, dropped: str) -> None:
    first = command.invoke(app, ["replay", dropped, "--system", SYSTEM, "--json"])
    (experiment,) = json.loads(first.stdout)["candidate_experiments"]
    arguments = experiment["command"].split()[1:]
    again = json.loads(command.invoke(app, [*arguments, "--json"]).stdout)
    control, restored = again["control"], again["arms"][1]
    assert len(restored["prompt"]) == len(control["prompt"]) + 1
    assert again["candidate_experiments"] == []


def test_it_works_from_a_second_terminal_with_a_retriever_that_raises(
    dropped: str, store_url: str, tmp_path: Path
) -> None:
    (tmp_path / "offline.py").write_text(dedent(WITHOUT_INDEX))
    arguments = ["replay", dropped, "--system", "offline:Offline", "--json"]
    done = subprocess.run(
        [Path(sys.executable).with_name("retrospan"), *arguments],
        env=os.environ | {"RETROSPAN_STORE": store_url},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["label"] == "CONTEXT_ASSEMBLY_LOSS"


def test_what_was_typed_wins_over_the_case_and_returns_in_the_next_command(
    command: CliRunner, run: RunReport
) -> None:
    fine = next(r for r in run.results if (s := r.score("answer_correct")) and s.passed)
    shown = fine.request.prompt[0].id
    typed = ["--expect", "something else entirely", "--gold", shown]
    arguments = ["replay", fine.request.trace_id, "--system", SYSTEM, *typed, "--json"]
    report = json.loads(command.invoke(app, arguments).stdout)
    assert report["label"] == "GENERATION_FAILURE"
    assert report["candidate_experiments"][0]["command"].endswith(
        f"--expect 'something else entirely' --gold {shown}"
    )


def test_gold_without_a_text_asks_for_the_file_that_holds_it(
    command: CliRunner, dropped: str
) -> None:
    arguments = ["replay", dropped, "--system", SYSTEM, "--gold", "kb-99"]
    report = json.loads(command.invoke(app, [*arguments, "--json"]).stdout)
    assert report == IsPartialDict(label="UNRESOLVED", reason="evidence_missing", strength=None)
    assert report["control"] == IsPartialDict(passed=0, n=1)
    assert report["candidate_experiments"][0]["command"].endswith(
        "--gold kb-99 --gold-passage ID=FILE"
    )
    page = command.invoke(app, arguments).stdout
    assert "cannot be answered: the text of kb-99 is not stored" in " ".join(page.split())


def test_the_page_shows_the_label_every_arm_and_what_to_try(
    command: CliRunner, dropped: str
) -> None:
    result = command.invoke(app, ["replay", dropped, "--system", SYSTEM, "--token-budget", "120"])
    assert result.exit_code == 0, result.stderr
    page = result.stdout
    assert "CONTEXT_ASSEMBLY_LOSS" in page
    assert "implicates context budget" in " ".join(page.split())
    for arm in ("control", "gold-context", "token-budget 120"):
        assert arm in page
    assert "that setting alone is not the" in page
    assert f"importing {SYSTEM}" in result.stderr


def test_refusals_name_the_thing_and_what_to_do(
    command: CliRunner, dropped: str, tmp_path: Path
) -> None:
    never = f"embedded:{tmp_path / 'never'}"
    for arguments, code, says in (
        (["0" * 31 + "1", "--system", SYSTEM], 1, "0" * 31 + "1"),
        ([dropped, "--system", "nowhere:X"], 2, "there is no module 'nowhere'"),
        ([dropped, "--system", SYSTEM, "--repeats", "3"], 2, "--repeats expects at least 5"),
        ([dropped, "--system", SYSTEM, "--token-budget", "big"], 2, "--token-budget expects"),
        ([dropped, "--system", SYSTEM, "--gold-passage", "a=nowhere"], 2, "cannot be read"),
        ([dropped, "--system", SYSTEM, "--store", never], 1, "nothing is recorded at"),
    ):
        result = command.invoke(app, ["replay", *arguments])
        assert result.exit_code == code
        assert says in result.stderr
        assert "Traceback" not in result.stderr
    assert not (tmp_path / "never").exists()
