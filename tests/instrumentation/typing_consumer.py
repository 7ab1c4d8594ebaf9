"""What a type checker sees of the public names, as code that uses them; checked, and run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import assert_type

from retrospan import (
    Assembly,
    BoundSystem,
    Outcome,
    Passage,
    Placement,
    RequestReference,
    Retrieval,
    assemble,
    bind,
    carry,
    current_request,
    generate,
    rag_system,
    record_context,
    request,
    retrieve,
)


@retrieve
def search(query: str, k: int = 3) -> list[str]:
    """Bare, on a function."""
    return [query] * k


@retrieve(depth="k", passages=lambda found: found, index_version=lambda: "1")
async def search_async(query: str, *, k: int) -> dict[str, float]:
    """With arguments, on a coroutine function."""
    return {query: float(k)}


@generate(model="m", prompt_version="1")
def stream(question: str) -> Iterator[bytes]:
    """On a generator function."""
    yield question.encode()


@generate
async def stream_async(question: str) -> AsyncIterator[int]:
    """On an async generator function."""
    yield len(question)


@request
def answer(question: str) -> tuple[str, int]:
    """Bare, as a decorator."""
    with request(name="inner", input=question):
        return question, 1


class Pipeline:
    """Methods of every kind."""

    @retrieve(score_kind="similarity")
    def find(self, query: str) -> list[Passage]:
        """A method."""
        return [Passage(query)]

    @staticmethod
    @generate
    def write(context: list[Passage]) -> str:
        """A static method."""
        return context[0].text

    @classmethod
    @request(name="pipeline")
    def of(cls, size: int) -> Pipeline:
        """A class method."""
        return cls()


@rag_system(name="typed", version="1", depth=2, top_k=1, index_version="1")
class Desk:
    """A decorated class keeps its type."""

    def __init__(self, tone: str) -> None:
        self.tone = tone

    def retrieve(self, input: str, depth: int) -> Retrieval:
        """One passage."""
        return Retrieval(input, [Passage("a", "text", 0.5)][:depth])

    def generate(self, input: str, context: tuple[Passage, ...]) -> str:
        """Its text."""
        return context[0].text + self.tone


def use() -> None:
    """Each line says what type there must be; what does not run here is only checked."""
    assert_type(search("q", k=1), list[str])
    assert_type(list(stream("q")), list[bytes])
    assert_type(answer("q"), tuple[str, int])
    assert_type(Pipeline.of(3), Pipeline)
    assert_type(Pipeline().find("q"), list[Passage])
    assert_type(Pipeline.write([Passage("a")]), str)
    desk = Desk("!")
    assert_type(desk, Desk)
    assert_type(bind(desk), BoundSystem)
    outcome = bind(desk).answer("q")
    assert_type(outcome, Outcome)
    assert_type(outcome.answer, str | None)
    assert_type(outcome.citations, tuple[str | int, ...])
    assembly = assemble([Passage("a", tokens=1)], top_k=1, token_budget=5, rule="skip")
    assert_type(assembly, Assembly)
    assert_type(assembly.placements, tuple[Placement, ...])
    assert_type(assembly.placements[0].passage, Passage)
    assert_type(carry(search)("q", k=2), list[str])
    assert_type(current_request(), RequestReference | None)
    record_context(["a"], dropped={"b": "budget"}, top_k=1)


async def use_async() -> None:
    """The same for what is awaited."""
    assert_type(await search_async("q", k=1), dict[str, float])
    async for length in stream_async("q"):
        assert_type(length, int)
    async with request(name="typed", input="q"):
        assert_type(await search_async("q", k=2), dict[str, float])
