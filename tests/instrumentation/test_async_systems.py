"""A decorated class whose stages are async, or whose answer is a stream."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import trace

from retrospan import Passage, Retrieval, bind, rag_system

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

    from tests.instrumentation.conftest import Recorder

FOUND = [Passage("a", "one"), Passage("b", "two"), Passage("c", "three")]


class Plain:
    def retrieve(self, input: str, depth: int) -> Any:
        return Retrieval(input, FOUND)


class Async:
    async def retrieve(self, input: str, depth: int) -> Any:
        await asyncio.sleep(0)
        return Retrieval(input, FOUND)


class Whole:
    def generate(self, input: str, context: tuple[Passage, ...]) -> Any:
        return {"answer": " ".join(item.text for item in context), "citations": [1]}


class AsyncWhole:
    async def generate(self, input: str, context: tuple[Passage, ...]) -> Any:
        await asyncio.sleep(0)
        return {"answer": " ".join(item.text for item in context), "citations": [1]}


class Yielding:
    def generate(self, input: str, context: tuple[Passage, ...]) -> Iterator[str]:
        for number, item in enumerate(context):
            yield item.text if number == 0 else f" {item.text}"


class AsyncYielding:
    async def generate(self, input: str, context: tuple[Passage, ...]) -> AsyncIterator[str]:
        for number, item in enumerate(context):
            await asyncio.sleep(0)
            yield item.text if number == 0 else f" {item.text}"


class Returning:
    def generate(self, input: str, context: tuple[Passage, ...]) -> Any:
        return iter([item.text if n == 0 else f" {item.text}" for n, item in enumerate(context)])


class AsyncReturning:
    async def generate(self, input: str, context: tuple[Passage, ...]) -> Any:
        return AsyncYielding().generate(input, context)


class AsyncReranking:
    async def rerank(self, input: str, passages: tuple[Passage, ...]) -> list[Passage]:
        await asyncio.sleep(0)
        return list(reversed(passages))


def system(*parts: type, name: str = "parts") -> Any:
    made: Any = type("System", parts, {})
    return rag_system(name=name, version="1", depth=3, top_k=2, index_version="1")(made)()


async def read(answer: Any) -> str:
    """The whole text of an answer of any kind."""
    output = await answer if inspect.isawaitable(answer) else answer
    if hasattr(type(output), "__aiter__"):
        return "".join([str(item) async for item in output])
    return str(output["answer"]) if isinstance(output, dict) else "".join(output)


RETRIEVERS = [Plain, Async]
GENERATORS = [Whole, AsyncWhole, Yielding, AsyncYielding, Returning, AsyncReturning]


def assert_one_request(recorder: Recorder, stages: list[str]) -> None:
    [root] = [span for span in recorder.spans if span.parent is None]
    assert root.context is not None
    assert sorted(stage_of(span) for span in recorder.spans) == sorted(stages)
    for span in recorder.spans:
        if span is not root:
            assert span.parent is not None and span.parent.span_id == root.context.span_id
    assert recorder.spans[-1] is root


def stage_of(span: ReadableSpan) -> str:
    return str((span.attributes or {})["retrospan.stage"])


@pytest.mark.parametrize("generator", GENERATORS)
@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_every_kind_of_system_answers_in_one_trace(
    retriever: type, generator: type, recorder: Recorder
) -> None:
    asked = system(retriever, generator)

    async def main() -> str:
        return await read(asked.answer("q"))

    assert asyncio.run(main()) == "one two"
    assert_one_request(recorder, ["request", "retrieve", "assemble", "generate"])
    assert recorder.attributes("generate")["retrospan.answer"] == "one two"
    assert recorder.attributes("generate")["retrospan.completed"] is True
    assert not trace.get_current_span().get_span_context().is_valid


@pytest.mark.parametrize("generator", GENERATORS)
@pytest.mark.parametrize("retriever", RETRIEVERS)
def test_every_kind_of_system_can_be_bound_asked_and_replayed(
    retriever: type, generator: type, recorder: Recorder
) -> None:
    bound = bind(system(retriever, generator))
    outcome = bound.answer("q")
    assert outcome.answer == "one two"
    assert [item.id for item in outcome.assembly.context] == ["a", "b"]
    again = bound.replay("q", FOUND, top_k=1, token_budget=None, budget_rule="stop")
    assert again.answer == "one"
    assert len([span for span in recorder.spans if stage_of(span) == "retrieve"]) == 1


def test_an_async_reranker_decides_the_order(recorder: Recorder) -> None:
    asked = system(Plain, AsyncReranking, AsyncYielding)

    async def main() -> str:
        return await read(asked.answer("q"))

    assert asyncio.run(main()) == "three two"
    assert_one_request(recorder, ["request", "retrieve", "rerank", "assemble", "generate"])
    assert recorder.attributes("rerank")["retrospan.rerank.input_position"] == (3, 2, 1)
    assert recorder.attributes("assemble")["retrospan.assembly.id"] == ("c", "b", "a")


@pytest.mark.parametrize("generator", [AsyncWhole, Whole])
def test_the_answer_of_an_async_system_is_a_coroutine_function(generator: type) -> None:
    assert inspect.iscoroutinefunction(system(Async, generator).answer)
    assert inspect.iscoroutinefunction(system(Plain, Whole).answer) is False


def test_an_answer_left_early_ends_the_whole_request(recorder: Recorder) -> None:
    asked = system(Async, AsyncYielding)

    async def main() -> None:
        stream = asked.answer("q")
        async for _ in stream:
            break
        await stream.aclose()

    asyncio.run(main())
    assert_one_request(recorder, ["request", "retrieve", "assemble", "generate"])
    assert recorder.attributes("generate")["retrospan.answer"] == "one"
    assert recorder.attributes("generate")["retrospan.completed"] is False
    assert "error.type" not in recorder.attributes("request")


def test_an_exception_in_an_async_stage_passes_unchanged(recorder: Recorder) -> None:
    problem = OSError("model down")

    class Failing:
        async def generate(self, input: str, context: tuple[Passage, ...]) -> str:
            raise problem

    async def main() -> None:
        with pytest.raises(OSError, match="model down") as caught:
            await system(Plain, Failing).answer("q")
        assert caught.value is problem

    asyncio.run(main())
    assert_one_request(recorder, ["request", "retrieve", "assemble", "generate"])
    for stage in ("generate", "request"):
        assert recorder.attributes(stage)["error.type"] == "OSError"
    assert recorder.attributes("generate")["retrospan.completed"] is False
    assert recorder.attributes("assemble")["retrospan.assembly.prompt_position"] == (1, 2, 0)


def test_a_cancelled_answer_ends_every_span(recorder: Recorder) -> None:
    class Waiting:
        async def generate(self, input: str, context: tuple[Passage, ...]) -> str:
            await asyncio.sleep(60)
            return "never"

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await system(Async, Waiting).answer("q")

    asyncio.run(main())
    assert_one_request(recorder, ["request", "retrieve", "assemble", "generate"])
    assert recorder.attributes("generate")["error.type"] == "CancelledError"


def test_a_subclass_may_turn_async(recorder: Recorder) -> None:
    base = type(system(Plain, Whole))

    class Later(base):  # type: ignore[valid-type, misc]  # a class of this test
        async def generate(self, input: str, context: tuple[Passage, ...]) -> str:
            return "later"

    async def main() -> Any:
        return await Later().answer("q")

    assert asyncio.run(main()) == "later"
    assert bind(Later()).answer("q").answer == "later"


def test_a_bound_system_keeps_one_event_loop_for_its_clients() -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    class Client:
        async def generate(self, input: str, context: tuple[Passage, ...]) -> str:
            loops.append(asyncio.get_running_loop())
            return "yes"

    bound = bind(system(Plain, Client))

    async def inside_a_loop() -> None:
        bound.answer("q")  # also from code that runs in a loop of its own

    bound.answer("q")
    asyncio.run(inside_a_loop())
    assert loops[0] is loops[1]


def test_a_bound_system_may_be_asked_from_inside_another_one(recorder: Recorder) -> None:
    inner = bind(system(Async, AsyncWhole, name="inner"))

    class Nested:
        async def generate(self, input: str, context: tuple[Passage, ...]) -> str:
            return str(inner.answer(input).answer)

    assert bind(system(Plain, Nested, name="outer")).answer("q").answer == "one two"
    assert len({span.context.trace_id for span in recorder.spans if span.context}) == 1
