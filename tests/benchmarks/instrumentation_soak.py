"""Many requests at once, and what is left of them: no open span, no mixed trace, no leak.

100,000 requests from 32 threads and 200 tasks of an event loop, one in two of which fails, is
left early, dropped or cancelled. Every span is looked at; beside it run the same requests while
nobody records.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter
from typing import Final

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider

from retrospan._tracing import use_provider
from tests.benchmarks.instrumentation_traffic import IN_TASKS, IN_THREADS, question
from tests.benchmarks.measurement import Beside, Measurement, Say, WrongAnswer

REQUESTS: Final = 100_000
QUICK_REQUESTS: Final = 2_000
THREADS: Final = 32
TASKS: Final = 200

_NUMBER: Final = re.compile(r"n(\d{7})")
_LEAKED_OBJECTS: Final = 2_000
"""Caches and the interpreter's own lists may grow by so much, whatever the number of requests."""


class Ledger(SpanProcessor):
    """Keeps of every span what tells whether it belongs where it stands."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.started = 0
        self.ended = 0
        self._request_of: dict[int, int] = {}
        self._root_of: dict[int, int] = {}
        self._parent_of: dict[int, int] = {}
        self._spans_of: dict[int, int] = {}
        self.mixed = 0
        """Spans that name another request than the rest of their trace, or stand elsewhere."""

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Count it."""
        with self._lock:
            self.started += 1

    def on_end(self, span: ReadableSpan) -> None:
        """Note its trace, its place in it and the request it names."""
        numbers = {int(number) for number in _NUMBER.findall(str(dict(span.attributes or {})))}
        identity = span.context
        with self._lock:
            self.ended += 1
            trace = identity.trace_id
            self._spans_of[trace] = self._spans_of.get(trace, 0) + 1
            if span.parent is None:
                self.mixed += trace in self._root_of
                self._root_of[trace] = identity.span_id
            else:
                known = self._parent_of.setdefault(trace, span.parent.span_id)
                self.mixed += known != span.parent.span_id
            for number in numbers:
                self.mixed += self._request_of.setdefault(trace, number) != number

    def faults(self, expected: dict[int, int]) -> dict[str, int]:
        """Return how many of each kind of fault there are, given the spans of each request."""
        counted = {self._request_of.get(trace): spans for trace, spans in self._spans_of.items()}
        return {
            "open spans": self.started - self.ended,
            "mixed spans": self.mixed,
            "traces with parents of another": sum(
                self._root_of.get(trace) != parent for trace, parent in self._parent_of.items()
            ),
            "traces too many": abs(len(self._spans_of) - len(expected)),
            "requests with spans missing": sum(
                counted.get(number) != spans for number, spans in expected.items()
            ),
        }


class _Errors(logging.Handler):
    """Keeps what is logged at ERROR, by anybody."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@dataclass(frozen=True, slots=True, kw_only=True)
class Soaked:
    """What a soak left behind."""

    requests: int
    spans: int
    seconds: float
    faults: dict[str, int]
    errors: list[str]
    leaked_objects: int

    @property
    def is_clean(self) -> bool:
        """Whether nothing is wrong."""
        return (
            not any(self.faults.values())
            and not self.errors
            and self.leaked_objects <= _LEAKED_OBJECTS
        )


def soak(requests: int, *, threads: int = THREADS, tasks: int = TASKS) -> Soaked:
    """Run so many requests and return what they left."""
    ledger = Ledger()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(ledger)
    _rush(2 * (threads + tasks), threads, tasks)  # what is made once is made now
    use_provider(provider)
    try:
        with _errors() as errors:
            objects = _objects()
            began = perf_counter()
            expected = _rush(requests, threads, tasks)
            seconds = perf_counter() - began
            leaked = _objects() - objects
    finally:
        use_provider(None)
        provider.shutdown()
    return Soaked(
        requests=len(expected),
        spans=ledger.ended,
        seconds=seconds,
        faults=ledger.faults(expected),
        errors=errors.messages,
        leaked_objects=leaked,
    )


def _rush(requests: int, threads: int, tasks: int) -> dict[int, int]:
    """Run the requests, half of them in threads; return how many spans each is to leave."""
    expected: dict[int, int] = {}
    half = requests // 2
    with ThreadPoolExecutor(threads) as pool, ThreadPoolExecutor(4) as others:

        def serve(first: int) -> None:
            for number in range(first, half, threads):
                kind = IN_THREADS[number % len(IN_THREADS)]
                expected[number] = kind.spans
                kind.run(question(number, kind.name), others)

        served = [pool.submit(serve, first) for first in range(threads)]
        asyncio.run(_rush_of_tasks(half, requests, tasks, expected))
        for thread in served:
            thread.result()
    return expected


async def _rush_of_tasks(begin: int, end: int, tasks: int, expected: dict[int, int]) -> None:
    async def serve(first: int) -> None:
        for number in range(first, end, tasks):
            kind = IN_TASKS[number % len(IN_TASKS)]
            expected[number] = kind.spans
            await kind.run(question(number, kind.name))

    async with asyncio.TaskGroup() as group:
        for first in range(begin, begin + tasks):
            group.create_task(serve(first))


def _objects() -> int:
    for _ in range(3):
        gc.collect()
    return len(gc.get_objects())


@contextmanager
def _errors() -> Iterator[_Errors]:
    handler = _Errors()
    logging.getLogger().addHandler(handler)
    try:
        yield handler
    finally:
        logging.getLogger().removeHandler(handler)


def run(*, quick: bool, say: Say) -> list[Measurement]:
    """Soak, and stop with what is wrong if anything is."""
    requests = QUICK_REQUESTS if quick else REQUESTS
    say(f"{requests:,} requests from {THREADS} threads and {TASKS} tasks")
    soaked = soak(requests)
    if not soaked.is_clean:
        raise WrongAnswer(f"{soaked.faults}, {soaked.leaked_objects} objects, {soaked.errors[:3]}")
    say("the same while nobody records")
    began = perf_counter()
    _rush(requests, THREADS, TASKS)
    unrecorded = perf_counter() - began
    return [
        Measurement(
            name="requests a second",
            value=soaked.requests / soaked.seconds,
            unit="/s",
            beside=(Beside(name="while nobody records", value=requests / unrecorded),),
        ),
        Measurement(name="spans looked at", value=soaked.spans, unit="spans"),
    ]
