"""ClickHouse's tokens, as far as it takes to see what a statement would reach.

What this lexer cannot place for certain it refuses: reading a quote or a comment otherwise than
the engine does would hide a part of the statement from the rules.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, cast

from retrospan_collector.face.refusals import StatementRefused

TokenKind = Literal["word", "quoted", "string", "number", "symbol"]

_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<comment>--[^\n]*|/\*.*?\*/)
  | (?P<string>'(?:[^'\\]|\\.|'')*')
  | (?P<quoted>`(?:[^`\\]|\\.|``)*`|"(?:[^"\\]|\\.|"")*")
  | (?P<number>\d[\w.]*(?:(?<=[eEpP])[+-]\d+)?)
  | (?P<word>[A-Za-z_]\w*)
  | (?P<symbol>(?!/\*)[()\[\]{},;.:?=<>!+\-*/%|@^~])
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Token:
    """One token and where it stands in the statement."""

    kind: TokenKind
    text: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """Upper case for a bare word, which may be a keyword; empty for anything else."""
        return self.text.upper() if self.kind == "word" else ""

    @property
    def name(self) -> str:
        """Lower case for whatever can name a function or a setting; empty for anything else."""
        if self.kind == "word":
            return self.text.lower()
        return self.text[1:-1].lower() if self.kind == "quoted" else ""


def tokens(statement: str) -> Iterator[Token]:
    """The tokens of a statement, without spaces and comments."""
    position = 0
    while position < len(statement):
        match = _TOKEN.match(statement, position)
        if match is None:
            raise StatementRefused(
                f"expected a plain ClickHouse statement and got {statement[position]!r} at "
                f"character {position + 1}, which this interface does not read: leave it out or "
                "bind it as a parameter"
            )
        kind = cast(TokenKind | Literal["space", "comment"], match.lastgroup)
        if kind == "quoted" and "\\" in match[0]:
            raise StatementRefused(
                f"expected a name without escapes and got {match[0]!r}: rename it with AS"
            )
        if kind != "space" and kind != "comment":
            yield Token(kind, match[0], match.start(), match.end())
        position = match.end()
