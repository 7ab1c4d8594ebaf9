"""The command `retrospan`: its subcommands, and the one place where errors become exit codes."""

from __future__ import annotations

import io
import logging
import sys
import traceback
from importlib import import_module, metadata
from typing import Annotated, Any

import pydantic
import typer
from typer.core import TyperGroup

from retrospan import ConfigurationError
from retrospan_collector.errors import CollectorError, InvalidStoreUrl
from retrospan_evaluator.cli.console import print_error, stdout_for_answers
from retrospan_evaluator.errors import EvaluatorError
from retrospan_evaluator.settings import DEBUG_VARIABLE, debug_wanted

COMMANDS = {
    "demo": "See the whole idea at work on a shipped example.",
    "serve": "Receive and store traces until stopped.",
    "traces": "List the newest requests.",
    "trace": "Show one request and what became of its passages.",
    "run": "Send a dataset's cases through a system and score the answers.",
    "replay": "Replay one request under other settings to see what failed.",
    "diagnose": "Replay a run's failed cases and count what failed.",
    "doctor": "Check the installation and the store.",
}
"""Every command and what it is for; each is the function `register` of a module of its name."""

DRIVING = frozenset({"demo", "run", "replay", "diagnose"})
"""The commands that run a system's code."""

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
        except typer.BadParameter as error:
            _say_what_came(error)
            raise
        except (typer.Exit, typer.Abort, typer.TyperException, BrokenPipeError):
            raise
        except Exception as error:
            debug = debug_wanted(bool(ctx.params.get("debug")))
            if debug:
                traceback.print_exc(file=sys.stderr)
            print_error(_sentence(error, debug))
            raise typer.Exit(exit_code(error)) from error


class CommandGroup(OneSentenceGroup):
    """Imports a command's module when that command is called for.

    Scientific and server libraries take seconds to import; looking at a trace needs none of them.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the commands, in the order they are met."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name; None when there is none."""
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            self.commands[cmd_name] = _imported(cmd_name)
        return super().get_command(ctx, cmd_name)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """List the commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _imported(name: str) -> Any:
    alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    import_module(f"retrospan_evaluator.cli.{name}").register(alone)
    command = typer.main.get_command(alone)
    if name in DRIVING and command.callback is not None:
        command.callback = stdout_for_answers()(command.callback)
    return command


def _say_what_came(error: typer.BadParameter) -> None:
    """Add the typed value to a refusal that only says what was expected."""
    if isinstance(error.__cause__, pydantic.ValidationError):
        typed = error.__cause__.errors(include_url=False)[0]["input"]
        if repr(typed) not in error.message:
            error.message = f"{error.message}, got {typed!r}"


def _sentence(error: Exception, debug: bool) -> str:
    if isinstance(error, ON_PURPOSE):
        return str(error)
    sentence = f"unexpected {type(error).__name__}: {error}"
    return sentence if debug else f"{sentence} (see where it came from with {DEBUG_VARIABLE}=1)"


app = typer.Typer(
    cls=CommandGroup,
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


def main() -> None:
    """Run the command line of this process."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal that cannot show a character shows its number; a command never fails over it.
        sys.stdout.reconfigure(errors="backslashreplace")
    app(prog_name="retrospan")
