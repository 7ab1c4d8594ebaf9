"""A stream is followed to its end, however it is given out and however its reader leaves."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import trace

from retrospan import generate, request, retrieve

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

    from tests.instrumentation.conftest import Recorder

PAUSE_S = 0.05


def duration_s(span: ReadableSpan) -> float:
    assert span.start_time is not None and span.end_time is not None
    return (span.end_time - span.start_time) / 1e9


def parent_id(span: ReadableSpan) -> int | None:
    return None if span.parent is None else int(span.parent.span_id)


def span_id(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.span_id)


@generate
async def five_chunks() -> AsyncIterator[str]:
    for number in range(5):
        await asyncio.sleep(0)
        yield str(number)


def test_i_async_exit_a_stream_left_early_logs_nothing_and_leaves_no_span_behind(
    recorder: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    """Case I-ASYNC-EXIT."""

    async def read_two(streams: list[Any]) -> None:
        stream = five_chunks()
        streams.append(stream)
        read = 0
        async for _ in stream:
            read += 1
            if read == 2:
                break

    async def main() -> None:
        streams: list[Any] = []
        await asyncio.create_task(read_two(streams))
        streams.clear()
        gc.collect()
        await asyncio.sleep(0.01)  # the loop closes what was collected in a task of its own

        @retrieve
        def find(query: str) -> list[str]:
            return []

        with request(name="next", input="q"):
            find("q")

    with caplog.at_level(logging.INFO):
        asyncio.run(main())
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
    left = recorder.attributes("generate")
    assert left["retrospan.answer"] == "01"
    assert left["retrospan.completed"] is False
    assert "error.type" not in left
    assert parent_id(recorder.span("retrieve")) == span_id(recorder.span("request"))
    assert parent_id(recorder.span("request")) is None


@pytest.mark.parametrize("ending", ["break", "cancel", "raise", "loop ends"])
def test_i_async_exit_whichever_way_the_reader_leaves(
    ending: str, recorder: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    """Case I-ASYNC-EXIT, every way out; the inner generator has something to clean up."""
    cleaned: list[bool] = []
    reading = asyncio.Event()

    @generate
    async def endless() -> AsyncIterator[str]:
        try:
            while True:
                yield "x"
                if ending == "cancel" and reading.is_set():
                    await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)
            cleaned.append(True)

    async def read(kept: list[Any]) -> None:
        stream = endless()
        kept.append(stream)
        read = 0
        async for _ in stream:
            read += 1
            if read == 2:
                reading.set()
                if ending == "break":
                    await stream.aclose()  # type: ignore[attr-defined]  # an async generator
                if ending == "raise":
                    raise ValueError("enough")
                if ending in ("break", "loop ends"):
                    return

    async def main(kept: list[Any]) -> None:
        task = asyncio.create_task(read(kept))
        if ending == "cancel":
            await reading.wait()
            await asyncio.sleep(0)
            task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert not trace.get_current_span().get_span_context().is_valid

    kept: list[Any] = []
    with caplog.at_level(logging.WARNING):
        asyncio.run(main(kept))
    assert cleaned == [True]
    assert caplog.messages == []
    assert recorder.attributes("generate")["retrospan.completed"] is False
    assert ("error.type" in recorder.attributes("generate")) == (ending == "cancel")


def test_i_stream_early_end_a_returned_generator_is_covered_to_its_end(recorder: Recorder) -> None:
    """Case I-STREAM-EARLY-END."""

    def chunks() -> Iterator[str]:
        tracer = trace.get_tracer("host", tracer_provider=recorder.provider)
        for text in "abc":
            time.sleep(PAUSE_S)
            with tracer.start_as_current_span(
                f"host {text}", attributes={"retrospan.stage": "host"}
            ):
                pass
            yield text

    @generate
    def answer() -> Iterator[str]:
        return chunks()

    @request
    def serve(question: str) -> Iterator[str]:
        return answer()

    assert list(serve("q")) == ["a", "b", "c"]
    generated = recorder.span("generate")
    recorded = recorder.attributes("generate")
    assert duration_s(generated) >= 3 * PAUSE_S
    assert PAUSE_S * 0.9 <= recorded["gen_ai.response.time_to_first_chunk"] < 2.5 * PAUSE_S
    assert recorded["retrospan.answer"] == "abc"
    assert recorded["retrospan.completed"] is True
    inner = [span for span in recorder.spans if span.name.startswith("host")]
    assert [parent_id(span) for span in inner] == [span_id(generated)] * 3
    assert parent_id(generated) == span_id(recorder.span("request"))
    assert duration_s(recorder.span("request")) >= duration_s(generated)


def test_a_stream_that_nobody_reads_is_ended_with_the_next_step(recorder: Recorder) -> None:
    @generate
    def ask() -> Iterator[str]:
        return iter(["never read"])

    ask()
    gc.collect()
    with request(name="later", input="q"):
        pass
    recorded = recorder.attributes("generate")
    assert recorded["retrospan.completed"] is False
    assert "retrospan.answer" not in recorded


def test_a_stream_that_breaks_is_recorded_as_far_as_it_came(recorder: Recorder) -> None:
    problem = ConnectionError("gone")

    @generate
    def ask() -> Iterator[str]:
        yield "half "
        yield "an answer"
        raise problem

    with pytest.raises(ConnectionError) as caught:
        list(ask())
    assert caught.value is problem
    recorded = recorder.attributes("generate")
    assert recorded["retrospan.answer"] == "half an answer"
    assert recorded["retrospan.completed"] is False
    assert recorded["error.type"] == "ConnectionError"


def test_nothing_is_current_between_two_items(recorder: Recorder) -> None:
    @generate
    def ask() -> Iterator[str]:
        assert trace.get_current_span().get_span_context().is_valid
        yield "a"
        assert trace.get_current_span().get_span_context().is_valid
        yield "b"

    for _ in ask():
        assert not trace.get_current_span().get_span_context().is_valid
    assert len(recorder.spans) == 1


def test_interleaved_streams_keep_their_own_parents(recorder: Recorder) -> None:
    @generate
    def inner(name: str) -> Iterator[str]:
        yield name
        yield name

    def outer(name: str) -> Iterator[str]:
        yield from inner(name)

    serve = [request(name=name, input=name)(outer) for name in ("one", "two")]
    streams = [serve[0]("one"), serve[1]("two")]
    for items in zip(*streams, strict=True):
        assert items == ("one", "two")
    requests = {span.name: span_id(span) for span in recorder.spans if "workflow" in span.name}
    generated = [span for span in recorder.spans if "workflow" not in span.name]
    assert {parent_id(span) for span in generated} == set(requests.values())


@pytest.mark.parametrize(
    "chunk",
    [
        lambda text: {"choices": [{"delta": {"content": text}}]},
        lambda text: {"type": "content_block_delta", "delta": {"text": text}},
        lambda text: {"answer": text},
        lambda text: text.encode(),
    ],
    ids=["chat", "blocks", "mapping", "bytes"],
)
def test_the_text_of_a_stream_is_put_together_whatever_its_items_are(
    chunk: Callable[[str], object], recorder: Recorder
) -> None:
    @generate
    def ask() -> Iterator[object]:
        for text in ("An", "swer", "!"):
            yield chunk(text)

    items = list(ask())
    assert items == [chunk("An"), chunk("swer"), chunk("!")]
    assert recorder.attributes("generate")["retrospan.answer"] == "Answer!"


def test_a_retriever_that_yields_is_one_retrieval(recorder: Recorder) -> None:
    @retrieve
    def find(query: str) -> Iterator[dict[str, str]]:
        yield {"id": "a", "text": "one"}
        yield {"id": "b", "text": "two"}

    assert [item["id"] for item in find("q")] == ["a", "b"]
    assert recorder.attributes("retrieve")["retrospan.passages.id"] == ("a", "b")


def test_the_end_of_the_loop_closes_every_open_stream_once(
    recorder: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    cleaned: list[str] = []

    @generate
    async def endless(name: str) -> AsyncIterator[str]:
        try:
            while True:
                yield name
        finally:
            await asyncio.sleep(0)
            cleaned.append(name)

    streams = [endless(str(number)) for number in range(8)]

    async def main() -> None:
        for stream in streams:
            async for _ in stream:
                break

    with caplog.at_level(logging.INFO):
        asyncio.run(main())
    assert sorted(cleaned) == [str(number) for number in range(8)]
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []
    assert len(recorder.spans) == 8
