"""`retrospan serve`: receive traces, store them, and assemble requests, until told to stop."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Annotated

import typer

from retrospan_evaluator.cli import options
from retrospan_evaluator.cli.console import print_json

OtlpGrpcPort = Annotated[
    int,
    typer.Option(
        "--otlp-grpc-port", min=0, max=65535, metavar="N", help="OTLP over gRPC; 0 = a free one."
    ),
]

OtlpHttpPort = Annotated[
    int,
    typer.Option(
        "--otlp-http-port", min=0, max=65535, metavar="N", help="OTLP over HTTP; 0 = a free one."
    ),
]

ClickhousePort = Annotated[
    int,
    typer.Option(
        "--clickhouse-port",
        min=0,
        max=65535,
        metavar="N",
        help="Where an embedded store answers as ClickHouse; 0 = a free one.",
    ),
]

Spool = Annotated[
    Path | None,
    typer.Option(
        "--spool",
        metavar="DIR",
        help="Where received traces wait to be stored; by default inside an embedded store.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command("serve")(serve)


def serve(
    otlp_grpc_port: OtlpGrpcPort = 4317,
    otlp_http_port: OtlpHttpPort = 4318,
    clickhouse_port: ClickhousePort = 0,
    spool: Spool = None,
    store: options.Store = options.DEFAULT_STORE,
    json: options.Json = False,
) -> None:
    """Receive and store traces until stopped.

    Ctrl-C stops it: what was received is stored first.
    """
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    # Servers and their protocols take half a second to import, which only this command needs.
    from retrospan_collector import service

    wanted = service.ServeOptions(
        store=store,
        otlp_grpc_port=otlp_grpc_port,
        otlp_http_port=otlp_http_port,
        clickhouse_port=clickhouse_port,
        spool=spool,
    )
    service.serve(wanted, _Announcement() if json else _print_line)


def _print_line(line: str) -> None:
    """Print at once: another program may be waiting for `ready`."""
    print(line, flush=True)


class _Announcement:
    """Gathers `name: address` lines and prints them as one JSON document when `ready` comes."""

    def __init__(self) -> None:
        self._addresses: dict[str, object] = {"version": 1}

    def __call__(self, line: str) -> None:
        name, colon, address = line.partition(": ")
        if colon:
            self._addresses[name] = address
        elif line == "ready":
            print_json(self._addresses)
