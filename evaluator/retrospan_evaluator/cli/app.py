"""The command `retrospan`: its subcommands, and the one place where errors become exit codes."""

from __future__ import annotations

import logging
import sys
import traceback
from importlib import metadata
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from retrospan import ConfigurationError
from retrospan_collector.errors import CollectorError, InvalidStoreUrl
from retrospan_evaluator.cli import doctor, serve, trace, traces
from retrospan_evaluator.cli.console import print_error
from retrospan_evaluator.errors import EvaluatorError
from retrospan_evaluator.settings import DEBUG_VARIABLE, debug_wanted

REFUSED = 1
"""Exit code: it cannot be done now."""

WRONG_USAGE = 2
"""Exit code: what was typed or written is wrong."""

ON_PURPOSE = (EvaluatorError, CollectorError, ConfigurationError)
"""Roots of what the three packages raise for a person to act on."""


def exit_code(error: Exception) -> int:
    """What the process ends with when a command raises this."""
    if isinstance(error, EvaluatorError):
        return error.exit_code
    if isinstance(error, ConfigurationError | InvalidStoreUrl):
        return WRONG_USAGE
    return REFUSED


class OneSentenceGroup(TyperGroup):
    """Turns whatever a command raises into one sentence on stderr and an exit code."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an error ends the process without a traceback unless one is asked for.

        A traceback tells whoever types a command nothing they can act on; a fault of ours says
        how to get it.
        """
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort, typer.TyperException, BrokenPipeError):
            raise
        except Exception as error:
            debug = debug_wanted(bool(ctx.params.get("debug")))
            if debug:
                traceback.print_exc(file=sys.stderr)
            print_error(_sentence(error, debug))
            raise typer.Exit(exit_code(error)) from error


def _sentence(error: Exception, debug: bool) -> str:
    if isinstance(error, ON_PURPOSE):
        return str(error)
    sentence = f"unexpected {type(error).__name__}: {error}"
    return sentence if debug else f"{sentence} (see where it came from with {DEBUG_VARIABLE}=1)"


app = typer.Typer(
    cls=OneSentenceGroup,
    name="retrospan",
    help="See what a retrieval-augmented system retrieved, kept and dropped; score it, and replay "
    "a request to find the stage that failed.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"retrospan {metadata.version('retrospan-evaluator')}")
        raise typer.Exit


@app.callback()
def before_the_command(
    debug: Annotated[
        bool,
        typer.Option("--debug", help=f"Show an error's traceback (also {DEBUG_VARIABLE}=1)."),
    ] = False,
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Options that stand before the command."""
    if not debug_wanted(debug):
        # The driver logs every failure that it then raises, and we say each in a sentence.
        logging.getLogger("clickhouse_connect").setLevel(logging.CRITICAL + 1)


for command in (serve, traces, trace, doctor):
    command.register(app)


def main() -> None:
    """Run the command line of this process."""
    app(prog_name="retrospan")
