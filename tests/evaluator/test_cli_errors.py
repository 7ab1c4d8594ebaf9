"""Whatever goes wrong, a command ends in one sentence on stderr and the right exit code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from retrospan import ConfigurationError
from retrospan_collector.errors import InvalidStoreUrl, StoreInUse
from retrospan_evaluator.cli.app import OneSentenceGroup, app, exit_code
from retrospan_evaluator.errors import RefusedError, UsageError

UNKNOWN = "0" * 32


def failing_with(error: Exception, *words: str) -> Result:
    """The result of a command that raises, under the group the real commands stand in."""
    failing = typer.Typer(cls=OneSentenceGroup)

    @failing.callback()
    def options(debug: bool = False) -> None:
        pass

    @failing.command()
    def fail() -> None:
        raise error

    return CliRunner().invoke(failing, [*words, "fail"])


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("expected a number, got 'x': give one"), 2),
        (RefusedError("nothing is there yet: run first"), 1),
        (InvalidStoreUrl("expected a store, got 'x': write one"), 2),
        (StoreInUse("in use by process 7: wait for it"), 1),
        (ConfigurationError("top_k must be positive, got 0: raise it"), 2),
    ],
)
def test_an_error_raised_on_purpose_is_its_sentence(error: Exception, code: int) -> None:
    result = failing_with(error)
    assert (result.exit_code, result.stdout) == (code, "")
    assert result.stderr == f"retrospan: {error}\n"
    assert exit_code(error) == code


def test_a_fault_of_ours_says_how_to_find_it() -> None:
    result = failing_with(KeyError("surprise"))
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1
    assert "KeyError" in result.stderr and "RETROSPAN_DEBUG=1" in result.stderr


def test_a_sentence_is_one_line_whatever_it_quotes() -> None:
    result = failing_with(RefusedError("no case 'a\nb\x1b[2J' here"))
    assert result.stderr == "retrospan: no case 'a b<U+001B>[2J' here\n"


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "Traceback" in failing_with(RefusedError("no"), "--debug").stderr
    monkeypatch.setenv("RETROSPAN_DEBUG", "1")
    assert "Traceback" in failing_with(RefusedError("no")).stderr
    monkeypatch.setenv("RETROSPAN_DEBUG", "0")
    assert "Traceback" not in failing_with(RefusedError("no")).stderr


@pytest.mark.parametrize(
    "words",
    [["no-such-command"], ["trace"], ["traces", "--limit", "0"], ["traces", "--limit", "many"]],
    ids=" ".join,
)
def test_wrong_usage_is_exit_2(words: list[str]) -> None:
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 2
    assert "Traceback" not in result.stderr and "Error:" in result.stderr


@pytest.mark.parametrize(
    ("words", "came"),
    [
        (["traces", "--limit", "0"], "got '0'"),
        (["traces", "--limit", "many"], "got 'many'"),
        (["serve", "--otlp-grpc-port", "99999"], "got '99999'"),
        (["serve", "--clickhouse-port", "-1"], "got '-1'"),
        (["replay", UNKNOWN, "--system", "a:B", "--top-k", "0"], "got '0'"),
        (["replay", UNKNOWN, "--system", "a:B", "--repeats", "some"], "got 'some'"),
        (["trace", "xyz"], "got 'xyz'"),
        (["trace", UNKNOWN, "--root", "7"], "got '7'"),
        (["replay", "xyz", "--system", "a:B"], "got 'xyz'"),
    ],
    ids=" ".join,
)
def test_a_refusal_of_what_was_typed_says_what_came(words: list[str], came: str) -> None:
    result = CliRunner().invoke(app, words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.count(came) == 1


@pytest.mark.parametrize(
    ("store", "code", "word"),
    [
        ("sqlite:/x", 2, "sqlite"),
        ("clickhouse://nobody:secret@127.0.0.1:1/retrospan", 1, "127.0.0.1:1"),
        ("embedded:/proc/nowhere", 1, "/proc/nowhere"),
    ],
)
def test_a_store_that_cannot_be_read_is_named(store: str, code: int, word: str) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "retrospan_evaluator", "trace", UNKNOWN, "--store", store],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (code, "")
    assert ran.stderr.count("\n") == 1
    assert word in ran.stderr and "secret" not in ran.stderr


def test_a_store_another_process_holds_names_that_process(tmp_path: Path) -> None:
    url = f"embedded:{tmp_path / 'data'}"
    holding = (
        "import sys\n"
        "from retrospan_collector.clickhouse.connection import open_store\n"
        "with open_store(sys.argv[1]):\n"
        "    print('held', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", holding, url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with holder:
        assert holder.stdout is not None and holder.stdout.readline() == "held\n"
        result = CliRunner().invoke(app, ["traces", "--store", url])
        checked = CliRunner().invoke(app, ["doctor", "--store", url])
        holder.communicate()
    assert result.exit_code == 1
    assert f"in use by process {holder.pid}" in result.stderr
    assert f"in use by process {holder.pid}" in " ".join(checked.stdout.split())


def test_the_environment_names_the_store_where_no_flag_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RETROSPAN_STORE", f"embedded:{tmp_path / 'named'}")
    assert str(tmp_path / "named") in CliRunner().invoke(app, ["traces"]).stderr
    other = ["traces", "--store", f"embedded:{tmp_path / 'flagged'}"]
    assert str(tmp_path / "flagged") in CliRunner().invoke(app, other).stderr


def test_the_version_is_printed() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout.startswith("retrospan 0.")
