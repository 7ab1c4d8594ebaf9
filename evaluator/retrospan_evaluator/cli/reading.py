"""Opens a store for a command that only reads: it never brings one into being."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from retrospan_collector.clickhouse.connection import Store, open_store
from retrospan_collector.store_url import EmbeddedStore, parse_store_url
from retrospan_evaluator.cli.console import progress
from retrospan_evaluator.errors import RefusedError, UsageError


@contextmanager
def reading(url: str) -> Iterator[Store]:
    """The store at `url`, open while the block runs.

    Raises:
        RefusedError: an embedded store that nothing was ever written to.
    """
    refuse_unwritten(url)
    with progress(f"reading {parse_store_url(url)}"), open_store(url) as store:
        yield store


def refuse_unwritten(url: str) -> None:
    """Raise RefusedError for an embedded store that nothing was ever written to."""
    target = parse_store_url(url)
    if isinstance(target, EmbeddedStore) and not target.engine_path.exists():
        raise RefusedError(
            f"nothing is recorded at {target} yet: start `retrospan serve` and send it traces, "
            "try `retrospan demo`, or name another store with --store"
        )


def typed_trace_id(typed: str) -> str:
    """The trace id of a command line; UsageError when it is none, before any store is opened."""
    trace_id = typed.strip().lower()
    if not re.fullmatch(r"[0-9a-f]{32}", trace_id):
        raise UsageError(
            f"TRACE_ID expects 32 hexadecimal digits, got {typed!r}: "
            "copy one that `retrospan traces` lists"
        )
    return trace_id


def typed_span_id(typed: str | None) -> str | None:
    """The span id of `--root`, where it was typed; UsageError when it is none."""
    if typed is None:
        return None
    span_id = typed.strip().lower()
    if not re.fullmatch(r"[0-9a-f]{16}", span_id):
        raise UsageError(
            f"--root expects 16 hexadecimal digits, got {typed!r}: "
            "copy one that `retrospan trace TRACE_ID` lists"
        )
    return span_id
