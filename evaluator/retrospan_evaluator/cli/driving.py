"""What the commands share that drive a system: its options, its import, a store that collects."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Annotated, TypeVar

import typer

from retrospan import BoundSystem
from retrospan_collector.clickhouse.connection import Store, open_store
from retrospan_collector.service import service_for
from retrospan_collector.store_url import EmbeddedStore, parse_store_url
from retrospan_evaluator import untrusted
from retrospan_evaluator.cli import options
from retrospan_evaluator.cli.console import progress
from retrospan_evaluator.settings import STORE_VARIABLE
from retrospan_evaluator.systems import load_system
from retrospan_evaluator.untrusted import Typed

System = Annotated[
    str,
    typer.Option(
        "--system",
        metavar="MODULE:NAME",
        help="The decorated class, or a factory; called without arguments.",
    ),
]
"""Write it as `system: driving.System`."""

TopK = Annotated[
    list[int] | None,
    typer.Option("--top-k", min=1, metavar="N", help="An arm with this top_k; may come again."),
]
"""Write it as `top_k: driving.TopK = None`."""

TokenBudget = Annotated[
    list[str] | None,
    typer.Option(
        "--token-budget", metavar="N|none", help="An arm with this token budget; may come again."
    ),
]
"""Write it as `token_budget: driving.TokenBudget = None`."""

Repeats = Annotated[
    int | None,
    typer.Option(
        "--repeats",
        metavar="R",
        help="Runs of each arm: at least 5, or 1 where the system is deterministic.",
    ),
]
"""Write it as `repeats: driving.Repeats = None`."""


Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Collecting:
    """A store, and the receiver whose spans reach it."""

    store: Store
    otlp_grpc: str


@contextmanager
def collecting(url: str) -> Iterator[Collecting]:
    """The store at `url` with a receiver before it: the running service's, else one of our own."""
    with ExitStack() as stack:
        with progress(f"starting a collector for {parse_store_url(url)}"):
            if isinstance(parse_store_url(url), EmbeddedStore):
                # The service's owner must have the engine before we can be its client.
                endpoints = stack.enter_context(service_for(url))
                store = stack.enter_context(open_store(url))
            else:
                store = stack.enter_context(open_store(url))
                endpoints = stack.enter_context(service_for(url))
        yield Collecting(store, endpoints.otlp_grpc)


def imported(reference: str) -> BoundSystem:
    """The system of `--system`, saying on stderr whose code is about to run."""
    typer.echo(f"retrospan: importing {untrusted.terminal_cell(reference)}", err=True)
    return load_system(reference)


def store_option(store: str) -> list[tuple[str, str | int | Typed]]:
    """`--store` for a command that goes on from this one, where it would not be found without."""
    if store == os.environ.get(STORE_VARIABLE, options.DEFAULT_STORE):
        return []
    return [("--store", Typed(str(parse_store_url(store))))]


def typed(values: Sequence[Value] | None) -> tuple[Value, ...]:
    """The values of an option that may come again."""
    return tuple(values or ())
