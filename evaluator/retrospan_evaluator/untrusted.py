"""Text that came out of a trace, made safe for the place it is about to be shown in.

One function a sink. The texts of a trace (questions, answers, passages, ids, names) are written by
whoever uses the recorded system, so they may hold escape sequences, direction overrides, markup or
shell syntax.
"""

from __future__ import annotations

import json
import math
import re
import shlex
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.markup import escape

LEFT_TO_RIGHT_ISOLATE = "\u2066"
RIGHT_TO_LEFT_ISOLATE = "\u2067"
FIRST_STRONG_ISOLATE = "\u2068"
POP_DIRECTIONAL_ISOLATE = "\u2069"

# Joiners and direction *marks* shape legitimate Arabic, Persian and Hebrew text and emoji, and
# reach no further than their neighbours. Every other invisible character is shown.
_HARMLESS_INVISIBLE = frozenset("\u200c\u200d\u200e\u200f\u061c")
_SHOWN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_RIGHT_TO_LEFT = frozenset({"R", "AL", "AN"})
_WORD = re.compile(r"[A-Za-z0-9_.:-]+")


def terminal(text: str) -> str:
    """The text with everything invisible made visible, as `<U+202E>`; lines and tabs stay."""
    return "".join(
        char if char in "\n\t" or not _is_invisible(char) else f"<U+{ord(char):04X}>"
        for char in text.replace("\r\n", "\n")
    )


def terminal_cell(text: str) -> str:
    """The text as one line of a terminal: invisible characters shown, white space collapsed."""
    return " ".join(terminal(text).split())


def isolate(shown: str) -> str:
    """A shown line kept in its own direction, so that Arabic does not reorder what is beside it.

    Text without right-to-left characters comes back as it is.
    """
    if not _has_right_to_left(shown):
        return shown
    return f"{FIRST_STRONG_ISOLATE}{shown}{POP_DIRECTIONAL_ISOLATE}"


def isolate_lines(paragraph: str, lines: Sequence[str]) -> list[str]:
    """The lines a shown paragraph was broken into, each kept in the paragraph's direction."""
    if lines == [paragraph]:
        return [isolate(paragraph)]
    # Once for all of them: a passage may be a megabyte in one paragraph.
    if not _has_right_to_left(paragraph):
        return list(lines)
    opening = _direction(paragraph)
    return [f"{opening}{line}{POP_DIRECTIONAL_ISOLATE}" for line in lines]


def markup(text: str) -> str:
    """The text as part of a string with rich markup: its brackets stay brackets."""
    return escape(terminal_cell(text))


def json_text(document: object, *, ascii_only: bool = False, indent: int | None = None) -> str:
    """The document as JSON that says the same and moves no terminal it is printed on.

    A number that is not finite, which JSON cannot say, is null.
    """
    text = json.dumps(_finite(document), ensure_ascii=ascii_only, allow_nan=False, indent=indent)
    # The encoder has escaped every line break of the texts: those that are left are its own.
    return "".join(
        _json_char(char) if _is_invisible(char) and char != "\n" else char for char in text
    )


@dataclass(frozen=True, slots=True)
class Typed:
    """A word the user typed on this command line: quoted for the shell, not restricted."""

    text: str


def command_line(*words: str, options: Sequence[tuple[str, str | int | Typed]] = ()) -> str | None:
    """A command to copy, shell-quoted; None when a word is not one that is safe to print.

    Args:
        words: The program, the command and its operands.
        options: Names (ours) and values (perhaps a trace's) in order; a name may come twice.
    """
    values = [*words, *(value for _, value in options if isinstance(value, str))]
    if any(not _WORD.fullmatch(value) or value.startswith("-") for value in values):
        return None
    flat = list(words)
    for name, value in options:
        flat += [name, value.text if isinstance(value, Typed) else str(value)]
    return shlex.join(flat)


def _is_invisible(char: str) -> bool:
    return unicodedata.category(char) in _SHOWN_CATEGORIES and char not in _HARMLESS_INVISIBLE


def _has_right_to_left(shown: str) -> bool:
    if shown.isascii():
        return False
    return any(unicodedata.bidirectional(char) in _RIGHT_TO_LEFT for char in shown)


def _direction(paragraph: str) -> str:
    """The isolate that says what the paragraph's first letter with a direction says."""
    for char in paragraph:
        match unicodedata.bidirectional(char):
            case "L":
                return LEFT_TO_RIGHT_ISOLATE
            case "R" | "AL":
                return RIGHT_TO_LEFT_ISOLATE
    return FIRST_STRONG_ISOLATE


def _json_char(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


def _finite(document: object) -> object:
    if isinstance(document, float):
        return document if math.isfinite(document) else None
    if isinstance(document, Mapping):
        return {key: _finite(value) for key, value in document.items()}
    if isinstance(document, list | tuple):
        return [_finite(value) for value in document]
    return document
