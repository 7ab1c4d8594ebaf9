"""Requests of our own: under chosen ids, registered, and kept apart from the application's."""

from __future__ import annotations

from datetime import datetime

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from retrospan import BoundSystem, Passage, Retrieval, bind, rag_system
from retrospan_collector.clickhouse.connection import Store
from retrospan_evaluator.errors import RefusedError
from retrospan_evaluator.identifiers import Identifiers
from retrospan_evaluator.replay.recorded_run import RunReader
from retrospan_evaluator.traces.reader import TraceReader
from retrospan_evaluator.traffic import PlannedRequest, traffic


@rag_system(name="echo", version="3", depth=2, top_k=1, index_version="none")
class Echo:
    """Answers with the first passage, or raises when asked to."""

    def retrieve(self, input: str, depth: int) -> Retrieval:
        return Retrieval(input, [Passage("p1", f"about {input}", 1.0), Passage("p2", "other")])

    def generate(self, input: str, context: tuple[Passage, ...]) -> str:
        if input == "fail":
            raise ValueError("no answer today")
        return context[0].text


@pytest.fixture
def echo() -> BoundSystem:
    return bind(Echo())


def test_requests_are_stored_under_the_ids_that_were_registered_for_them(
    store: Store, otlp_grpc: str, echo: BoundSystem, identifiers: Identifiers, now: datetime
) -> None:
    run_id = identifiers.run_id(now)
    planned = [
        PlannedRequest(trace_id=identifiers.trace_id(), run_id=run_id, case_id=f"case-{n}")
        for n in range(3)
    ]
    with traffic(store, otlp_grpc, echo.settings) as sent:
        sent.register(planned, kind="run", now=now, dataset_version="v1")
        for request in planned:
            made = sent.make(request, lambda: echo.answer("x"))
            assert made.outcome is not None and made.outcome.answer == "about x"
        stored = sent.recorded(TraceReader(store), [request.trace_id for request in planned])
    assert {(r.trace_id, r.run_id, r.case_id) for r in stored.values()} == {
        (request.trace_id, run_id, request.case_id) for request in planned
    }
    assert {r.service for r in stored.values()} == {"echo"}
    assert [row.trace_id for row in RunReader(store).run(run_id)] == [p.trace_id for p in planned]


def test_what_the_application_traces_is_neither_joined_nor_sent(
    store: Store, otlp_grpc: str, echo: BoundSystem, identifiers: Identifiers, now: datetime
) -> None:
    exported = InMemorySpanExporter()
    application = TracerProvider(shutdown_on_exit=False)
    application.add_span_processor(SimpleSpanProcessor(exported))
    request = PlannedRequest(trace_id=identifiers.trace_id(), run_id=identifiers.run_id(now))
    with (
        traffic(store, otlp_grpc, echo.settings) as sent,
        application.get_tracer("app").start_as_current_span("around"),
    ):
        sent.register([request], kind="run", now=now)
        sent.make(request, lambda: echo.answer("x"))
        stored = sent.recorded(TraceReader(store), [request.trace_id])
    assert list(stored) == [request.trace_id]
    assert [span.name for span in exported.get_finished_spans()] == ["around"]


def test_an_exception_of_the_system_is_a_result_and_is_stored(
    store: Store, otlp_grpc: str, echo: BoundSystem, identifiers: Identifiers, now: datetime
) -> None:
    request = PlannedRequest(trace_id=identifiers.trace_id(), run_id=identifiers.run_id(now))
    with traffic(store, otlp_grpc, echo.settings) as sent:
        sent.register([request], kind="run", now=now)
        made = sent.make(request, lambda: echo.answer("fail"))
        (stored,) = sent.recorded(TraceReader(store), [request.trace_id]).values()
    assert isinstance(made.error, ValueError)
    assert (stored.status, stored.error_type, stored.answer) == ("error", "ValueError", None)
    assert [passage.id for passage in stored.prompt] == ["p1"]


def test_a_request_that_leaves_no_span_is_refused(
    store: Store,
    otlp_grpc: str,
    echo: BoundSystem,
    identifiers: Identifiers,
    now: datetime,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    request = PlannedRequest(trace_id=identifiers.trace_id(), run_id=identifiers.run_id(now))
    with traffic(store, otlp_grpc, echo.settings) as sent:
        with pytest.raises(RefusedError, match="unset OTEL_SDK_DISABLED"):
            sent.make(request, lambda: echo.answer("x"))


def test_a_request_that_never_arrives_is_refused_and_not_waited_for_without_end(
    store: Store, otlp_grpc: str, echo: BoundSystem, identifiers: Identifiers
) -> None:
    with traffic(store, otlp_grpc, echo.settings) as sent:
        with pytest.raises(RefusedError, match="1 of 1 requests were sent but not assembled"):
            sent.recorded(TraceReader(store), [identifiers.trace_id()], within_s=0.0)
