"""A collector that really runs, once for all tests here: receiver, owner, embedded engine."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from retrospan_collector.clickhouse.connection import Store, open_store
from retrospan_collector.service import temporary_service
from retrospan_evaluator.identifiers import Identifiers


@dataclass(frozen=True, slots=True, kw_only=True)
class Collector:
    """A running service, and its store as another process reaches it."""

    url: str
    store: Store
    otlp_grpc: str


@pytest.fixture(scope="session")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    """One service for the session: tests keep apart by the ids of their runs and traces."""
    url = f"embedded:{tmp_path_factory.mktemp('collector') / 'data'}"
    with temporary_service(url) as endpoints, open_store(url) as store:
        yield Collector(url=url, store=store, otlp_grpc=endpoints.otlp_grpc)


@pytest.fixture(scope="session")
def store(collector: Collector) -> Store:
    """The running service's store."""
    return collector.store


@pytest.fixture(scope="session")
def otlp_grpc(collector: Collector) -> str:
    """The running service's receiver."""
    return collector.otlp_grpc


@pytest.fixture(scope="session")
def store_url(collector: Collector) -> str:
    """The running service's store as `--store` names it."""
    return collector.url


@pytest.fixture(scope="session")
def identifiers() -> Identifiers:
    """Ids that are the same in every session; drawn one after another, never twice."""
    return Identifiers(random.Random(20261201))


@pytest.fixture
def now() -> datetime:
    """The time a command is started at."""
    return datetime.now(UTC)
