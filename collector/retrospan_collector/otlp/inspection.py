"""Looking at a trace export request before it is stored: what is taken, rejected or mended."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import ScopeSpans, Span

from retrospan_collector.otlp.mending import Mender
from retrospan_collector.otlp.refusals import Undecodable

_NO_TRACE_ID = bytes(16)
_NO_SPAN_ID = bytes(8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspected:
    """A request that can be stored."""

    payload: bytes
    """What goes into the spool: the sender's own bytes unless something was mended or rejected.
    Empty when no span is left."""
    accepted: int
    rejected: Counter[str]
    """Spans left out, by reason."""
    mended: Counter[str]
    """Changes made, by kind."""

    def response(self) -> bytes:
        """The answer to the sender; empty, as OTLP wants it, when there is nothing to report."""
        response = ExportTraceServiceResponse()
        notes = [f"{count} spans rejected: {reason}" for reason, count in self.rejected.items()]
        notes += [f"{count} {change}" for change, count in self.mended.items()]
        if notes:
            response.partial_success.rejected_spans = self.rejected.total()
            response.partial_success.error_message = "; ".join(notes)
        return response.SerializeToString()


def inspect(payload: bytes) -> Inspected:
    """Reject spans without usable ids one by one and mend what the store cannot decode.

    Raises Undecodable for a request that is none, and TooLarge for one that holds too much.
    """
    try:
        request = ExportTraceServiceRequest.FromString(payload)
    except DecodeError as error:
        raise Undecodable(
            f"expected an ExportTraceServiceRequest in protobuf and could not decode it: {error}"
        ) from error
    mender = Mender()
    accepted = without_ids = 0
    rejected: Counter[str] = Counter()
    for resource_spans in request.resource_spans:
        mender.attributes(resource_spans.resource.attributes)
        for scope_spans in resource_spans.scope_spans:
            mender.count(len(scope_spans.spans))
            mender.attributes(scope_spans.scope.attributes)
            without_ids += sum(1 for s in scope_spans.spans if not s.trace_id and not s.span_id)
            accepted += _check_spans(scope_spans, rejected, mender)
    if without_ids and not accepted and without_ids == rejected.total():
        raise Undecodable(
            "expected spans and every one came without ids: are these logs, sent to the address "
            "for traces?"
        )
    if rejected or mender.changes:
        payload = request.SerializeToString()
    return Inspected(
        payload=payload if accepted else b"",
        accepted=accepted,
        rejected=rejected,
        mended=mender.changes,
    )


def _check_spans(scope_spans: ScopeSpans, rejected: Counter[str], mender: Mender) -> int:
    kept = []
    for span in scope_spans.spans:
        problem = _id_problem(span)
        if problem is None:
            mender.span(span)
            kept.append(span)
        else:
            rejected[problem] += 1
    if len(kept) < len(scope_spans.spans):
        del scope_spans.spans[:]
        scope_spans.spans.extend(kept)
    return len(kept)


def _id_problem(span: Span) -> str | None:
    if len(span.trace_id) != 16 or span.trace_id == _NO_TRACE_ID:
        return "a trace id is 16 bytes and not all zero"
    if len(span.span_id) != 8 or span.span_id == _NO_SPAN_ID:
        return "a span id is 8 bytes and not all zero"
    if len(span.parent_span_id) not in (0, 8):
        return "a parent span id is empty or 8 bytes"
    return None
