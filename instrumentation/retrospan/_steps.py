"""One span of a request, from its opening to its end, without ever disturbing the host."""

import time
from collections.abc import Callable, Mapping
from contextvars import Token
from types import TracebackType
from typing import Final

from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer
from opentelemetry.util.types import AttributeValue

from retrospan import attributes
from retrospan._encoding import clean_text
from retrospan._guard import guarded

Attributes = Mapping[str, AttributeValue]

_ON_EVERY_SPAN: Final[Mapping[attributes.Stage, Attributes]] = {
    stage: {
        attributes.SCHEMA_VERSION: attributes.CURRENT_SCHEMA_VERSION,
        attributes.STAGE: stage.value,
    }
    for stage in attributes.Stage
}


class Step:
    """A context manager around one step of the host's code, current while it runs.

    Exceptions of the host pass through unchanged and mark the span; faults of recording stay
    inside.
    """

    __slots__ = (
        "_end_ns",
        "_kind",
        "_name",
        "_recording",
        "_span",
        "_stage",
        "_token",
        "_tracer",
    )

    def __init__(
        self,
        tracer: Tracer | None,
        stage: attributes.Stage,
        name: str,
        *,
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> None:
        """Prepare a step.

        Args:
            tracer: None makes a step that records nothing.
            stage: the value of `retrospan.stage`.
            name: the span's name.
            kind: the span's kind.
        """
        self._tracer = tracer
        self._name = name
        self._kind = kind
        self._stage = stage
        self._span: Span = trace.INVALID_SPAN
        self._token: Token[Context] | None = None
        self._end_ns: int | None = None
        self._recording = False

    @property
    def recording_tracer(self) -> Tracer | None:
        """The tracer for the steps inside this one; None when this one is not recorded."""
        return self._tracer if self._recording else None

    def __enter__(self) -> "Step":
        if self._tracer is None:
            return self
        with guarded("open a span"):
            span = self._tracer.start_span(
                self._name, kind=self._kind, attributes=_ON_EVERY_SPAN[self._stage]
            )
            self._span = span
            self._recording = span.is_recording()
            # Attaching costs more than starting a span, and an application without a provider
            # gets nothing for it. An unsampled span is attached: spans inside must follow it.
            if span.get_span_context() != trace.get_current_span().get_span_context():
                self._token = context.attach(trace.set_span_in_context(span))
        return self

    def stop_clock(self) -> None:
        """Take the time now as the span's end, so that recording does not count as the step."""
        if self._recording:
            self._end_ns = time.time_ns()

    def record(self, describe: Callable[[], Attributes]) -> None:
        """Add attributes; `describe` is called only when somebody listens."""
        if self._recording:
            with guarded(f"record the {self._stage} step"):
                self._span.set_attributes(describe())

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._tracer is None:
            return
        if error is not None:
            with guarded("record an exception"):
                self._mark(error)
        if self._token is not None:
            with guarded("leave a span's context"):
                context.detach(self._token)
        with guarded("end a span"):
            self._span.end(self._end_ns)

    def _mark(self, error: BaseException) -> None:
        name = type(error).__qualname__
        self._end_ns = None
        self._span.set_attribute(attributes.ERROR_TYPE, clean_text(name))
        self._span.set_status(Status(StatusCode.ERROR, f"{clean_text(name)}: {clean_text(error)}"))
