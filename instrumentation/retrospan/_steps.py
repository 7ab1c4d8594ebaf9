"""One span of a request, from its opening to its end, without ever disturbing the host."""

import time
from collections.abc import Callable, Mapping
from contextvars import ContextVar, Token
from queue import SimpleQueue
from types import TracebackType
from typing import Final

from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer
from opentelemetry.util.types import AttributeValue

from retrospan import attributes
from retrospan._capture import CaptureSettings
from retrospan._current import OpenRequest, open_request, with_open_request
from retrospan._encoding import clean_text
from retrospan._guard import guarded, note_fault
from retrospan._memory import RequestMemory
from retrospan._record import error_description

Attributes = Mapping[str, AttributeValue]

_ON_EVERY_SPAN: Final[Mapping[attributes.Stage, Attributes]] = {
    stage: {
        attributes.SCHEMA_VERSION: attributes.CURRENT_SCHEMA_VERSION,
        attributes.STAGE: stage.value,
    }
    for stage in attributes.Stage
}

_attachment: Final[ContextVar[object]] = ContextVar("retrospan-attachment")

_abandoned: Final[SimpleQueue[Callable[[], None]]] = SimpleQueue()


class Attached:
    """A block in which a span is the current one; for None, nothing changes.

    The block may be left in another execution context than it was entered in, when what runs in
    it was abandoned and is being collected. Nothing is detached there: the context belongs to
    somebody else, and OpenTelemetry would log an error.
    """

    __slots__ = ("_inside", "_mark", "_token")

    def __init__(self, inside: Context | None) -> None:
        self._inside = inside
        self._mark: Token[object] | None = None
        self._token: Token[Context] | None = None

    def __enter__(self) -> None:
        if self._inside is not None:
            try:
                self._mark = _attachment.set(None)
                self._token = context.attach(self._inside)
            except Exception as error:
                note_fault("enter a span's context", error)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        mark, token = self._mark, self._token
        if mark is None or token is None:
            return
        self._mark = self._token = None
        try:
            _attachment.reset(mark)
        except ValueError:  # this is not the context that was entered
            return
        try:
            context.detach(token)
        except Exception as fault:
            note_fault("leave a span's context", fault)


class Step:
    """One step of the host's code and the span for it.

    A context manager for a step that runs in one block. One that runs in pieces, as a stream
    does, is started, attached for each piece, and ended; it ends once, however often it is told.
    Exceptions of the host pass through and mark the span; faults of recording stay inside.
    """

    __slots__ = (
        "_attached",
        "_attaches",
        "_end_ns",
        "_ended",
        "_kind",
        "_name",
        "_opens",
        "_recording",
        "_span",
        "_stage",
        "_tracer",
        "inside",
        "request",
    )

    def __init__(
        self,
        tracer: Tracer | None,
        stage: attributes.Stage,
        name: str,
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        opens: CaptureSettings | None = None,
        attaches: bool = True,
    ) -> None:
        """Prepare a step.

        Args:
            tracer: None makes a step that records nothing.
            stage: the value of `retrospan.stage`.
            name: the span's name.
            kind: the span's kind.
            opens: given for a step that is a request of its own: what may be recorded in it.
            attaches: whether code runs in the step that could ask for the current span.
        """
        self._tracer = tracer
        self._name = name
        self._kind = kind
        self._stage = stage
        self._opens = opens
        self._attaches = attaches
        self._span: Span = trace.INVALID_SPAN
        self._attached: Attached | None = None
        self._end_ns: int | None = None
        self._recording = False
        self._ended = False
        self.inside: Context | None = None
        """The context of the step's own code; None where there is no span to be inside of."""

        self.request: OpenRequest | None = None
        """The request that this step is or belongs to; None where nobody listens."""

    @property
    def recording(self) -> bool:
        """Whether anybody listens."""
        return self._recording

    @property
    def recording_tracer(self) -> Tracer | None:
        """The tracer for the steps inside this one; None when this one is not recorded."""
        return self._tracer if self._recording else None

    def start(self) -> None:
        """Open the span, in the context that is current now."""
        end_abandoned()
        if self._tracer is None:
            return
        try:
            span = _start_span(self._tracer, self._stage, self._name, self._kind)
            self.follow(span)
        except Exception as error:
            note_fault("open a span", error)

    def follow(self, span: Span) -> None:
        """Take a span that was just started as the step's own."""
        self._span = span
        self._recording = span.is_recording()
        if self._attaches and not _is_nobodys(span):
            self.inside = trace.set_span_in_context(span)
            self._find_request(span)

    def _find_request(self, span: Span) -> None:
        if self._opens is None:
            self.request = open_request()
            if self.request is None and self._recording:
                self.request = _new_request(span, CaptureSettings())
        elif self.inside is not None:
            self.request = _new_request(span, self._opens)
            self.inside = with_open_request(self.inside, self.request)

    def attached(self) -> Attached:
        """Return a block in which the span is the current one."""
        return Attached(self.inside)

    def stop_clock(self) -> None:
        """Take the time now as the span's end, so that recording does not count as the step."""
        if self._recording:
            self._end_ns = time.time_ns()

    def record(self, describe: Callable[[], Attributes]) -> None:
        """Add attributes; `describe` is called only when somebody listens."""
        if self._recording:
            try:
                described = describe()
                if described:
                    self._span.set_attributes(described)
            except Exception as error:
                note_fault(f"record the {self._stage} step", error)

    def fail(self, error: BaseException) -> None:
        """Mark the span with what ended the step; being left early is not a failure."""
        if self._tracer is None or isinstance(error, GeneratorExit):
            return
        with guarded("record an exception"):
            self._end_ns = None
            name = clean_text(type(error).__qualname__)
            self._span.set_attribute(attributes.ERROR_TYPE, name)
            request = self.request or open_request()
            told = name if request is None else error_description(error, request.capture)
            self._span.set_status(Status(StatusCode.ERROR, told))

    def end(self) -> None:
        """End the span, the first time."""
        if self._tracer is None or self._ended:
            return
        self._ended = True
        try:
            self._span.end(self._end_ns)
        except Exception as error:
            note_fault("end a span", error)

    def enter(self) -> None:
        """Make the span the current one until the step is left."""
        if self.inside is not None:
            self._attached = Attached(self.inside)
            self._attached.__enter__()

    def __enter__(self) -> "Step":
        self.start()
        self.enter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None:
            self.fail(error)
        if self._attached is not None:
            self._attached.__exit__(kind, error, traceback)
        self.end()


def open_step(
    tracer: Tracer | None,
    stage: attributes.Stage,
    name: str,
    *,
    kind: SpanKind = SpanKind.INTERNAL,
    opens: CaptureSettings | None = None,
) -> Step | None:
    """Return a step that has begun; None, at the least cost, where nothing would come of it.

    Args:
        tracer: None where none was found.
        stage: the value of `retrospan.stage`.
        name: the span's name.
        kind: the span's kind.
        opens: given for a step that is a request of its own: what may be recorded in it.
    """
    end_abandoned()
    if tracer is None:
        return None
    try:
        span = _start_span(tracer, stage, name, kind)
        if _is_nobodys(span):
            return None
        step = Step(tracer, stage, name, kind=kind, opens=opens)
        step.follow(span)
    except Exception as error:
        note_fault("open a span", error)
        return None
    return step


def _start_span(tracer: Tracer, stage: attributes.Stage, name: str, kind: SpanKind) -> Span:
    return tracer.start_span(name, kind=kind, attributes=_ON_EVERY_SPAN[stage])


def _is_nobodys(span: Span) -> bool:
    """Return whether a span stands for no provider at all.

    Attaching costs more than starting a span, and an application without a provider gets nothing
    for it. An unsampled span is attached: spans inside must follow it.
    """
    if span.is_recording():
        return False
    return span.get_span_context() == trace.get_current_span().get_span_context()


def _new_request(span: Span, settings: CaptureSettings) -> OpenRequest:
    capture = settings.resolved()
    return OpenRequest(span=span, capture=capture, memory=RequestMemory(capture))


def end_later(end: Callable[[], None]) -> None:
    """Have an abandoned step ended at the next start of one.

    For finalizers: they run wherever the interpreter stands, which may be inside a lock that
    ending a span takes. This queue is the one that may be filled from there.
    """
    _abandoned.put(end)


def end_abandoned() -> None:
    """End the steps that finalizers left behind."""
    while not _abandoned.empty():
        with guarded("end an abandoned span"):
            _abandoned.get_nowait()()
