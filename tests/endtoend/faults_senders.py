"""Applications that send all the time with a real SDK, and a ledger of what was acknowledged."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from random import Random

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from tests.endtoend.serving import Service

_EXPORT_TIMEOUT_S = 5.0
"""The exporters try again by themselves within this time, as they do in an application."""

_LONGEST_TEXT = 4_000
_SPANS_AT_A_TIME = 2
_PAUSE_S = 0.02

SpanKey = tuple[str, str]
"""Trace id and span id, in hex as the store has them."""


class Ledger:
    """What was sent, what was acknowledged, and what is between the two."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._in_flight = 0
        self.acknowledged: dict[SpanKey, int] = {}
        """The size of the text of every span that was acknowledged."""
        self.given_up: set[SpanKey] = set()
        """Spans whose last word was a failure; nothing is promised of them but not to be twice."""
        self.sent_again = 0
        """Spans that were handed over again after their export had failed."""

    @property
    def in_flight(self) -> int:
        """Exports that were begun and not answered."""
        return self._in_flight

    def begins(self) -> None:
        """An export begins."""
        with self._lock:
            self._in_flight += 1

    def ends(self, spans: Sequence[ReadableSpan], *, acknowledged: bool, again: bool) -> None:
        """It ended; `again` when the spans will be handed over once more."""
        keys = [_key(span) for span in spans]
        with self._lock:
            self._in_flight -= 1
            if acknowledged:
                self.acknowledged.update(zip(keys, map(_text_size, spans), strict=True))
            elif again:
                self.sent_again += len(keys)
            else:
                self.given_up.update(keys)


class Senders:
    """Four applications, two over each transport, sending until they are told to stop."""

    def __init__(self, service: Service, seed: int) -> None:
        self.ledger = Ledger()
        self._stop = threading.Event()
        grpc = f"http://{service.address('otlp-grpc')}"
        http = f"http://{service.address('otlp-http')}/v1/traces"
        make: list[Callable[[], SpanExporter]] = [
            lambda: GrpcExporter(endpoint=grpc, insecure=True, timeout=_EXPORT_TIMEOUT_S),
            lambda: HttpExporter(endpoint=http, timeout=_EXPORT_TIMEOUT_S),
        ]
        self._threads = [
            threading.Thread(target=self._send, args=(exporter(), number, seed), daemon=True)
            for number, exporter in enumerate([*make, *make])
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Let every application send what it has and end."""
        self._stop.set()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive(), "a sender does not end"

    def _send(self, exporter: SpanExporter, number: int, seed: int) -> None:
        random = Random(f"{seed}-{number}")
        recording = _RecordingExporter(exporter, self.ledger, random, self._stop)
        provider = TracerProvider(
            resource=Resource({"service.name": f"application-{number}"}), shutdown_on_exit=False
        )
        provider.add_span_processor(
            BatchSpanProcessor(recording, schedule_delay_millis=10, max_export_batch_size=64)
        )
        tracer = provider.get_tracer("faults")
        while not self._stop.wait(_PAUSE_S):
            for _ in range(_SPANS_AT_A_TIME):
                with tracer.start_as_current_span("retrieve") as span:
                    span.set_attribute("text", "ن" * random.randint(1, _LONGEST_TEXT))
        provider.shutdown()


class _RecordingExporter(SpanExporter):
    """The SDK's own exporter, and an application that every other time does not give up.

    What is sent again may have been stored already, where only the answer was lost.
    """

    def __init__(
        self, exporter: SpanExporter, ledger: Ledger, random: Random, stop: threading.Event
    ) -> None:
        self._exporter = exporter
        self._ledger = ledger
        self._random = random
        self._stop = stop

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        while True:
            self._ledger.begins()
            result = self._exporter.export(spans)
            acknowledged = result is SpanExportResult.SUCCESS
            again = not acknowledged and not self._stop.is_set() and self._random.random() < 0.5
            self._ledger.ends(spans, acknowledged=acknowledged, again=again)
            if not again:
                return result

    def shutdown(self) -> None:
        self._exporter.shutdown()


def _key(span: ReadableSpan) -> SpanKey:
    context = span.get_span_context()
    assert context is not None
    return f"{context.trace_id:032x}", f"{context.span_id:016x}"


def _text_size(span: ReadableSpan) -> int:
    assert span.attributes is not None
    return len(str(span.attributes["text"]))
