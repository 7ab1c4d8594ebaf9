"""What using a store brings into a process."""

from __future__ import annotations

import subprocess
import sys

_INSERTS = """
import sys
from datetime import UTC, datetime
from retrospan_collector.clickhouse.connection import open_store
from retrospan_collector.clickhouse.evaluation_rows import CaseRow

with open_store(sys.argv[1]) as store:
    case = CaseRow(dataset_version="1", case_id="a", content="{}", created_at=datetime.now(UTC))
    store.insert("cases", [case])
    assert [row["CaseId"] for row in store.query("SELECT CaseId FROM cases")] == ["a"]
print("pandas" in sys.modules)

from clickhouse_connect.driver import options
print(options.pd.__name__)
"""


def test_an_insert_does_not_import_pandas_and_leaves_it_to_be_found(store_url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _INSERTS, store_url], capture_output=True, text=True, timeout=60
    )
    assert done.stdout.split() == ["False", "pandas"], done.stderr
