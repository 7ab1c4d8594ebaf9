"""What somebody thought of an answer, recorded from whichever process hears of it."""

import math
import re
import time
from dataclasses import dataclass
from typing import Final

from opentelemetry.context import Context
from opentelemetry.trace import (
    Link,
    Span,
    SpanContext,
    TraceFlags,
    format_span_id,
    format_trace_id,
)

from retrospan import attributes
from retrospan._capture import Capture, CaptureSettings
from retrospan._current import open_request
from retrospan._encoding import clean_text
from retrospan._guard import guarded, note_once
from retrospan._record import Attributes
from retrospan._run_scope import current_run
from retrospan._tracing import tracer_for

_REFERENCE: Final = re.compile(
    r"(?:[0-9a-f]{2}-)?(?P<trace>[0-9a-f]{32})(?:-(?P<span>[0-9a-f]{16})(?:-[0-9a-f]{2})?)?"
)
_NO_SPAN: Final = "0" * 16
_NO_TRACE: Final = "0" * 32


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestReference:
    """What a front end keeps of a request, to send feedback about it later.

    As a text it is `TRACE_ID-SPAN_ID`, which `feedback` takes.
    """

    trace_id: str
    """32 hexadecimal digits."""

    span_id: str
    """16 hexadecimal digits."""

    recorded: bool
    """Whether the request is recorded; of one that was not sampled nobody will find the rest."""

    def __str__(self) -> str:
        return f"{self.trace_id}-{self.span_id}"


def current_request() -> RequestReference | None:
    """Return the request that this code runs in; None outside of one, or without a provider."""
    with guarded("find the current request"):
        request = open_request()
        return None if request is None else reference_to(request.span)
    return None


def reference_to(span: Span) -> RequestReference | None:
    """Return the reference to a request's span; None where nothing gave it an id."""
    with guarded("name a request"):
        known = span.get_span_context()
        if known.is_valid:
            return RequestReference(
                trace_id=format_trace_id(known.trace_id),
                span_id=format_span_id(known.span_id),
                recorded=known.trace_flags.sampled,
            )
    return None


def feedback(
    request: RequestReference | str | None = None,
    *,
    score: float | None = None,
    label: str | None = None,
    comment: str | None = None,
    kind: str = "complaint",
) -> None:
    """Record what somebody thought of an answer, as a span of its own that takes no time.

    It may come from any process and at any time, and is never an error to the caller.

    Args:
        request: the request it is about: a `RequestReference`, its text, a trace id of 32
            hexadecimal digits, or a `traceparent`; None for the one this code runs in.
        score: such as 1 for a thumb up and 0 for a thumb down.
        label: a word of a fixed list, such as `wrong` or `outdated`.
        comment: what was written, under the same redaction and capture as an answer.
        kind: what the feedback is; analyses group by it.
    """
    with guarded("record feedback"):
        about = _about(request)
        if about is None:
            note_once(
                "feedback",
                "feedback names no request: give the trace id of one, as 32 hexadecimal digits",
            )
            return
        inside = open_request() if request is None else None
        capture = CaptureSettings().resolved() if inside is None else inside.capture
        recorded = _recorded(about, score, label, comment, kind, capture)
        now = time.time_ns()
        # A root of its own: it must neither change the request's trace, which is long stored,
        # nor hang below the page that happened to send it.
        span = tracer_for(current_run()).start_span(
            f"feedback {clean_text(kind)}",
            context=Context(),
            attributes=recorded,
            links=_links(about),
            start_time=now,
        )
        span.end(now)


def _about(request: object) -> RequestReference | None:
    if request is None:
        return current_request()
    if isinstance(request, RequestReference):
        return request
    match = _REFERENCE.fullmatch(request.strip().lower()) if isinstance(request, str) else None
    if match is None or match["trace"] == _NO_TRACE:
        return None
    return RequestReference(
        trace_id=match["trace"], span_id=match["span"] or _NO_SPAN, recorded=True
    )


def _links(about: RequestReference) -> list[Link]:
    if about.span_id == _NO_SPAN:
        return []
    flags = TraceFlags(TraceFlags.SAMPLED if about.recorded else TraceFlags.DEFAULT)
    return [
        Link(
            SpanContext(
                int(about.trace_id, 16), int(about.span_id, 16), is_remote=True, trace_flags=flags
            )
        )
    ]


def _recorded(
    about: RequestReference,
    score: object,
    label: object,
    comment: object,
    kind: object,
    capture: Capture,
) -> Attributes:
    recorded: Attributes = {
        attributes.SCHEMA_VERSION: attributes.CURRENT_SCHEMA_VERSION,
        attributes.STAGE: attributes.Stage.FEEDBACK.value,
        attributes.REQUEST_TRACE_ID: about.trace_id,
        attributes.EVALUATION_NAME: clean_text(kind),
    }
    run = current_run()
    if run is not None:
        recorded[attributes.RUN_ID] = clean_text(run.run_id)
    number = _finite(score)
    if number is not None:
        recorded[attributes.EVALUATION_SCORE] = number
    if label is not None:
        recorded[attributes.EVALUATION_LABEL] = capture.text(label)
    if comment is not None and capture.keeps_question:
        recorded[attributes.EVALUATION_EXPLANATION] = capture.text(comment)
    return recorded


def _finite(score: object) -> float | None:
    if score is None:
        return None
    try:
        number = float(score)  # type: ignore[arg-type]  # anything with __float__
    except Exception:  # a host's object may raise anything
        return None
    return number if math.isfinite(number) else None
