"""`retrospan run`: cases through a system, stored, scored, and shown."""

from __future__ import annotations

import json
from pathlib import Path
from textwrap import dedent

import pytest
from dirty_equals import IsFloat, IsPartialDict, IsStr
from typer.testing import CliRunner

from retrospan_collector.clickhouse.connection import Store
from retrospan_evaluator.cli.app import app
from retrospan_evaluator.demo import SYSTEM, demo_dataset
from retrospan_evaluator.replay.recorded_run import RunReader

MOODY = """
    from retrospan import Passage, Retrieval, rag_system

    @rag_system(name="moody", version="1", depth=2, top_k=1, index_version="none")
    class Moody:
        def retrieve(self, input, depth):
            if "retrieve" in input:
                raise ConnectionError("the index is away")
            return Retrieval(input, [Passage("p1", "one", 2.0), Passage("p2", "two", 1.0)])

        def generate(self, input, context):
            if "generate" in input:
                raise TimeoutError("the model is away")
            return context[0].text
"""


@pytest.fixture
def run_command(store_url: str) -> CliRunner:
    return CliRunner(env={"RETROSPAN_STORE": store_url})


def cases_of(tmp_path: Path, *cases: object) -> str:
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(json.dumps(case) for case in cases), "utf-8")
    return str(path)


def test_the_example_s_figures_come_with_the_intervals_they_are_known_to_have(
    run_command: CliRunner, store: Store
) -> None:
    path = str(demo_dataset().path)
    result = run_command.invoke(app, ["run", path, "--system", SYSTEM, "--json"])
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    assert report == IsPartialDict(
        run_id=IsStr(regex=r"run-[0-9-]+[0-9a-f]{8}"), cases=13, errors=0, version=1
    )
    metrics = report["metrics"]
    assert list(metrics) == [
        "answer_correct",
        "hit_rate_at_2",
        "recall_at_2",
        "mrr",
        "ndcg_at_6",
        "citations_valid",
    ]
    assert metrics["answer_correct"] == IsPartialDict(
        estimate=9 / 13,
        lower=IsFloat(gt=0.3857, lt=0.3858),
        upper=IsFloat(gt=0.9090, lt=0.9092),
        n=13,
        successes=9,
        excluded=0,
        failed=0,
    )
    assert metrics["hit_rate_at_2"] == IsPartialDict(successes=12, n=13)
    assert metrics["citations_valid"] == IsPartialDict(successes=13, n=13)
    assert metrics["recall_at_2"] == IsPartialDict(estimate=12 / 13, successes=None, n=13)
    registered = RunReader(store).run(report["run_id"])
    assert {row.kind for row in registered} == {"run"}
    assert len({row.trace_id for row in registered}) == 13
    stored = RunReader(store).results(report["run_id"], "answer_correct")
    assert {score.trace_id for score in stored} == {row.trace_id for row in registered}


def test_a_run_under_other_settings_is_scored_at_them_and_remembers_them(
    run_command: CliRunner, store: Store
) -> None:
    arguments = ["run", str(demo_dataset().path), "--system", SYSTEM, "--json"]
    changes = ["--set", "top_k=4", "--set", "token_budget=none"]
    report = json.loads(run_command.invoke(app, [*arguments, *changes]).stdout)
    assert "hit_rate_at_4" in report["metrics"]
    (settings,) = {row.settings for row in RunReader(store).run(report["run_id"])}
    assert json.loads(settings) == {"top_k": 4, "token_budget": None}


def test_what_could_not_be_measured_is_counted_apart_and_never_as_wrong(
    run_command: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "moody_run.py").write_text(dedent(MOODY))
    monkeypatch.chdir(tmp_path)
    relevant = [{"doc_id": "p1"}]
    path = cases_of(
        tmp_path,
        {"id": "fine", "input": "x", "expected": {"answer": "one", "relevant": relevant}},
        {"id": "wrong", "input": "x", "expected": {"answer": "six", "relevant": relevant}},
        {"id": "index", "input": "retrieve", "expected": {"answer": "a", "relevant": relevant}},
        {"id": "model", "input": "generate", "expected": {"answer": "a", "relevant": relevant}},
        {"id": "no answer known", "input": "x", "expected": {"relevant": relevant}},
    )
    arguments = ["run", path, "--system", "moody_run:Moody"]
    result = run_command.invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["errors"] == 2
    metrics = report["metrics"]
    assert metrics["answer_correct"] == IsPartialDict(successes=1, n=2, excluded=1, failed=2)
    assert metrics["hit_rate_at_1"] == IsPartialDict(successes=4, n=4, excluded=0, failed=1)
    assert "citations_valid" not in metrics
    page = run_command.invoke(app, arguments).stdout
    assert "1 of 2 measured, 1 excluded, 2 of 4 failed" in page
    assert "2 of 5 cases gave no answer" in page


def test_the_page_names_what_failed_and_what_to_type_next(run_command: CliRunner) -> None:
    path = str(demo_dataset().path)
    result = run_command.invoke(app, ["run", path, "--system", SYSTEM])
    assert result.exit_code == 0, result.stderr
    assert "9 of 13" in result.stdout
    assert "[38.5 %, 91.0 %]" in result.stdout
    assert "4 cases failed answer_correct" in result.stdout
    assert f"retrospan diagnose run-{result.stdout.split('run-')[1].split()[0]}" in result.stdout
    assert f"importing {SYSTEM}" in result.stderr


def test_wrong_usage_is_one_sentence_and_exit_2_before_anything_is_started(
    tmp_path: Path,
) -> None:
    runner = CliRunner(env={"RETROSPAN_STORE": f"embedded:{tmp_path / 'never'}"})
    good = str(demo_dataset().path)
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"id": "a", "input": "x"}\n{"id": "b"}\n')
    for arguments, says in (
        ([good, "--system", "nowhere:Nothing"], "there is no module 'nowhere'"),
        ([good, "--system", SYSTEM, "--set", "model=big"], "--set expects one of"),
        ([str(bad), "--system", SYSTEM], f"{bad}, line 2, field input: it is missing"),
        ([str(tmp_path / "none.jsonl"), "--system", SYSTEM], "cannot be read"),
    ):
        result = runner.invoke(app, ["run", *arguments])
        assert result.exit_code == 2
        assert says in result.stderr
        assert "Traceback" not in result.stderr
    assert not (tmp_path / "never").exists()


def test_a_clickhouse_that_is_down_is_one_sentence_and_exit_1() -> None:
    arguments = ["run", str(demo_dataset().path), "--system", SYSTEM]
    result = CliRunner().invoke(app, [*arguments, "--store", "clickhouse://127.0.0.1:1/x"])
    assert result.exit_code == 1
    importing, refused = result.stderr.splitlines()
    assert "nothing answers there: start it, or correct --store" in refused
