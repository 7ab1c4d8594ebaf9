"""Requests of every kind for the soak: functions, streams, failures, and consumers that leave."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from concurrent.futures import Executor
from contextlib import aclosing
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from retrospan import Passage, assemble, carry, generate, request, retrieve

CHUNKS: Final = 5


class Broken(Exception):
    """What a step of the host raises."""


def question(number: int, kind: str) -> str:
    """A question that tells which request it is."""
    return f"n{number:07} {kind}"


@retrieve
def search(query: str) -> list[Passage]:
    """Five passages whose ids name the request."""
    return _found(query)


@retrieve
async def search_async(query: str) -> list[Passage]:
    """The same, after the others had their turn."""
    await asyncio.sleep(0)
    return _found(query)


def _found(query: str) -> list[Passage]:
    number, kind = query.split()
    if kind == "search_fails":
        raise Broken(query)
    return [Passage(f"{number}-{place}", f"text {place} of {number}") for place in range(5)]


@generate
def write(query: str, context: tuple[Passage, ...]) -> str:
    """An answer that names the request."""
    if query.endswith("write_fails"):
        raise Broken(query)
    return f"{query} from {context[0].id}"


@generate
def stream(query: str, context: tuple[Passage, ...]) -> Iterator[str]:
    """An answer in pieces, each of which names the request."""
    for place in range(CHUNKS):
        yield f"{query} from {context[place % len(context)].id} "


@generate
async def stream_async(query: str, context: tuple[Passage, ...]) -> AsyncIterator[str]:
    """The same, in turns with the others; one kind never gets to its third piece."""
    for place in range(CHUNKS):
        if place == 2 and query.endswith("cancelled"):
            await asyncio.Event().wait()
        await asyncio.sleep(0)
        yield f"{query} from {context[place % len(context)].id} "


@request(name="soak")
def answer(query: str) -> str:
    """A request of plain functions."""
    return write(query, assemble(search(query), top_k=3).context)


@request(name="soak")
def answer_streamed(query: str) -> Iterator[str]:
    """A request that ends with its stream."""
    yield from stream(query, assemble(search(query), top_k=3).context)


@request(name="soak")
async def answer_streamed_async(query: str) -> AsyncIterator[str]:
    """The same for an event loop."""
    context = assemble(await search_async(query), top_k=3).context
    async with aclosing(stream_async(query, context)) as pieces:  # type: ignore[type-var]  # a generator
        async for piece in pieces:
            yield piece


def whole(query: str, executor: Executor) -> None:
    """A request that goes well, and one that does not."""
    try:
        answer(query)
    except Broken:
        return


def streamed(query: str, executor: Executor) -> None:
    """A stream read to its end."""
    for _ in answer_streamed(query):
        pass


def left_early(query: str, executor: Executor) -> None:
    """A stream that is closed after two pieces."""
    pieces = answer_streamed(query)
    list(islice(pieces, 2))
    pieces.close()  # type: ignore[attr-defined]  # a generator


def dropped(query: str, executor: Executor) -> None:
    """A stream that nobody closes."""
    next(answer_streamed(query))


def carried(query: str, executor: Executor) -> None:
    """A request that retrieves in another thread."""
    with request(name="soak", input=query):
        found = executor.submit(carry(search), query)
        write(query, assemble(found.result(), top_k=3).context)


async def streamed_async(query: str) -> None:
    """A stream read to its end."""
    async for _ in answer_streamed_async(query):
        pass


async def left_early_async(query: str) -> None:
    """A stream that the loop leaves after two pieces."""
    read = 0
    async for _ in answer_streamed_async(query):
        read += 1
        if read == 2:
            break


async def cancelled(query: str) -> None:
    """A task that is cancelled while it waits for the third piece."""
    reading = asyncio.create_task(streamed_async(query))
    for _ in range(12):
        await asyncio.sleep(0)
    reading.cancel()
    await asyncio.wait([reading])


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of request, and how many spans it leaves."""

    name: str
    spans: int
    run: Callable[[str, Executor], None]


@dataclass(frozen=True, slots=True)
class AsyncKind:
    """One kind of request of an event loop."""

    name: str
    spans: int
    run: Callable[[str], Coroutine[Any, Any, None]]


IN_THREADS: Final = (
    Kind("whole", 4, whole),
    Kind("search_fails", 2, whole),
    Kind("write_fails", 4, whole),
    Kind("streamed", 4, streamed),
    Kind("left_early", 4, left_early),
    Kind("dropped", 4, dropped),
    Kind("carried", 4, carried),
)
IN_TASKS: Final = (
    AsyncKind("streamed", 4, streamed_async),
    AsyncKind("left_early", 4, left_early_async),
    AsyncKind("cancelled", 4, cancelled),
)
