"""The insert of one spool segment: export requests in, rows out, all inside the engine."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from importlib import resources

from retrospan_collector.clickhouse.connection import Store

_TABLES = {"traces": "otlp_traces"}
_MESSAGES = {"traces": "ExportTraceServiceRequest"}

INSERTABLE_KINDS = frozenset(_TABLES)
"""The kinds of segment there is an insert for."""


class SegmentInsert:
    """Inserts segments into one store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._once: dict[str, object] | None = None

    def insert(self, kind: str, token: str, body: bytes) -> None:
        """Insert a segment's bytes once, however often it is called with the same token."""
        if self._once is None:
            known = self._store.query(
                "SELECT name FROM system.settings WHERE name LIKE '%deduplicat%'"
            )
            self._once = deduplication({row["name"] for row in known})
        settings = {**_decoding(kind), **self._once, "insert_deduplication_token": token}
        self._store.insert_bytes(_TABLES[kind], body, "Protobuf", settings)


def deduplication(known: Collection[str]) -> dict[str, object]:
    """Recognising a repeated insert, in the words of an engine that knows these settings."""
    switch: dict[str, object] = (
        {"deduplicate_insert": "enable"}
        if "deduplicate_insert" in known
        else {"insert_deduplicate": 1}
    )
    return {**switch, "deduplicate_blocks_in_dependent_materialized_views": 1}


def _decoding(kind: str) -> dict[str, object]:
    """How a segment is decoded and cut into blocks.

    A repeated insert is recognised by its token and the number of each block it is cut into, so
    everything that decides where a block ends is pinned: other cuts would double rows.
    """
    return {
        "format_schema_source": "string",
        "format_schema": _schema(kind),
        "format_schema_message_name": _MESSAGES[kind],
        "input_format_protobuf_oneof_presence": 1,
        "output_format_json_escape_forward_slashes": 0,
        # Every branch of the rendering is cheap; copying the rows of each branch apart is not.
        "short_circuit_function_evaluation": "disable",
        "async_insert": 0,
        # A segment can hold spans of many days, and so many partitions.
        "max_partitions_per_insert_block": 0,
        "use_strict_insert_block_limits": 0,
        "max_block_size": 65_409,
        "max_insert_block_size": 1_048_449,
        "max_insert_block_size_bytes": 0,
        "min_insert_block_size_rows": 1_048_449,
        "min_insert_block_size_bytes": 268_402_944,
        "min_insert_block_size_rows_for_materialized_views": 0,
        "min_insert_block_size_bytes_for_materialized_views": 0,
        "max_insert_threads": 1,
        "max_threads": 1,
        "parallel_view_processing": 0,
    }


@cache
def _schema(kind: str) -> str:
    folder = resources.files("retrospan_collector.clickhouse")
    return (folder / f"otlp_{kind}.proto").read_text(encoding="utf-8")
