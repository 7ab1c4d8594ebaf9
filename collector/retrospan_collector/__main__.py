"""`python -m retrospan_collector`: the service and its parts, without the evaluator."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from retrospan_collector.child import SENTENCE_MARK
from retrospan_collector.errors import CollectorError, InvalidStoreUrl
from retrospan_collector.ports import port
from retrospan_collector.service import SHARED, ServeOptions, serve, state_path
from retrospan_collector.sharing import users_left, wait_for_users

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
        return _refused(error, 2)
    except (CollectorError, OSError) as error:
        return _refused(error, 1)


def _refused(error: Exception, code: int) -> int:
    print(f"{SENTENCE_MARK}{error}", file=sys.stderr)
    return code


def _serve(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="retrospan-collector", allow_abbrev=False)
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("serve", help="receive spans and store them", allow_abbrev=False)
    defaults = ServeOptions(store=_default_store())
    command.add_argument("--store", default=defaults.store, metavar="URL")
    command.add_argument("--otlp-grpc-port", type=port, default=defaults.otlp_grpc_port)
    command.add_argument("--otlp-http-port", type=port, default=defaults.otlp_http_port)
    command.add_argument("--clickhouse-port", type=port, default=defaults.clickhouse_port)
    command.add_argument("--spool", type=Path, default=None, metavar="DIRECTORY")
    command.add_argument("--until-stdin-closes", action="store_true", help="stop with the parent")
    values = vars(parser.parse_args(arguments))
    temporary = values.pop("until_stdin_closes")
    options = ServeOptions(**values)
    until = partial(_until_unused, state_path(options.store)) if temporary else None
    serve(options, lambda line: print(line, flush=True), until=until)
    return 0


def _default_store() -> str:
    return os.environ.get("RETROSPAN_STORE") or DEFAULT_STORE


def _until_unused(state: Path) -> None:
    """Return when the command that started this service is done, and every other that uses it."""
    # Not through sys.stdin: a thread that waits in its buffer aborts the interpreter's exit.
    while os.read(0, 4096):
        pass
    if users_left(state):
        with suppress(OSError):  # the command may have been killed
            print(SHARED, flush=True)
        wait_for_users(state)


if __name__ == "__main__":
    sys.exit(main())
