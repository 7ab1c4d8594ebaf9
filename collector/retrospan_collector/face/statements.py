"""What may be asked through the face: reading, and inserting into the store's own tables.

A statement never names a file, an address or another program. Table functions are refused unless
they are known to be harmless, so a new engine's new one is refused as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from retrospan_collector.face.lexer import Token, tokens
from retrospan_collector.face.refusals import StatementRefused
from retrospan_collector.face.settings import check_setting

READING = frozenset({"SELECT", "WITH", "DESCRIBE", "DESC", "SHOW", "EXISTS", "EXPLAIN"})
CHANGING = frozenset({"INSERT", "OPTIMIZE", "DELETE"})

HARMLESS_TABLE_FUNCTIONS = frozenset(
    {
        "format",
        "generaterandom",
        "generate_series",
        "generateseries",
        "null",
        "numbers",
        "numbers_mt",
        "values",
        "view",
        "zeros",
        "zeros_mt",
    }
)

REFUSED_FUNCTIONS = frozenset({"file", "catboostevaluate"})
"""Ordinary functions that read files."""

INSERT_FORMATS = frozenset(
    {"Native", "RowBinary", "JSONEachRow", "CSV", "TSV", "TabSeparated", "Protobuf", "Parquet"}
)
"""Formats of data; in `Values` the data are expressions, which the engine would evaluate."""

_HEAD_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement that may run."""

    text: str
    """For an insert with data: up to the word FORMAT."""
    reads: bool
    """Whether it has a result and changes nothing."""
    data_format: str | None = None
    """The format of the data that follow an INSERT, or of the result if the statement says it."""
    data: bytes | None = None
    settings: str = ""
    """The SETTINGS clause of an insert with data, which goes behind the data's place."""


def read_statement(body: bytes, refused_functions: frozenset[str]) -> Statement:
    """The statement in a body; StatementRefused if it may not run.

    `refused_functions` are lower-case names that must not be called, see `refused_names`.
    """
    insert = _insert_with_data(body, refused_functions)
    if insert is not None:
        return insert
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise StatementRefused(f"expected a statement in UTF-8: {error.reason}") from error
    words = list(tokens(text))
    if not words:
        raise StatementRefused("expected a statement and got none")
    _check(words, refused_functions)
    first = words[0].word
    reads = first in READING or words[0].text == "("
    if not reads and first not in CHANGING:
        raise StatementRefused(
            f"expected one of {', '.join(sorted(READING | CHANGING))} and got {words[0].text!r}: "
            "change tables through the owner, not through this interface"
        )
    return Statement(text.rstrip().rstrip(";"), reads, _result_format(words))


def refused_names(table_functions: Iterable[str]) -> frozenset[str]:
    """The functions to refuse, given all table functions the engine has."""
    names = {name.lower() for name in table_functions}
    return frozenset(names - HARMLESS_TABLE_FUNCTIONS) | REFUSED_FUNCTIONS


def _insert_with_data(body: bytes, refused_functions: frozenset[str]) -> Statement | None:
    """INSERT INTO … FORMAT X, then bytes that are no SQL; None for any other statement."""
    head = body[:_HEAD_BYTES].decode("utf-8", "surrogateescape")
    words: list[Token] = []
    for token in tokens(head):
        if not words and token.word != "INSERT":
            return None
        if token.word in ("SELECT", "VALUES", "WITH"):
            return None
        if len(words) > 1 and words[-1].word == "FORMAT":
            break
        words.append(token)
    else:
        return None
    data_format = token.text
    _check(words, refused_functions)
    if data_format not in INSERT_FORMATS:
        raise StatementRefused(
            f"expected data in one of {', '.join(sorted(INSERT_FORMATS))} and got {data_format!r}"
        )
    end = len(head[: token.end].encode("utf-8", "surrogateescape"))
    separator = 1 if body[end : end + 1].isspace() else 0
    into, settings = _split_settings(head, words)
    return Statement(into, False, data_format, body[end + separator :], settings)


def _split_settings(head: str, words: Sequence[Token]) -> tuple[str, str]:
    end = words[-1].start
    for token, following in zip(words, words[1:], strict=False):
        if token.word == "SETTINGS" and following.name:
            return head[: token.start], head[token.start : end]
    return head[:end], ""


def _check(words: Sequence[Token], refused_functions: frozenset[str]) -> None:
    for index, token in enumerate(words):
        following = words[index + 1] if index + 1 < len(words) else None
        if token.text == ";" and following is not None:
            raise StatementRefused("expected one statement and got more: send them one by one")
        if following is None:
            continue
        if token.name in refused_functions and following.text == "(":
            raise StatementRefused(
                f"{token.text}() reaches outside the store and is refused here: only the store's "
                "own tables are served"
            )
        if token.word in ("INFILE", "OUTFILE") and following.kind == "string":
            raise StatementRefused(f"{token.word} names a file and is refused here")
        if token.word == "INTO" and following.word == "FUNCTION":
            raise StatementRefused("INSERT INTO FUNCTION is refused here: name a table")
        if token.word == "SETTINGS":
            _check_settings(words[index + 1 :])


def _check_settings(words: Sequence[Token]) -> None:
    """The names of a SETTINGS clause: `name = value, …`."""
    index = 0
    while index + 2 < len(words) and words[index].name and words[index + 1].text == "=":
        value = words[index + 2].text.strip("'")
        check_setting(words[index].name, value)
        index += 3
        if index >= len(words) or words[index].text != ",":
            return
        index += 1


def _result_format(words: Sequence[Token]) -> str | None:
    trimmed = [token for token in words if token.text != ";"]
    if len(trimmed) > 2 and trimmed[-2].word == "FORMAT" and trimmed[-1].kind == "word":
        return trimmed[-1].text
    return None
