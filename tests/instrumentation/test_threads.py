"""A request goes along into threads, executors and tasks, and never into a stranger's."""

from __future__ import annotations

import asyncio
import logging
import random
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from opentelemetry import trace

from retrospan import carry, generate, record_context, request, retrieve

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan

    from tests.instrumentation.conftest import Recorder


@retrieve(data_source_id="shelf")
def find(query: str) -> list[dict[str, str]]:
    return [{"id": f"{query}-1", "text": "one"}, {"id": f"{query}-2", "text": "two"}]


def stage(span: ReadableSpan) -> str:
    return str((span.attributes or {})["retrospan.stage"])


def assert_all_under_one_request(recorder: Recorder, count: int) -> None:
    root = recorder.span("request")
    found = [span for span in recorder.spans if stage(span) == "retrieve"]
    assert len(found) == count
    for span in found:
        assert span.context is not None and root.context is not None and span.parent is not None
        assert span.context.trace_id == root.context.trace_id
        assert span.parent.span_id == root.context.span_id


def test_i_threads_retrievals_in_a_pool_belong_to_their_request(recorder: Recorder) -> None:
    """Case I-THREADS."""
    with ThreadPoolExecutor(2) as pool, request(name="pooled", input="q"):
        carried = carry(find)
        futures = [pool.submit(carried, name) for name in ("a", "b")]
        assert [future.result()[0]["id"] for future in futures] == ["a-1", "b-1"]
    assert_all_under_one_request(recorder, 2)


def test_i_threads_also_when_the_request_has_ended(recorder: Recorder) -> None:
    """Case I-THREADS, the variant in which the worker starts late."""
    ended = threading.Event()

    def late(query: str) -> None:
        assert ended.wait(10)
        find(query)

    with ThreadPoolExecutor(2) as pool:
        with request(name="ended", input="q"):
            futures = [pool.submit(carry(late), name) for name in ("a", "b")]
        assert [stage(span) for span in recorder.spans] == ["request"]
        ended.set()
        for future in futures:
            future.result()
    assert_all_under_one_request(recorder, 2)


def test_i_threads_concurrent_requests_never_mix(recorder: Recorder) -> None:
    """Case I-THREADS, two requests that share a pool and wait for each other."""
    together = threading.Barrier(2, timeout=10)

    def serve(name: str, pool: ThreadPoolExecutor) -> None:
        with request(name=name, input=name):
            together.wait()
            future = pool.submit(carry(find), name)
            together.wait()
            future.result()

    with ThreadPoolExecutor(2) as pool, ThreadPoolExecutor(2) as servers:
        for done in [servers.submit(carry(serve), name, pool) for name in ("one", "two")]:
            done.result()
    traces: dict[int, set[str]] = {}
    for span in recorder.spans:
        assert span.context is not None
        recorded = span.attributes or {}
        name = recorded.get("retrospan.system.name", recorded.get("gen_ai.retrieval.query.text"))
        traces.setdefault(span.context.trace_id, set()).add(str(name))
    assert sorted(traces.values(), key=str) == [{"one"}, {"two"}]


def test_a_carried_function_keeps_its_value_its_exception_and_its_thread_clean() -> None:
    problem = ValueError("mine")

    def fail(value: int) -> int:
        if value:
            raise problem
        return 7

    carried = carry(fail)
    assert carried.__name__ == "fail"
    assert carried(0) == 7
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(ValueError, match="mine") as caught:
            pool.submit(carried, 1).result()
        assert caught.value is problem
        clean = pool.submit(lambda: trace.get_current_span().get_span_context().is_valid)
        assert not clean.result()


def test_tasks_of_a_group_belong_to_the_request_that_started_them(recorder: Recorder) -> None:
    @retrieve
    async def look(query: str) -> list[str]:
        await asyncio.sleep(0)
        return [query]

    @request
    async def serve(question: str) -> list[list[str]]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(look(f"{question} {n}")) for n in range(3)]
        return [task.result() for task in tasks]

    assert asyncio.run(serve("q")) == [["q 0"], ["q 1"], ["q 2"]]
    assert_all_under_one_request(recorder, 3)


def test_work_in_asyncios_own_threads_needs_no_carrying(recorder: Recorder) -> None:
    async def main() -> None:
        async with request(name="threaded", input="q"):
            await asyncio.gather(*(asyncio.to_thread(find, name) for name in "ab"))

    asyncio.run(main())
    assert_all_under_one_request(recorder, 2)


def test_an_event_loops_executor_takes_a_carried_function(recorder: Recorder) -> None:
    async def main() -> None:
        async with request(name="executor", input="q"):
            await asyncio.get_running_loop().run_in_executor(None, carry(find), "a")

    asyncio.run(main())
    assert_all_under_one_request(recorder, 1)


def test_what_is_assembled_follows_the_request_across_threads(recorder: Recorder) -> None:
    with ThreadPoolExecutor(1) as pool, request(name="across", input="q"):
        pool.submit(carry(find), "a").result()
        record_context(["a-2"])
    assert recorder.attributes("assemble")["retrospan.assembly.prompt_position"] == (0, 1)


@request(name="busy", input=lambda name, way: name)
async def busy(name: str, way: str) -> str:
    found = find(name)
    await asyncio.sleep(0)
    record_context([found[0]["id"]])
    answer = ""
    try:
        async for piece in pieces(name, way):
            answer += piece
            if way == "leave":
                break
    except OSError:
        return "failed"
    return answer


@generate
async def pieces(name: str, way: str) -> AsyncIterator[str]:
    yield name
    await asyncio.sleep(0)
    if way == "fail":
        raise OSError("provider down")
    yield "!"


@generate
def plain_pieces(name: str) -> Iterator[str]:
    yield name
    yield "!"


def threaded(name: str, way: str) -> None:
    with request(name="busy", input=name):
        found = find(name)
        record_context([found[0]["id"]])
        stream = plain_pieces(name)
        for _ in stream:
            if way == "leave":
                break
        if way == "fail":
            stream.close()  # type: ignore[attr-defined]  # a generator


def test_many_requests_at_once_stay_whole_and_apart(
    recorder: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    """A small soak: threads and tasks, with streams left early and exceptions."""
    chance = random.Random(5)
    work = [(f"r{n}", chance.choice(["whole", "leave", "fail"])) for n in range(600)]

    async def tasks() -> None:
        limit = asyncio.Semaphore(50)

        async def one(name: str, way: str) -> None:
            async with limit:
                await busy(name, way)

        async with asyncio.TaskGroup() as group:
            for name, way in work[:300]:
                group.create_task(one(name, way))

    with caplog.at_level(logging.ERROR), ThreadPoolExecutor(8) as pool:
        done = [pool.submit(carry(threaded), name, way) for name, way in work[300:]]
        asyncio.run(tasks())
        for future in done:
            future.result()
    assert caplog.messages == []
    traces: dict[int, list[ReadableSpan]] = {}
    for span in recorder.spans:
        assert span.context is not None
        traces.setdefault(span.context.trace_id, []).append(span)
    assert len(traces) == 600
    for spans in traces.values():
        assert sorted(map(stage, spans)) == ["assemble", "generate", "request", "retrieve"]
        [root] = [span for span in spans if stage(span) == "request"]
        name = str((root.attributes or {})["retrospan.input"]).strip('"')
        for span in spans:
            assert root.context is not None
            assert span is root or (span.parent and span.parent.span_id == root.context.span_id)
            recorded = span.attributes or {}
            assert str(recorded.get("gen_ai.retrieval.query.text", name)) == name
            assert str(recorded.get("retrospan.answer", name)).rstrip("!") == name
