"""Many requests at once, the quick form: the full one is the benchmark `soak`."""

from __future__ import annotations

from opentelemetry.sdk.trace import TracerProvider

from tests.benchmarks.instrumentation_soak import Ledger, soak


def test_requests_at_once_leave_no_open_span_no_mixed_trace_and_nothing_behind() -> None:
    soaked = soak(1_500, threads=16, tasks=100)
    assert soaked.requests == 1_500
    assert not any(soaked.faults.values()), soaked.faults
    assert soaked.errors == []
    assert soaked.is_clean, f"{soaked.leaked_objects} objects are left"


def test_the_soak_would_see_an_open_span_a_foreign_one_and_a_missing_one() -> None:
    ledger = Ledger()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(ledger)
    tracer = provider.get_tracer("soak")
    for number in (1, 2):
        with tracer.start_as_current_span("request", attributes={"input": f"n{number:07}"}):
            with tracer.start_as_current_span("retrieve", attributes={"query": "n0000001"}):
                pass
    open_span = tracer.start_span("request")
    faults = ledger.faults({1: 2, 2: 4})
    assert faults["open spans"] == 1
    assert faults["mixed spans"] == 1
    assert faults["requests with spans missing"] == 1
    open_span.end()
    provider.shutdown()
