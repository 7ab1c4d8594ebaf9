"""Requests this process makes itself: traffic with a run id, over OTLP like any other.

A run and a replay go the way production traffic goes: spans, receiver, store, assembler. Only
the provider is this module's own, so that nothing reaches the exporter of the application whose
code is being called, and every trace id is chosen and registered before a span leaves.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import grpc
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator, RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON

from retrospan import Outcome, SystemSettings, run_scope
from retrospan_collector.clickhouse.connection import Store
from retrospan_collector.clickhouse.evaluation_rows import RunKind, RunRow
from retrospan_collector.clickhouse.sample_key import sample_key
from retrospan_evaluator.errors import RefusedError
from retrospan_evaluator.traces.reader import TraceReader
from retrospan_evaluator.traces.request import RecordedRequest

SPANS_PER_EXPORT = 128
"""Spans in one export: enough to share the receiver's sync, far below its size limit."""

ASSEMBLED_WITHIN_S = 60.0
"""How long the requests may take from the last span sent to the last row assembled."""

_SHORTEST_WAIT_S = 0.05
_LONGEST_WAIT_S = 0.5
_WAITS_PER_LOOK = 9
"""So many times the last look lasts the wait for the next: a tenth of the time is spent looking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRequest:
    """A request before it is made, under the trace id it will have."""

    trace_id: str
    run_id: str
    case_id: str = ""
    repeat: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """What calling the system came to, as seen in this process."""

    outcome: Outcome | None
    error: Exception | None


class Traffic:
    """Makes requests of one system and waits until they stand in the store."""

    def __init__(self, store: Store, otlp_grpc: str, system: SystemSettings) -> None:
        self._store = store
        self._system = system
        self._ids = _ChosenIds()
        self._outbox = _Outbox(otlp_grpc)
        self._provider = TracerProvider(
            # What the shell happens to set must neither thin the traffic out nor cut it short.
            sampler=ALWAYS_ON,
            span_limits=SpanLimits(
                max_attributes=SpanLimits.UNSET, max_attribute_length=SpanLimits.UNSET
            ),
            resource=Resource({SERVICE_NAME: system.name}),
            id_generator=self._ids,
            shutdown_on_exit=False,
        )
        self._provider.add_span_processor(self._outbox)

    def register(
        self,
        requests: Sequence[PlannedRequest],
        *,
        kind: RunKind,
        now: datetime,
        dataset: str = "",
        dataset_version: str = "",
        settings: str = "{}",
    ) -> None:
        """Write down which traces belong to which run; only registered ones are its results.

        Args:
            dataset: the path the cases were read from.
            settings: the settings that were changed for the run, as a JSON object.
        """
        self._store.insert(
            "runs",
            [
                RunRow(
                    run_id=request.run_id,
                    case_id=request.case_id,
                    repeat=request.repeat,
                    trace_id=request.trace_id,
                    sample_key=sample_key(request.trace_id),
                    kind=kind,
                    system=self._system.name,
                    system_version=self._system.version,
                    dataset=dataset,
                    dataset_version=dataset_version,
                    settings=settings,
                    created_at=now,
                )
                for request in requests
            ],
        )

    def make(self, request: PlannedRequest, call: Callable[[], Outcome]) -> Made:
        """Make one request under its trace id; an exception of the system is part of the result."""
        self._ids.choose(int(request.trace_id, 16))
        try:
            with run_scope(
                run_id=request.run_id, case_id=request.case_id, tracer_provider=self._provider
            ):
                made = Made(outcome=call(), error=None)
        except Exception as error:
            made = Made(outcome=None, error=error)
        if self._ids.withdraw():
            raise RefusedError(
                f"the system {self._system.name!r} recorded no span for the request it was given"
                + (f": {made.error}" if made.error else ": unset OTEL_SDK_DISABLED if it is set")
            ) from made.error
        self._outbox.send_when_full()
        return made

    def recorded(
        self, reader: TraceReader, trace_ids: Sequence[str], *, within_s: float = ASSEMBLED_WITHIN_S
    ) -> dict[str, RecordedRequest]:
        """Send what is left and return the requests as the store has them."""
        self._outbox.send()
        deadline = time.monotonic() + within_s
        found: dict[str, RecordedRequest] = {}
        while True:
            looked_at = time.monotonic()
            missing = [trace_id for trace_id in trace_ids if trace_id not in found]
            found.update(reader.requests(missing))
            if len(found) == len(set(trace_ids)):
                return found
            if time.monotonic() > deadline:
                raise RefusedError(
                    f"{len(set(trace_ids)) - len(found)} of {len(set(trace_ids))} requests were "
                    f"sent but not assembled within {within_s:g} s: "
                    "ask `retrospan doctor` whether the store's owner is working"
                )
            wait_s = _WAITS_PER_LOOK * (time.monotonic() - looked_at)
            time.sleep(min(max(wait_s, _SHORTEST_WAIT_S), _LONGEST_WAIT_S))

    def close(self) -> None:
        """Give the connection back; what was not sent is dropped."""
        self._provider.shutdown()


@contextmanager
def traffic(store: Store, otlp_grpc: str, system: SystemSettings) -> Iterator[Traffic]:
    """Traffic of one system to the receiver at `otlp_grpc` (host:port)."""
    made = Traffic(store, otlp_grpc, system)
    try:
        yield made
    finally:
        made.close()


class _ChosenIds(IdGenerator):
    """Gives the next root span the chosen trace id; anything further is random."""

    def __init__(self) -> None:
        self._chosen: int | None = None
        self._random = RandomIdGenerator()

    def choose(self, trace_id: int) -> None:
        """The next trace has this id."""
        self._chosen = trace_id

    def withdraw(self) -> bool:
        """Whether no trace took the chosen id; none will any more."""
        left, self._chosen = self._chosen is not None, None
        return left

    def generate_span_id(self) -> int:
        return self._random.generate_span_id()

    def generate_trace_id(self) -> int:
        chosen, self._chosen = self._chosen, None
        return chosen if chosen is not None else self._random.generate_trace_id()


class _Outbox(SpanProcessor):
    """Keeps ended spans until they are sent, and fails loudly when they cannot be.

    The SDK's batching processor drops spans when its queue is full; a run may lose none.
    """

    def __init__(self, otlp_grpc: str) -> None:
        self._address = otlp_grpc
        self._lock = threading.Lock()
        self._ended: list[ReadableSpan] = []
        self._exporter = OTLPSpanExporter(
            endpoint=f"http://{otlp_grpc}",
            insecure=True,
            # Not empty: the exporter would else send the application's own headers and keys.
            headers=(("x-retrospan-traffic", "run"),),
            compression=grpc.Compression.NoCompression,
            channel_options=(
                ("grpc.enable_http_proxy", 0),  # type: ignore[arg-type]  # a whole number in gRPC
            ),
        )

    def on_end(self, span: ReadableSpan) -> None:
        with self._lock:
            self._ended.append(span)

    def send_when_full(self) -> None:
        if len(self._ended) >= SPANS_PER_EXPORT:
            self.send()

    def send(self) -> None:
        with self._lock:
            ended, self._ended = self._ended, []
        for start in range(0, len(ended), SPANS_PER_EXPORT):
            batch = ended[start : start + SPANS_PER_EXPORT]
            if self._exporter.export(batch) is not SpanExportResult.SUCCESS:
                raise RefusedError(
                    f"the receiver at {self._address} did not take {len(batch)} spans: "
                    "ask `retrospan doctor` what holds it up, then run again"
                )

    def shutdown(self) -> None:
        self._exporter.shutdown()
