"""The insert of one spool segment: export requests in, rows out, all inside the engine."""

from __future__ import annotations

from functools import cache
from importlib import resources

from retrospan_collector.clickhouse.connection import Store

_TABLES = {"traces": "otlp_traces"}
INSERTABLE_KINDS = frozenset(_TABLES)
"""The kinds of segment there is an insert for."""

_MESSAGES = {"traces": "ExportTraceServiceRequest"}


@cache
def _schema(kind: str) -> str:
    folder = resources.files("retrospan_collector.clickhouse")
    return (folder / f"otlp_{kind}.proto").read_text(encoding="utf-8")


def insert_settings(kind: str, token: str) -> dict[str, object]:
    """The settings that decode a segment and make its insert safe to repeat.

    A repeated insert is recognised by its token and the number of each block it is cut into, so
    everything that decides where a block ends is pinned: other cuts would double rows.
    """
    return {
        "format_schema_source": "string",
        "format_schema": _schema(kind),
        "format_schema_message_name": _MESSAGES[kind],
        "input_format_protobuf_oneof_presence": 1,
        "output_format_json_escape_forward_slashes": 0,
        "async_insert": 0,
        "deduplicate_insert": "enable",
        "deduplicate_blocks_in_dependent_materialized_views": 1,
        "insert_deduplication_token": token,
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


def insert_segment(store: Store, kind: str, token: str, body: bytes) -> None:
    """Insert a segment's bytes once, however often it is called with the same token."""
    store.insert_bytes(_TABLES[kind], body, "Protobuf", insert_settings(kind, token))
