"""Systems that fail for a reason the test chose: `shelf_systems:Library` and its relatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from retrospan import Passage, Retrieval, rag_system

RIGHT = "The answer is forty-two."


class Shelf:
    """Retrieves what the input lists; `reads` says what the generator makes of its context."""

    def retrieve(self, input: Mapping[str, Any], depth: int) -> Retrieval:
        listed: list[tuple[str, int]] = input["shelf"]
        return Retrieval(
            "which book?",
            [
                Passage(name, RIGHT if name == "right" else f"Book {name}.", None, None, tokens)
                for name, tokens in listed
            ],
        )

    def generate(self, input: Mapping[str, Any], context: Sequence[Passage]) -> str:
        match input["reads"]:
            case "all":
                return " ".join(passage.text for passage in context)
            case "first":
                return context[0].text
            case "none":
                return "I do not read."
            case _:
                raise RuntimeError("the model is away")


SETTINGS: dict[str, Any] = {
    "name": "shelf",
    "version": "1",
    "depth": 4,
    "top_k": 2,
    "token_budget": 20,
    "index_version": "books",
    "deterministic": True,
}


@rag_system(**SETTINGS)
class Library(Shelf):
    """As it runs in production."""


@rag_system(**SETTINGS)
class ClosedLibrary(Shelf):
    """The same system where the index is out of reach, as it may be for whoever replays."""

    def retrieve(self, input: Mapping[str, Any], depth: int) -> Retrieval:
        raise AssertionError("a replay never retrieves")


@rag_system(**SETTINGS | {"deterministic": False})
class MoodyLibrary(Shelf):
    """Not declared deterministic."""


@rag_system(**SETTINGS)
class ForgetfulLibrary(Shelf):
    """Declared deterministic, and is not: every answer is another one."""

    def __init__(self, first: int = 0) -> None:
        self._answered = first

    def generate(self, input: Mapping[str, Any], context: Sequence[Passage]) -> str:
        self._answered += 1
        return f"{super().generate(input, context)} (answer {self._answered})"


@rag_system(**SETTINGS | {"deterministic": False})
class CoinLibrary(Shelf):
    """Right every other time, whatever it is given."""

    def __init__(self) -> None:
        self._answered = 0

    def generate(self, input: Mapping[str, Any], context: Sequence[Passage]) -> str:
        self._answered += 1
        return RIGHT if self._answered % 2 == 0 else "No idea."


def later_forgetful_library() -> ForgetfulLibrary:
    """One that has answered before."""
    return ForgetfulLibrary(first=7)
