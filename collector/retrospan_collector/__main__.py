"""`python -m retrospan_collector`: the service and its parts, without the evaluator."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from retrospan_collector.errors import CollectorError, InvalidStoreUrl
from retrospan_collector.service import ServeOptions, serve

DEFAULT_STORE = "embedded:./retrospan-data"


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code: 0, 1 for what cannot be done now, 2 for wrong usage."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        if arguments[:1] == ["owner"]:
            # The owner loads the engine, the service never does: import it only here.
            from retrospan_collector import owner

            return owner.main(["--store", _default_store(), *arguments[1:]])
        return _serve(arguments)
    except InvalidStoreUrl as error:
        print(error, file=sys.stderr)
        return 2
    except CollectorError as error:
        print(error, file=sys.stderr)
        return 1


def _serve(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="retrospan-collector", allow_abbrev=False)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("serve", help="receive spans and store them", allow_abbrev=False)
    defaults = ServeOptions(store=_default_store())
    command.add_argument("--store", default=defaults.store, metavar="URL")
    command.add_argument("--otlp-grpc-port", type=int, default=defaults.otlp_grpc_port)
    command.add_argument("--otlp-http-port", type=int, default=defaults.otlp_http_port)
    command.add_argument("--clickhouse-port", type=int, default=defaults.clickhouse_port)
    command.add_argument("--spool", type=Path, default=None, metavar="DIRECTORY")
    command.add_argument("--until-stdin-closes", action="store_true", help="stop with the parent")
    values = vars(parser.parse_args(arguments))
    until = _read_stdin if values.pop("until_stdin_closes") else None
    serve(ServeOptions(**values), lambda line: print(line, flush=True), until=until)
    return 0


def _default_store() -> str:
    return os.environ.get("RETROSPAN_STORE") or DEFAULT_STORE


def _read_stdin() -> None:
    # Not through sys.stdin: a thread that waits in its buffer aborts the interpreter's exit.
    while os.read(0, 4096):
        pass


if __name__ == "__main__":
    sys.exit(main())
