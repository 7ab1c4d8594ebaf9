"""A real store for every test that asks: the engine in a temporary directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from retrospan_collector.clickhouse.connection import Store, open_store


@pytest.fixture
def store_url(tmp_path: Path) -> str:
    """The URL of an embedded store that nobody has opened yet."""
    return f"embedded:{tmp_path / 'data'}"


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """An open embedded store with all tables."""
    with open_store(store_url) as opened:
        yield opened
