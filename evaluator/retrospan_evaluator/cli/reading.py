"""Opens a store for a command that only reads: it never brings one into being."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from retrospan_collector.clickhouse.connection import Store, open_store
from retrospan_collector.store_url import EmbeddedStore, parse_store_url
from retrospan_evaluator.cli.console import progress
from retrospan_evaluator.errors import RefusedError


@contextmanager
def reading(url: str) -> Iterator[Store]:
    """The store at `url`, open while the block runs.

    Raises:
        RefusedError: an embedded store that nothing was ever written to.
    """
    target = parse_store_url(url)
    if isinstance(target, EmbeddedStore) and not target.engine_path.exists():
        raise RefusedError(
            f"nothing is recorded at {target} yet: start `retrospan serve` and send it traces, "
            "try `retrospan demo`, or name another store with --store"
        )
    with progress(f"reading {target}"), open_store(url) as store:
        yield store
