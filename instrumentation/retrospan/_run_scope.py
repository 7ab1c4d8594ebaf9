"""Mark the requests of a test run or a replay, and keep them out of the live traffic."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from opentelemetry import context, trace
from opentelemetry.trace import TracerProvider

_KEY = context.create_key("retrospan-run")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScope:
    """What requests recorded inside a scope carry, and where they go."""

    run_id: str
    case_id: str
    tracer_provider: TracerProvider | None


@contextmanager
def run_scope(
    *, run_id: str, case_id: str = "", tracer_provider: TracerProvider | None = None
) -> Iterator[None]:
    """Record every request inside as part of a run.

    The scope is part of the OpenTelemetry context and follows it into tasks and threads.

    Args:
        run_id: recorded as `retrospan.run.id`.
        case_id: recorded as `retrospan.case.id` when not empty.
        tracer_provider: takes the requests instead of the application's provider; each request
            then starts a trace of its own, whatever span the application has open. None for
            the provider of the scope around this one, if there is one.
    """
    outer = current_run()
    inherited = None if outer is None else outer.tracer_provider
    scope = RunScope(run_id=run_id, case_id=case_id, tracer_provider=tracer_provider or inherited)
    inside = context.set_value(_KEY, scope)
    if tracer_provider is not None:
        inside = trace.set_span_in_context(trace.INVALID_SPAN, inside)
    token = context.attach(inside)
    try:
        yield
    finally:
        context.detach(token)


def current_run() -> RunScope | None:
    """Return the scope this code runs in; None for live traffic."""
    scope = context.get_value(_KEY)
    return scope if isinstance(scope, RunScope) else None
