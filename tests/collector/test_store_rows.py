"""Row dataclasses and the tables they are inserted into."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import UTC, datetime

import pytest

from retrospan_collector.clickhouse.connection import Store
from retrospan_collector.clickhouse.evaluation_rows import (
    CaseRow,
    DiagnosisRow,
    ReplayRow,
    RunRow,
    ScoreRow,
)
from retrospan_collector.clickhouse.rows import column_name, columns, from_row, to_row
from retrospan_collector.clickhouse.sample_key import sample_key

AT = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
TRACE = "0af7651916cd43dd8448eb211c80319c"

RUN = RunRow(
    run_id="r-1",
    case_id="refund_annual",
    repeat=0,
    trace_id=TRACE,
    sample_key=sample_key(TRACE),
    kind="run",
    system="support_rag",
    dataset_version="ab" * 32,
    created_at=AT,
)
CASE = CaseRow(
    dataset_version="ab" * 32, case_id="refund_annual", content='{"id":1}', created_at=AT
)
SCORE = ScoreRow(
    service_name="support",
    timestamp=AT,
    sample_key=sample_key(TRACE),
    trace_id=TRACE,
    root_span_id="b7ad6b7169203331",
    name="recall_at_2",
    value=0.5,
    scored_at=AT,
)
REPLAY = ReplayRow(
    replay_id="p-1",
    original_service_name="support",
    original_timestamp=AT,
    original_sample_key=sample_key(TRACE),
    original_trace_id=TRACE,
    original_root_span_id="b7ad6b7169203331",
    arm="top-k 4",
    repeat=2,
    run_id="replay:p-1",
    trace_id=TRACE,
    sample_key=sample_key(TRACE),
    passed=None,
    created_at=AT,
)
DIAGNOSIS = DiagnosisRow(
    diagnosis_id="d-1",
    service_name="support",
    timestamp=AT,
    sample_key=sample_key(TRACE),
    trace_id=TRACE,
    root_span_id="b7ad6b7169203331",
    replay_id="p-1",
    label="CONTEXT_ASSEMBLY_LOSS",
    best_relevant_position=2,
    implicated=("context_budget",),
    created_at=AT,
)
TABLES = [
    pytest.param(table, row, id=table)
    for table, row in {
        "runs": RUN,
        "cases": CASE,
        "scores": SCORE,
        "replays": REPLAY,
        "diagnoses": DIAGNOSIS,
    }.items()
]

EvaluationRow = RunRow | CaseRow | ScoreRow | ReplayRow | DiagnosisRow


@pytest.mark.parametrize(("table", "row"), TABLES)
def test_a_row_type_names_exactly_the_columns_of_its_table(
    store: Store, table: str, row: EvaluationRow
) -> None:
    described = [column["name"] for column in store.query(f"DESCRIBE TABLE {table}")]
    assert described == list(columns(type(row)))


@pytest.mark.parametrize(("table", "row"), TABLES)
def test_a_row_comes_back_from_the_store_as_it_was_inserted(
    store: Store, table: str, row: EvaluationRow
) -> None:
    store.insert(table, [row])
    [stored] = store.query(f"SELECT * FROM {table}")
    assert from_row(type(row), stored) == row


def test_a_missing_value_is_not_stored_as_zero(store: Store) -> None:
    store.insert("scores", [replace(SCORE, value=None, failure="timeout")])
    [stored] = store.query("SELECT * FROM scores")
    assert stored["Value"] is None


def test_a_score_written_again_replaces_the_first(store: Store) -> None:
    store.insert("scores", [SCORE])
    store.insert("scores", [replace(SCORE, value=1.0, scored_at=AT.replace(hour=13))])
    assert store.query("SELECT Value FROM scores FINAL") == [{"Value": 1.0}]


def test_a_field_becomes_a_column_by_one_rule() -> None:
    assert column_name("prompt_position") == "PromptPosition"
    assert column_name("cost_usd") == "CostUsd"
    assert len(to_row(RUN)) == len(fields(RunRow))


def test_no_rows_are_nothing_to_insert(store: Store) -> None:
    store.insert("runs", [])
    assert store.query("SELECT count() AS n FROM runs") == [{"n": 0}]
