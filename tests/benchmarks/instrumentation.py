"""What recording a request costs the thread that serves it, beside the same spans by hand.

A request of 10 passages with texts of 400 characters, captured in full, through a batch exporter
that throws away what it gets, or encodes it as OTLP first. The ways of recording take turns in
one process, and each ratio is the median of the ratios of single turns.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter, process_time, thread_time
from typing import Final, Literal

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from retrospan import assemble
from retrospan._batching import SizedExporter
from retrospan._tracing import use_provider
from retrospan._wire import encoded
from tests.benchmarks.instrumentation_requests import (
    BUDGET,
    PASSAGES,
    QUESTION,
    TOP_K,
    ByHand,
    Flat,
    HelpDesk,
    Index,
    answer_of,
)
from tests.benchmarks.measurement import Beside, Measurement, Say, WrongAnswer

_REQUESTS: Final = 100
"""A turn: its spans fit the batch processor's queue without waking its thread."""
_TURNS: Final = 150
_QUICK_TURNS: Final = 3
_STAGES: Final = 4
_IMPORTS: Final = 15
_QUICK_IMPORTS: Final = 2

Clock = Literal["thread_us", "wall_us", "process_us"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What one request took in one turn, in microseconds."""

    thread_us: float
    """Processor time of the thread that served it."""
    wall_us: float
    process_us: float
    """Processor time of all threads, until its spans were exported."""


Taken = Mapping[str, Sequence[Turn]]
"""The turns of each way of recording."""


def run(*, quick: bool, say: Say) -> list[Measurement]:
    """Check that the spans are equal, then let the ways of recording take turns."""
    _compare_spans()
    turns = _QUICK_TURNS if quick else _TURNS
    say("recording into nothing")
    thrown_away = _recorded(_Nowhere(), _Nowhere(), turns)
    say("recording and encoding")
    configured = _recorded(SizedExporter(_Configured()), _Encoded(), turns)
    theirs = _recorded(_Encoded(), _Encoded(), turns)
    say("no SDK, imports")
    return [
        *_figures("processor time of a request", thrown_away, "thread_us", hand=1.5, flat=2.0),
        *_figures("time of a request by the clock", thrown_away, "wall_us", hand=1.5),
        *_figures(
            "all threads, with OTLP encoding, by configure",
            configured,
            "process_us",
            hand=1.5,
            flat=1.5,
        ),
        *_figures("all threads, by the SDK's encoder", theirs, "process_us", hand=1.5),
        _without_sdk(turns),
        _import_time(_QUICK_IMPORTS if quick else _IMPORTS),
    ]


class _Nowhere(SpanExporter):
    """Throws everything away."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.SUCCESS


class _Encoded(SpanExporter):
    """Encodes as the SDK's exporters do, and throws the bytes away."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        encode_spans(spans).SerializeToString()
        return SpanExportResult.SUCCESS


class _Configured(SpanExporter):
    """Encodes as the exporters that `configure` sets up do, and throws the bytes away."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        encoded(spans)
        return SpanExportResult.SUCCESS


def _recorded(own: SpanExporter, others: SpanExporter, turns: int) -> Taken:
    """Let all ways take turns: ours with one exporter, those by hand with another."""
    provider, by_hand = (TracerProvider(shutdown_on_exit=False) for _ in range(2))
    provider.add_span_processor(BatchSpanProcessor(own))
    by_hand.add_span_processor(BatchSpanProcessor(others))

    def flush() -> None:
        provider.force_flush()
        by_hand.force_flush()

    use_provider(provider)
    try:
        return _take_turns(_ways(by_hand), turns, flush)
    finally:
        use_provider(None)
        provider.shutdown()
        by_hand.shutdown()


def _ways(by_hand_provider: TracerProvider) -> dict[str, Callable[[], object]]:
    tracer = by_hand_provider.get_tracer("by hand")
    answer = answer_of(HelpDesk(Index()))
    hand = ByHand(Index(), tracer)
    flat = Flat(Index(), tracer)

    def recorded() -> None:
        for _ in range(_REQUESTS):
            answer(QUESTION)

    def by_hand() -> None:
        for _ in range(_REQUESTS):
            hand.answer(QUESTION)

    def flat_spans() -> None:
        for _ in range(_REQUESTS):
            flat.answer(QUESTION)

    return {"recorded": recorded, "by hand": by_hand, "flat": flat_spans}


def _take_turns(
    ways: Mapping[str, Callable[[], object]], turns: int, flush: Callable[[], object]
) -> Taken:
    taken: dict[str, list[Turn]] = {name: [] for name in ways}
    for _ in range(turns + 1):
        for name, way in ways.items():
            wall, thread, process = perf_counter(), thread_time(), process_time()
            way()
            wall, thread = perf_counter() - wall, thread_time() - thread
            flush()
            process = process_time() - process
            scale = 1e6 / _REQUESTS
            taken[name].append(
                Turn(
                    thread_us=thread * scale,
                    wall_us=wall * scale,
                    process_us=process * scale,
                )
            )
    return {name: turns_taken[1:] for name, turns_taken in taken.items()}


def _figures(
    name: str,
    taken: Taken,
    clock: Clock,
    *,
    hand: float,
    flat: float | None = None,
) -> list[Measurement]:
    times = {way: [getattr(turn, clock) for turn in turns] for way, turns in taken.items()}
    typical = {way: median(values) for way, values in times.items()}
    figures = [
        Measurement(
            name=name,
            value=typical["recorded"],
            unit="µs",
            beside=tuple(
                Beside(name=way, value=typical[way]) for way in typical if way != "recorded"
            ),
        )
    ]
    for way, bar in (("by hand", hand), ("flat", flat)):
        if bar is not None:
            ratios = [own / other for own, other in zip(times["recorded"], times[way], strict=True)]
            figures.append(
                Measurement(
                    name=f"{name}, times {way}", value=median(ratios), unit="×", at_most=bar
                )
            )
    return figures


def _without_sdk(turns: int) -> Measurement:
    """What a stage costs where nobody set up an SDK: above calling the same methods by oneself."""
    desk = HelpDesk(Index())
    answer = answer_of(desk)

    def decorated() -> None:
        for _ in range(_REQUESTS):
            answer(QUESTION)

    def called() -> None:
        for _ in range(_REQUESTS):
            found = desk.retrieve(QUESTION, PASSAGES).candidates
            desk.generate(QUESTION, assemble(found, top_k=TOP_K, token_budget=BUDGET).context)

    taken = _take_turns({"decorated": decorated, "called": called}, turns, lambda: None)
    own, other = (median(turn.thread_us for turn in taken[way]) for way in taken)
    return Measurement(
        name="a stage without an SDK",
        value=(own - other) / _STAGES,
        unit="µs",
        at_most=5,
        beside=(Beside(name="the same methods called", value=other / _STAGES),),
    )


def _import_time(times: int) -> Measurement:
    """What `import retrospan` adds where opentelemetry-api is already imported."""
    own: list[float] = []
    other: list[float] = []
    _import_ms("retrospan")
    for _ in range(times):
        own.append(_import_ms("retrospan"))
        other.append(_import_ms("opentelemetry.sdk.trace"))
    return Measurement(
        name="import on top of opentelemetry-api",
        value=median(own),
        unit="ms",
        at_most=30,
        beside=(Beside(name="the SDK", value=median(other)),),
    )


def _import_ms(module: str) -> float:
    script = (
        "import time, opentelemetry.trace, opentelemetry.context\n"
        f"began = time.process_time(); import {module}\n"
        "print((time.process_time() - began) * 1e3)"
    )
    # As it is installed: compiled once, at the run that does not count.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return float(done.stdout)


def _compare_spans() -> None:
    """Stop unless the spans written by hand are the recorded ones, attribute for attribute."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    use_provider(provider)
    answer_of(HelpDesk(Index()))(QUESTION)
    use_provider(None)
    recorded = exporter.get_finished_spans()
    exporter.clear()
    ByHand(Index(), provider.get_tracer("by hand")).answer(QUESTION)
    by_hand = exporter.get_finished_spans()
    for own, other in zip(recorded, by_hand, strict=True):
        described, written = dict(own.attributes or {}), dict(other.attributes or {})
        if (own.name, own.kind, described) != (other.name, other.kind, written):
            names = sorted(
                name for name in {*described, *written} if described.get(name) != written.get(name)
            )
            raise WrongAnswer(f"{own.name} and {other.name} by hand differ in {', '.join(names)}")
