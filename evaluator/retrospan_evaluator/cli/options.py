"""Options that several commands share, each written once."""

from __future__ import annotations

from typing import Annotated

import typer

from retrospan_evaluator.settings import DEFAULT_STORE, STORE_VARIABLE

Store = Annotated[
    str,
    typer.Option(
        "--store",
        envvar=STORE_VARIABLE,
        metavar="URL",
        help="Where the data is: embedded:DIR or clickhouse://host:8123/database.",
    ),
]
"""Write it as `store: options.Store = options.DEFAULT_STORE`."""

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")]
"""Write it as `json: options.Json = False`."""

__all__ = ["DEFAULT_STORE", "Json", "Store"]
