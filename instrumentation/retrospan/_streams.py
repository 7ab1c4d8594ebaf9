"""Follow a stream: the span is open from the call to the stream's end, however it ends.

The span is the current one only while the stream itself runs. Between two items the consumer
runs, maybe in another task or thread, and must find its own context.
"""

import sys
import time
from collections.abc import AsyncGenerator, Awaitable
from typing import Any, Final

from retrospan._chunks import Chunks
from retrospan._guard import guarded, note_fault
from retrospan._steps import Step, end_later


class RecordedCall:
    """One call of a function: its step, and how what comes out of it is recorded."""

    __slots__ = ("_chunks", "_first_chunk_ns", "_over", "_started_ns", "step")

    keeps_chunks = False
    """Whether the record wants the items of a stream."""

    def __init__(self, step: Step) -> None:
        self.step: Final = step
        self._chunks: Chunks | None = None
        self._started_ns = time.perf_counter_ns()
        self._first_chunk_ns: int | None = None
        self._over = False

    def record_output(self, output: object) -> None:
        """Record what a call returned whole."""

    def record_stream(self, chunks: Chunks, first_chunk_s: float | None, completed: bool) -> None:
        """Record what a stream gave until it ended or was left."""

    def returned(self, output: object) -> None:
        """End the call with what it returned."""
        if not self._over:
            self._over = True
            if self.step.recording:
                try:
                    self.record_output(output)
                except Exception as error:
                    note_fault("record what a call returned", error)
            self.step.end()

    def failed(self, error: BaseException) -> None:
        """End the call with what it raised."""
        if not self._over:
            self.step.fail(error)
            self.stream_ended(completed=False)

    def received(self, item: object) -> None:
        """Take note of one item of a stream."""
        if self._over or not self.step.recording:
            return
        with guarded("take note of a stream's item"):
            if self._chunks is None:
                self._chunks = Chunks()
                self._first_chunk_ns = time.perf_counter_ns()
            if self.keeps_chunks:
                self._chunks.add(item)

    def stream_ended(self, *, completed: bool) -> None:
        """End the call with what its stream gave."""
        if self._over:
            return
        self._over = True
        if self.step.recording:
            with guarded("record a stream"):
                first = self._first_chunk_ns
                first_s = None if first is None else (first - self._started_ns) / 1e9
                self.record_stream(self._chunks or Chunks(), first_s, completed)
        self.step.end()

    def left(self) -> None:
        """End the call whose stream the consumer has closed."""
        self.step.stop_clock()
        self.stream_ended(completed=False)

    def abandoned(self) -> None:
        """End the call whose stream is being collected."""
        if not self._over:
            self.step.stop_clock()
            end_later(lambda: self.stream_ended(completed=False))


class Stream:
    """A generator or iterator whose steps are recorded."""

    __slots__ = ("_call", "_inner")

    def __init__(self, inner: Any, call: RecordedCall) -> None:
        self._inner = inner
        self._call = call

    def __iter__(self) -> "Stream":
        return self

    def __next__(self) -> Any:
        return self._step(self._inner.__next__)

    def send(self, value: Any) -> Any:
        """Step the generator with a value."""
        return self._step(self._inner.send, value)

    def throw(self, error: BaseException) -> Any:
        """Step the generator with an exception; with a GeneratorExit, its reader leaves."""
        return self._step(self._inner.throw, error, leaving=isinstance(error, GeneratorExit))

    def close(self) -> Any:
        """Close the generator, so that its `finally` runs now."""
        try:
            with self._call.step.attached():
                value = self._inner.close() if hasattr(self._inner, "close") else None
        except BaseException as error:
            self._call.failed(error)
            raise
        self._call.left()
        return value

    def _step(self, step: Any, *value: Any, leaving: bool = False) -> Any:
        try:
            with self._call.step.attached():
                item = step(*value)
        except StopIteration:
            self._call.step.stop_clock()
            self._call.stream_ended(completed=not leaving)
            raise
        except BaseException as error:
            self._call.failed(error)
            raise
        self._call.received(item)
        return item

    def __del__(self) -> None:
        self._call.abandoned()


class AsyncStream:
    """An async generator or iterator whose steps are recorded."""

    __slots__ = ("_call", "inner")

    def __init__(self, inner: Any, call: RecordedCall) -> None:
        self.inner: Final = inner
        self._call = call

    def begin(self) -> Awaitable[Any]:
        """Return the first step of the generator."""
        return self.step(_unregistered(self.inner))

    async def asend(self, value: Any) -> Any:
        """Step the generator with a value."""
        return await self.step(self.inner.asend(value))

    async def athrow(self, error: BaseException) -> Any:
        """Step the generator with an exception; with a GeneratorExit, its reader leaves."""
        leaving = isinstance(error, GeneratorExit)
        return await self.step(self.inner.athrow(error), leaving=leaving)

    async def closing(self, close: Awaitable[Any]) -> Any:
        """Wait for the stream to close, and end the record with it."""
        try:
            with self._call.step.attached():
                value = await close
        except BaseException as error:
            self._call.failed(error)
            raise
        self._call.left()
        return value

    async def step(self, item: Awaitable[Any], *, leaving: bool = False) -> Any:
        """Return the item, or end the record with the stream."""
        try:
            with self._call.step.attached():
                received = await item
        except StopAsyncIteration:
            self._call.step.stop_clock()
            self._call.stream_ended(completed=not leaving)
            raise
        except BaseException as error:
            self._call.failed(error)
            raise
        self._call.received(received)
        return received

    def __del__(self) -> None:
        self._call.abandoned()


def first_step(stream: AsyncStream | AsyncGenerator[Any, Any]) -> Awaitable[Any]:
    """Return the first step of an async generator that another one passes on."""
    return stream.begin() if isinstance(stream, AsyncStream) else _unregistered(stream)


def _unregistered(inner: AsyncGenerator[Any, Any]) -> Awaitable[Any]:
    """Return the first step of a generator that the event loop is not told of.

    The loop closes at its end every generator it knows. It knows the outer one, which closes the
    inner one itself; two closing at once is an error in the log.
    """
    firstiter, finalizer = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(firstiter=None, finalizer=None)
    try:
        return inner.asend(None)
    finally:
        sys.set_asyncgen_hooks(firstiter=firstiter, finalizer=finalizer)
