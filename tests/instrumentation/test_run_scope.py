"""Runs and live traffic: what carries a run's id, and which provider gets it."""

from __future__ import annotations

import contextvars
import threading
from typing import TYPE_CHECKING

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased

from retrospan import Passage, Retrieval, bind, rag_system, run_scope

if TYPE_CHECKING:
    from tests.instrumentation.conftest import Recorder


@rag_system(name="plain", version="1", depth=1, top_k=1, index_version="1")
class Plain:
    def retrieve(self, input: str, depth: int) -> Retrieval:
        return Retrieval(input, [])

    def generate(self, input: str, context: tuple[Passage, ...]) -> str:
        return "yes"


def test_requests_inside_carry_the_run_and_the_case(recorder: Recorder) -> None:
    with run_scope(run_id="run-7", case_id="refund", tracer_provider=recorder.provider):
        bind(Plain()).answer("q")
    recorded = recorder.attributes("request")
    assert recorded["retrospan.run.id"] == "run-7"
    assert recorded["retrospan.case.id"] == "refund"
    assert "retrospan.run.id" not in recorder.attributes("retrieve")


def test_a_run_without_a_case_has_no_case_id(recorder: Recorder) -> None:
    bind(Plain()).answer("q")
    assert "retrospan.case.id" not in recorder.attributes("request")


def test_scopes_nest_and_end(recorder: Recorder) -> None:
    with run_scope(run_id="inner"):
        bind(Plain()).answer("q")
    bind(Plain()).answer("q")
    runs = [
        (span.attributes or {})["retrospan.run.id"]
        for span in recorder.spans
        if span.name.startswith("invoke")
    ]
    assert runs == ["inner", "test-run"]


def test_a_run_with_its_own_provider_starts_its_own_trace(recorder: Recorder) -> None:
    application = TracerProvider(shutdown_on_exit=False).get_tracer("application")
    with application.start_as_current_span("http") as outer:
        with run_scope(run_id="r", tracer_provider=recorder.provider):
            bind(Plain()).answer("q")
        request = recorder.span("request")
        assert request.parent is None
        assert request.context is not None
        assert request.context.trace_id != outer.get_span_context().trace_id


def test_a_system_asked_inside_another_joins_its_trace(recorder: Recorder) -> None:
    @rag_system(name="outer", version="1", depth=1, top_k=1, index_version="1")
    class Outer:
        def retrieve(self, input: str, depth: int) -> Retrieval:
            return Retrieval(input, [])

        def generate(self, input: str, context: tuple[Passage, ...]) -> object:
            return bind(Plain()).answer(input).output

    bind(Outer()).answer("q")
    assert len({span.context.trace_id for span in recorder.spans if span.context}) == 1
    assert len(recorder.spans) == 8


def test_two_runs_in_two_threads_do_not_mix() -> None:
    exporters = [InMemorySpanExporter(), InMemorySpanExporter()]
    barrier = threading.Barrier(2, timeout=30)

    def work(number: int) -> None:
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(exporters[number]))
        with run_scope(run_id=f"run-{number}", tracer_provider=provider):
            barrier.wait()
            bind(Plain()).answer("q")
            barrier.wait()

    threads = [threading.Thread(target=work, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, exporter in enumerate(exporters):
        [request] = [
            span for span in exporter.get_finished_spans() if span.name.startswith("invoke")
        ]
        assert (request.attributes or {})["retrospan.run.id"] == f"run-{number}"


def test_a_copied_context_takes_the_run_into_a_thread(recorder: Recorder) -> None:
    copied = contextvars.copy_context()
    thread = threading.Thread(target=copied.run, args=(bind(Plain()).answer, "q"))
    thread.start()
    thread.join()
    assert recorder.attributes("request")["retrospan.run.id"] == "test-run"


def test_an_exception_inside_ends_the_scope_and_passes(recorder: Recorder) -> None:
    with pytest.raises(LookupError), run_scope(run_id="failing"):
        raise LookupError
    bind(Plain()).answer("q")
    assert recorder.attributes("request")["retrospan.run.id"] == "test-run"


def test_an_unsampled_request_records_nothing_and_takes_its_inner_spans_with_it() -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(sampler=ParentBased(ALWAYS_OFF), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    follower = TracerProvider(shutdown_on_exit=False)
    follower.add_span_processor(SimpleSpanProcessor(exporter))
    counted: list[str] = []

    @rag_system(name="unsampled", version="1", depth=1, top_k=1, index_version="1")
    class Unsampled:
        def retrieve(self, input: str, depth: int) -> Retrieval:
            return Retrieval(input, [Passage("a")])

        def count_tokens(self, passage: Passage) -> int:
            counted.append(passage.id)
            return 1

        def generate(self, input: str, context: tuple[Passage, ...]) -> str:
            with follower.get_tracer("llm").start_as_current_span("chat"):
                return "yes"

    with run_scope(run_id="r", tracer_provider=provider):
        assert bind(Unsampled()).answer("q").answer == "yes"
    assert exporter.get_finished_spans() == ()
    assert counted == []
