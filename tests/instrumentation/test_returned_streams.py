"""A stream that a function returns is followed, and the object stays what it was."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pytest

from retrospan import generate, request

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

    from tests.instrumentation.conftest import Recorder


def assert_child_of(child: ReadableSpan, parent: ReadableSpan) -> None:
    assert child.parent is not None and parent.context is not None
    assert child.parent.span_id == parent.context.span_id


def test_i_stream_early_end_a_response_with_a_body_iterator_is_the_same_object(
    recorder: Recorder,
) -> None:
    """Case I-STREAM-EARLY-END, as web frameworks have it."""

    class Response:
        def __init__(self, body: AsyncIterator[str]) -> None:
            self.body_iterator = body

    made: list[Response] = []

    @generate
    async def tokens() -> AsyncIterator[str]:
        for text in ("to", "kens"):
            await asyncio.sleep(0)
            yield text

    @request
    async def endpoint(question: str) -> Response:
        made.append(Response(tokens()))
        return made[0]

    async def main() -> list[str]:
        response = await endpoint("q")
        assert response is made[0]
        assert recorder.spans == ()

        async def send() -> list[str]:
            return [text async for text in response.body_iterator]

        return await asyncio.create_task(send())

    assert asyncio.run(main()) == ["to", "kens"]
    assert recorder.attributes("generate")["retrospan.answer"] == "tokens"
    assert_child_of(recorder.span("generate"), recorder.span("request"))
    assert len(recorder.spans) == 2


def test_a_streaming_response_of_starlette_is_recorded_whole(recorder: Recorder) -> None:
    responses = pytest.importorskip("starlette.responses", reason="starlette is not installed")

    @generate
    def words() -> Iterator[str]:
        yield from ("one ", "two")

    @request
    def endpoint(question: str) -> Any:
        return responses.StreamingResponse(words())

    sent: list[bytes] = []

    async def send(message: dict[str, Any]) -> None:
        sent.append(message.get("body", b""))

    async def receive() -> dict[str, Any]:
        await asyncio.sleep(60)
        return {"type": "http.disconnect"}

    response = endpoint("q")
    asyncio.run(response({"type": "http", "asgi": {"spec_version": "2.4"}}, receive, send))
    assert b"".join(sent) == b"one two"
    assert recorder.attributes("generate")["retrospan.answer"] == "one two"
    assert_child_of(recorder.span("generate"), recorder.span("request"))


class Provider:
    """A stream as client libraries of model providers have it."""

    def __init__(self) -> None:
        self.response = "headers"
        self.closed = False
        self._items = iter(["x", "y", "z"])

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        return next(self._items)

    def __enter__(self) -> Provider:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self.closed = True


def test_a_providers_stream_passes_for_itself(recorder: Recorder) -> None:
    made = Provider()

    @generate
    def ask() -> Provider:
        return made

    stream = ask()
    assert isinstance(stream, Provider)
    assert stream.response == "headers"
    stream.response = "changed"
    assert made.response == "changed"
    with stream as entered:
        assert next(entered) == "x"
        assert next(iter(entered)) == "y"
    assert made.closed
    del stream, entered
    gc.collect()
    with request(name="later", input="q"):
        pass
    assert recorder.attributes("generate")["retrospan.answer"] == "xy"
    assert recorder.attributes("generate")["retrospan.completed"] is False


def test_a_providers_stream_that_is_closed_ends_there(recorder: Recorder) -> None:
    @generate
    def ask() -> Provider:
        return Provider()

    stream = ask()
    next(stream)
    stream.close()
    assert recorder.attributes("generate")["retrospan.completed"] is False
    assert recorder.attributes("generate")["retrospan.answer"] == "x"


def test_an_async_iterator_passes_for_itself(recorder: Recorder) -> None:
    class Items:
        left = 3

        def __aiter__(self) -> Items:
            return self

        async def __anext__(self) -> str:
            self.left -= 1
            if self.left < 0:
                raise StopAsyncIteration
            return "ab"[self.left % 2]

    @generate
    async def ask() -> Items:
        return Items()

    async def main() -> list[str]:
        stream = await ask()
        assert isinstance(stream, Items)
        return [item async for item in stream]

    assert asyncio.run(main()) == ["a", "b", "a"]
    assert recorder.attributes("generate")["retrospan.answer"] == "aba"


def test_an_async_iterable_is_followed_too(recorder: Recorder) -> None:
    class Iterable:
        async def __aiter__(self) -> AsyncIterator[str]:
            yield "once"

    @generate
    def ask() -> Iterable:
        return Iterable()

    async def main() -> list[str]:
        return [item async for item in ask()]

    assert asyncio.run(main()) == ["once"]
    assert recorder.attributes("generate")["retrospan.completed"] is True


def test_a_returned_coroutine_is_waited_for(recorder: Recorder) -> None:
    async def later() -> str:
        await asyncio.sleep(0)
        return "done"

    @generate
    def ask() -> Awaitable[str]:
        return later()

    async def main() -> str:
        return await ask()

    assert asyncio.run(main()) == "done"
    assert recorder.attributes("generate")["retrospan.answer"] == "done"


@pytest.mark.parametrize("ending", ["result", "exception", "cancel"])
def test_a_returned_task_is_the_same_object_and_recorded_when_done(
    ending: str, recorder: Recorder
) -> None:
    tasks: list[asyncio.Task[str]] = []

    @generate
    def ask() -> asyncio.Task[str]:
        tasks.append(asyncio.create_task(work()))
        return tasks[0]

    async def work() -> str:
        await asyncio.sleep(0 if ending != "cancel" else 60)
        if ending == "exception":
            raise OSError("down")
        return "done"

    async def main() -> None:
        task = ask()
        assert task is tasks[0]
        assert recorder.spans == ()
        await asyncio.sleep(0)
        if ending == "cancel":
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(main())
    recorded = recorder.attributes("generate")
    assert recorded.get("retrospan.answer") == ("done" if ending == "result" else None)
    assert recorded["retrospan.completed"] is (ending == "result")
    errors = {"result": None, "exception": "OSError", "cancel": "CancelledError"}
    assert recorded.get("error.type") == errors[ending]


def test_a_task_whose_exception_nobody_asks_for_is_still_reported_by_the_loop(
    recorder: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    @generate
    def ask() -> asyncio.Task[str]:
        return asyncio.create_task(work())

    async def work() -> str:
        raise OSError("down")

    async def main() -> None:
        ask()
        await asyncio.sleep(0.01)
        gc.collect()

    asyncio.run(main())
    assert "Task exception was never retrieved" in caplog.text
    assert recorder.attributes("generate")["error.type"] == "OSError"


def test_a_returned_future_of_an_executor_is_recorded_when_done(recorder: Recorder) -> None:
    with ThreadPoolExecutor(1) as pool:

        @generate
        def ask() -> Future[str]:
            return pool.submit(lambda: "done")

        assert ask().result() == "done"
    assert recorder.attributes("generate")["retrospan.answer"] == "done"
