"""A decorated function is what it was: its kind, its signature, and all of its protocol."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator
from typing import TYPE_CHECKING, Any

import pytest

from retrospan import ConfigurationError, generate, request, retrieve

if TYPE_CHECKING:
    from tests.instrumentation.conftest import Recorder

DECORATORS = [
    pytest.param(retrieve, id="retrieve"),
    pytest.param(generate, id="generate"),
    pytest.param(request, id="request"),
    pytest.param(retrieve(index_version="1"), id="retrieve with arguments"),
    pytest.param(generate(name="g"), id="generate with arguments"),
    pytest.param(request(name="r"), id="request with arguments"),
]


@pytest.mark.parametrize("decorate", DECORATORS)
def test_i_generator_protocol_the_value_of_a_generator_arrives(
    decorate: Callable[[Any], Any], recorder: Recorder
) -> None:
    """Case I-GENERATOR-PROTOCOL."""

    @decorate
    def counting() -> Generator[int, None, int]:
        yield 1
        return 42

    def reading() -> Generator[int, None, int]:
        return int((yield from counting()))

    generator = reading()
    assert next(generator) == 1
    with pytest.raises(StopIteration) as stop:
        next(generator)
    assert stop.value.value == 42
    assert len(recorder.spans) == 1


@pytest.mark.parametrize("decorate", DECORATORS)
def test_i_generator_protocol_an_async_generator_takes_what_is_sent(
    decorate: Callable[[Any], Any], recorder: Recorder
) -> None:
    """Case I-GENERATOR-PROTOCOL."""

    @decorate
    async def echo() -> AsyncGenerator[int, int]:
        sent = yield 0
        yield sent

    async def main() -> tuple[int, int]:
        generator = echo()
        first = await generator.asend(None)
        second = await generator.asend(7)
        with pytest.raises(StopAsyncIteration):
            await generator.asend(None)
        return first, second

    assert asyncio.run(main()) == (0, 7)
    assert len(recorder.spans) == 1


@pytest.mark.parametrize("decorate", DECORATORS)
def test_i_generator_protocol_close_runs_the_finally_at_once(
    decorate: Callable[[Any], Any], recorder: Recorder
) -> None:
    """Case I-GENERATOR-PROTOCOL."""
    closed: list[str] = []

    @decorate
    def plain() -> Generator[int, None, None]:
        try:
            yield 1
        finally:
            closed.append("plain")

    @decorate
    async def asynchronous() -> AsyncGenerator[int, None]:
        try:
            yield 1
        finally:
            await asyncio.sleep(0)
            closed.append("async")

    generator = plain()
    next(generator)
    generator.close()
    assert closed == ["plain"]

    async def main() -> None:
        stream = asynchronous()
        await stream.asend(None)
        await stream.aclose()
        assert closed == ["plain", "async"]

    asyncio.run(main())
    assert len(recorder.spans) == 2


@pytest.mark.parametrize("decorate", DECORATORS)
def test_i_generator_protocol_what_is_thrown_in_is_the_same_object(
    decorate: Callable[[Any], Any], recorder: Recorder
) -> None:
    """Case I-GENERATOR-PROTOCOL."""
    problem = ValueError("thrown")
    seen: list[BaseException] = []

    @decorate
    def plain() -> Generator[int, None, None]:
        try:
            yield 1
        except ValueError as error:
            seen.append(error)
            raise

    @decorate
    async def asynchronous() -> AsyncGenerator[int, None]:
        try:
            yield 1
        except ValueError as error:
            seen.append(error)
            yield 2

    generator = plain()
    next(generator)
    with pytest.raises(ValueError, match="thrown") as caught:
        generator.throw(problem)
    assert caught.value is problem

    async def main() -> int:
        stream = asynchronous()
        await stream.asend(None)
        item: int = await stream.athrow(problem)
        await stream.aclose()
        return item

    assert asyncio.run(main()) == 2
    assert seen == [problem, problem]


class Everything:
    """One of each kind."""

    def plain(self, query: str, *, k: int = 3) -> list[str]:
        """Documented."""
        return [query] * k

    async def coroutine(self, query: str) -> list[str]:
        return [query]

    def generator(self, query: str) -> Generator[str, None, None]:
        yield query

    async def async_generator(self, query: str) -> AsyncGenerator[str, None]:
        yield query


KINDS = (
    inspect.isfunction,
    inspect.iscoroutinefunction,
    inspect.isgeneratorfunction,
    inspect.isasyncgenfunction,
)


@pytest.mark.parametrize("decorate", DECORATORS)
@pytest.mark.parametrize("name", ["plain", "coroutine", "generator", "async_generator"])
def test_i_generator_protocol_inspect_sees_no_difference(
    name: str, decorate: Callable[[Any], Any]
) -> None:
    """Case I-GENERATOR-PROTOCOL."""
    original = getattr(Everything, name)
    decorated = decorate(original)
    assert [kind(decorated) for kind in KINDS] == [kind(original) for kind in KINDS]
    assert inspect.signature(decorated) == inspect.signature(original)
    for attribute in ("__name__", "__qualname__", "__module__", "__doc__", "__annotations__"):
        assert getattr(decorated, attribute) == getattr(original, attribute)


@pytest.mark.parametrize("decorate", DECORATORS)
def test_static_and_class_methods_stay_what_they_are(
    decorate: Callable[[Any], Any], recorder: Recorder
) -> None:
    class Index:
        name = "index"

        @decorate
        @staticmethod
        def static(query: str) -> str:
            return query

        @staticmethod
        @decorate
        def static_inside(query: str) -> str:
            return query

        @decorate
        @classmethod
        def of_class(cls, query: str) -> str:
            return f"{cls.name} {query}"

        @classmethod
        @decorate
        def of_class_inside(cls, query: str) -> str:
            return f"{cls.name} {query}"

        @decorate
        def of_instance(self, query: str) -> str:
            return f"{self.name} {query}"

    assert isinstance(inspect.getattr_static(Index, "static"), staticmethod)
    assert isinstance(inspect.getattr_static(Index, "of_class"), classmethod)
    assert Index.static("q") == Index().static_inside("q") == "q"
    assert Index.of_class("q") == Index().of_class_inside("q") == "index q"
    assert Index().of_instance("q") == "index q"
    assert len(recorder.spans) == 5


@pytest.mark.parametrize("decorate", DECORATORS)
def test_callables_that_are_no_functions_can_be_decorated(
    decorate: Callable[[Any], Any], recorder: Recorder
) -> None:
    class Searcher:
        def __call__(self, query: str, k: int) -> list[str]:
            return [query] * k

    assert decorate(Searcher())("q", 2) == ["q", "q"]
    assert decorate(functools.partial(Searcher(), k=1))("q") == ["q"]
    assert decorate(sorted)([2, 1]) == [1, 2]
    assert len(recorder.spans) == 3


@pytest.mark.parametrize("decorate", [retrieve, generate, request])
@pytest.mark.parametrize("thing", [3, Everything])
def test_what_is_no_function_is_refused(thing: Any, decorate: Callable[..., Any]) -> None:
    with pytest.raises(ConfigurationError, match="decorates a function; it was given"):
        decorate(thing)
