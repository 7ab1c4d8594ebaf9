"""Text out of a trace does nothing in the place it is shown in, and stays readable there."""

from __future__ import annotations

import json
import shlex
import unicodedata
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from retrospan_evaluator import untrusted

TRACE_ID = "4bf92f3577b34da6a3ce929d0e0e4736"

any_text = st.text(st.characters(exclude_categories=()))  # lone surrogates included


def dangerous(text: str) -> list[str]:
    """Characters a terminal would act on, or nobody would see."""
    shaping = "\u200c\u200d\u200e\u200f\u061c"
    kinds = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return [c for c in text if unicodedata.category(c) in kinds and c not in shaping]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\x1b[2Jb", "a<U+001B>[2Jb"),
        ("pay \u202e001\u202c", "pay <U+202E>001<U+202C>"),
        ("a\u2069b", "a<U+2069>b"),
        ("null\0", "null<U+0000>"),
        ("half \ud83d", "half <U+D83D>"),
        ("tag\U000e0041", "tag<U+E0041>"),
        ("c1 \x9b31m", "c1 <U+009B>31m"),
        ("أربعة عشر يوماً", "أربعة عشر يوماً"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("two\r\nlines\tand a tab", "two\nlines\tand a tab"),
    ],
)
def test_a_terminal_shows_what_would_act_on_it(text: str, shown: str) -> None:
    assert untrusted.terminal(text) == shown


@given(any_text)
def test_no_text_moves_a_terminal(text: str) -> None:
    assert set(dangerous(untrusted.terminal(text))) <= {"\n", "\t"}
    assert dangerous(untrusted.terminal_cell(text)) == []


def test_a_cell_is_one_line() -> None:
    assert untrusted.terminal_cell("  a\n\n b\t c ") == "a b c"


def test_arabic_is_kept_from_reordering_its_neighbours() -> None:
    assert untrusted.isolate("مرحبا (v2)") == "\u2068مرحبا (v2)\u2069"
    assert untrusted.isolate("hello (v2)") == "hello (v2)"


def test_a_line_of_a_paragraph_has_the_direction_of_the_paragraph() -> None:
    right_to_left = untrusted.isolate_lines("مرحبا OTLP وارد", ["مرحبا", "OTLP وارد"])
    assert right_to_left == ["\u2067مرحبا\u2069", "\u2067OTLP وارد\u2069"]
    left_to_right = untrusted.isolate_lines("say مرحبا", ["say", "مرحبا"])
    assert left_to_right == ["\u2066say\u2069", "\u2066مرحبا\u2069"]
    assert untrusted.isolate_lines("more plain", ["more", "plain"]) == ["more", "plain"]


@given(any_text)
def test_rich_prints_the_text_and_reads_no_markup_in_it(text: str) -> None:
    cell = untrusted.terminal_cell(text)
    screen = StringIO()
    console = Console(file=screen, width=10_000, emoji=False, highlight=False)
    console.print(f"{untrusted.markup(text)}[bold]![/bold]", soft_wrap=True)
    assert screen.getvalue() == f"{cell}!\n"


@given(st.recursive(any_text | st.floats() | st.integers() | st.none(), st.lists))
def test_json_says_the_same_and_moves_no_terminal(document: object) -> None:
    text = untrusted.json_text(document, indent=2)
    assert set(dangerous(text)) <= {"\n"}
    assert json.loads(text) == finite(document)
    assert json.loads(untrusted.json_text(document, ascii_only=True)) == finite(document)


def finite(document: object) -> object:
    """The document with null for what JSON cannot say."""
    if isinstance(document, list):
        return [finite(value) for value in document]
    if isinstance(document, float) and document - document != 0:
        return None
    return document


def test_arabic_stays_readable_in_json() -> None:
    assert untrusted.json_text(["مرحبا"]) == '["مرحبا"]'


def test_a_printed_command_is_what_was_meant() -> None:
    command = untrusted.command_line(
        "retrospan",
        "replay",
        TRACE_ID,
        options=[
            ("--system", "app:Rag"),
            ("--token-budget", 120),
            ("--store", untrusted.Typed("embedded:./my data")),
        ],
    )
    assert command == (
        f"retrospan replay {TRACE_ID} --system app:Rag --token-budget 120 "
        "--store 'embedded:./my data'"
    )


@pytest.mark.parametrize(
    "word", ["a b", "$(reboot)", "a;b", "`id`", "", "--debug", "-x", "é", "a\n"]
)
def test_a_command_with_a_word_that_is_not_plain_is_not_printed(word: str) -> None:
    assert untrusted.command_line("retrospan", "trace", word) is None
    assert untrusted.command_line("retrospan", "run", options=[("--gold", word)]) is None


@given(any_text)
def test_what_is_printed_is_one_word_to_a_shell(word: str) -> None:
    command = untrusted.command_line("retrospan", "trace", word)
    assert command is None or shlex.split(command) == ["retrospan", "trace", word]
