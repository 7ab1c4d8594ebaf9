"""`retrospan diagnose`: every failed case of a run, replayed and counted."""

from __future__ import annotations

import json
from datetime import datetime

import pytest
from dirty_equals import IsPartialDict, IsStr
from typer.testing import CliRunner

from retrospan_collector.clickhouse.connection import Store
from retrospan_evaluator.cli.app import app
from retrospan_evaluator.demo import SYSTEM, demo_dataset
from retrospan_evaluator.identifiers import Identifiers
from retrospan_evaluator.runs import run_dataset
from retrospan_evaluator.systems import load_system


@pytest.fixture(scope="module")
def run_id(store: Store, otlp_grpc: str, identifiers: Identifiers) -> str:
    """A run of the example."""
    report = run_dataset(
        demo_dataset(),
        load_system(SYSTEM),
        store,
        otlp_grpc,
        identifiers=identifiers,
        now=datetime.now().astimezone(),
    )
    return report.run_id


@pytest.fixture
def command(store_url: str) -> CliRunner:
    return CliRunner(env={"RETROSPAN_STORE": store_url})


def test_the_example_s_failures_are_labelled_and_the_larger_settings_recover_none(
    command: CliRunner, run_id: str, store: Store
) -> None:
    arguments = ["diagnose", run_id, "--system", SYSTEM, "--json"]
    larger = ["--top-k", "4", "--token-budget", "120"]
    result = command.invoke(app, [*arguments, *larger])
    assert result.exit_code == 0, result.stderr
    diagnosis = json.loads(result.stdout)
    assert diagnosis == IsPartialDict(
        diagnosis_id=IsStr(regex=r"diagnosis-[0-9-]+[0-9a-f]{8}"),
        run_id=run_id,
        criterion="answer_correct",
        selected=4,
        not_measured=0,
        control={"passed": 0, "n": 4},
        arms=[
            {"intervention": "gold-context", "recovered": 3, "n": 4},
            {"intervention": "top-k 4", "recovered": 0, "n": 4},
            {"intervention": "token-budget 120", "recovered": 0, "n": 4},
        ],
        labels={"CONTEXT_ASSEMBLY_LOSS": 2, "RETRIEVAL_MISS": 1, "GENERATION_FAILURE": 1},
    )
    assert len(diagnosis["cases"]) == 4
    lost = [case for case in diagnosis["cases"] if case["label"] == "CONTEXT_ASSEMBLY_LOSS"]
    for case in lost:
        assert case == IsPartialDict(
            reason="relevant_dropped",
            strength="intervention_recovery",
            best_relevant_position=2,
            implicated=["context_budget"],
        )
    stored = store.query(
        "SELECT CaseId, Label FROM diagnoses FINAL WHERE DiagnosisId = {id:String}",
        {"id": diagnosis["diagnosis_id"]},
    )
    assert {(row["CaseId"], row["Label"]) for row in stored} == {
        (case["case_id"], case["label"]) for case in diagnosis["cases"]
    }


def test_the_page_counts_the_labels_and_says_what_each_means(
    command: CliRunner, run_id: str
) -> None:
    page = command.invoke(app, ["diagnose", run_id, "--system", SYSTEM]).stdout
    assert "4 cases failed answer_correct" in page
    assert "gold-context            recovers 3 of 4" in page
    assert "RETRIEVAL_MISS          1   no passage with the answer was retrieved" in page
    assert page.count("retrospan replay ") == 4


def test_a_criterion_nobody_failed_selects_nothing(command: CliRunner, run_id: str) -> None:
    arguments = ["diagnose", run_id, "--system", SYSTEM, "--criterion", "citations_valid", "--json"]
    diagnosis = json.loads(command.invoke(app, arguments).stdout)
    assert diagnosis == IsPartialDict(selected=0, cases=[], arms=[], labels={})
    assert diagnosis["control"] == {"passed": 0, "n": 0}


def test_what_cannot_be_diagnosed_is_refused_by_name(command: CliRunner, run_id: str) -> None:
    for run, criterion, code, says in (
        ("run-nowhere", "answer_correct", 1, "there is no run 'run-nowhere'"),
        (run_id, "faithfulness", 2, "was not scored by it: take one of answer_correct"),
        (run_id, "hit_rate_at_2", 2, "repeats only assembly and generation"),
    ):
        result = command.invoke(
            app, ["diagnose", run, "--system", SYSTEM, "--criterion", criterion]
        )
        assert result.exit_code == code
        assert says in result.stderr
