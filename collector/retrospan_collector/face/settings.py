"""Which settings a request may bring, and which of its URL's parameters are no settings."""

from __future__ import annotations

from retrospan_collector.face.refusals import SettingRefused

MAX_MEMORY_BYTES = 2_000_000_000
"""What one statement may use, whatever it asks for."""

TRANSPORT_PARAMETERS = frozenset(
    {
        "buffer_size",
        "cancel_http_readonly_queries_on_client_close",
        "client_protocol_version",
        "compress",
        "database",
        "decompress",
        "default_format",
        "enable_http_compression",
        "http_headers_progress_interval_ms",
        "query",
        "query_id",
        "quota_key",
        "send_progress_in_http_headers",
        "session_check",
        "session_id",
        "session_timeout",
        "wait_end_of_query",
    }
)
"""Parameters of the HTTP interface that clients send; answers come whole and without a session."""

ALLOWED_SETTINGS = frozenset(
    {
        "async_insert",
        "cast_string_to_dynamic_use_inference",
        "date_time_input_format",
        "date_time_output_format",
        "do_not_merge_across_partitions_select_final",
        "final",
        "join_use_nulls",
        "limit",
        "max_block_size",
        "max_execution_time",
        "max_memory_usage",
        "max_result_bytes",
        "max_result_rows",
        "max_rows_to_read",
        "max_threads",
        "mutations_sync",
        "offset",
        "optimize_move_to_prewhere_if_final",
        "output_format_json_quote_64bit_integers",
        "output_format_json_quote_denormals",
        "readonly",
        "result_overflow_mode",
        "session_timezone",
        "use_skip_indexes_if_final",
        "wait_for_async_insert",
    }
)


def check_setting(name: str, value: str) -> None:
    """SettingRefused unless a request may bring this setting with this value."""
    if name not in ALLOWED_SETTINGS:
        raise SettingRefused(
            f"the setting {name!r} is refused here: allowed are "
            f"{', '.join(sorted(ALLOWED_SETTINGS))}"
        )
    if name == "max_memory_usage" and not _within(value, MAX_MEMORY_BYTES):
        raise SettingRefused(
            f"expected max_memory_usage between 1 and {MAX_MEMORY_BYTES} and got {value!r}"
        )


def _within(value: str, most: int) -> bool:
    return value.isdigit() and 0 < int(value) <= most
