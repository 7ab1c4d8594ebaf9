"""A stored span, as the assembler reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

_LONGEST_NS: Final = 1 << 62
"""An end before the start wraps an unsigned duration to far beyond this (146 years)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One span of a trace: its place in the tree, its times, its attributes as stored text."""

    trace_id: str
    span_id: str
    parent_span_id: str = ""
    service_name: str = ""
    environment: str = ""
    name: str = ""
    trace_state: str = ""
    start_ns: int
    duration_ns: int = 0
    failed: bool = False
    """Whether the span ended with an error."""
    attributes: Mapping[str, str]
    dropped_attributes: int = 0
    arrived_ms: int = 0

    @property
    def end_ns(self) -> int:
        """When the span ended; its start where the recorded duration is impossible."""
        return self.start_ns + (self.duration_ns if self.duration_ns < _LONGEST_NS else 0)

    @property
    def has_impossible_duration(self) -> bool:
        """Whether the span ended before it began."""
        return self.duration_ns >= _LONGEST_NS


def span_from_row(row: Mapping[str, Any]) -> Span:
    """The span in a row of the query `spans_of_traces.sql`."""
    return Span(
        trace_id=row["TraceId"],
        span_id=row["SpanId"],
        parent_span_id=row["ParentSpanId"],
        service_name=row["ServiceName"],
        environment=row["Environment"],
        name=row["SpanName"],
        trace_state=row["TraceState"],
        start_ns=row["StartNs"],
        duration_ns=row["Duration"],
        failed=bool(row["Failed"]),
        attributes=row["Attributes"],
        dropped_attributes=row["DroppedAttributes"],
        arrived_ms=row["ArrivedMs"],
    )
