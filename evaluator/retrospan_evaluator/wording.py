"""Counts in a sentence, with the word that fits the number."""

from __future__ import annotations


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """`1 case`, `2 cases`; a plural that is not made with an s is given."""
    return f"{number} {singular if number == 1 else plural or singular + 's'}"
