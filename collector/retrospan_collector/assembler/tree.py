"""Which spans of a trace make one request.

The root of a request is the outermost span of the dialect that encloses a retrieval or a
generation: an HTTP server span above it is not it. Where that span has not come, its children
are held together by the parent they name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from retrospan_collector.assembler.record import Stage
from retrospan_collector.assembler.span import Span

StageOf = Callable[[Span], Stage | None]
"""What a dialect calls a span's step; None for a span that is not of the dialect."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpanGroup:
    """The spans of one request."""

    root_span_id: str
    """The root's id; the id of the missing parent where the root has not come."""
    root: Span | None
    spans: tuple[Span, ...]
    """The dialect's spans of the request, the root among them, by start time."""
    twins: Mapping[str, str]
    """Spans that lie inside a span of the same step, each with the outermost one's id."""

    @property
    def last_arrival_ms(self) -> int:
        """When the newest of these spans arrived."""
        return max(span.arrived_ms for span in self.spans)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a span stands: the outermost dialect span above it and what is above that."""

    outermost: Span
    missing_parent_id: str
    """The parent that the top of the chain names and that is not there; empty for none."""
    twin_id: str
    """The outermost span above with the same step; empty for none."""


def group_requests(spans: Sequence[Span], stage_of: StageOf) -> list[SpanGroup]:
    """Divide a trace's spans into requests, in the order in which those began."""
    by_id = {span.span_id: span for span in spans}
    stages = {span.span_id: stage for span in by_id.values() if (stage := stage_of(span))}
    members: dict[str, list[Span]] = {}
    roots: dict[str, Span | None] = {}
    twins: dict[str, dict[str, str]] = {}
    for span_id in stages:
        span = by_id[span_id]
        place = _place(span, by_id, stages)
        root_id, root = _root(place, stages)
        members.setdefault(root_id, []).append(span)
        roots[root_id] = root
        if place.twin_id:
            twins.setdefault(root_id, {})[span_id] = place.twin_id
    groups = [
        SpanGroup(
            root_span_id=root_id,
            root=roots[root_id],
            spans=tuple(sorted(found, key=_by_start)),
            twins=twins.get(root_id, {}),
        )
        for root_id, found in members.items()
        if _is_request(found, stages)
    ]
    return sorted(groups, key=lambda group: _by_start(group.spans[0]))


def _place(span: Span, by_id: Mapping[str, Span], stages: Mapping[str, Stage]) -> _Place:
    current = outermost = span
    twin_id = ""
    seen = {span.span_id}
    while (parent := by_id.get(current.parent_span_id)) and parent.span_id not in seen:
        seen.add(parent.span_id)
        current = parent
        if parent.span_id in stages:
            outermost = parent
            if stages[parent.span_id] == stages[span.span_id]:
                twin_id = parent.span_id
    known = not current.parent_span_id or current.parent_span_id in by_id
    return _Place(outermost, "" if known else current.parent_span_id, twin_id)


def _root(place: _Place, stages: Mapping[str, Stage]) -> tuple[str, Span | None]:
    outermost = place.outermost
    if place.missing_parent_id and stages[outermost.span_id] != "request":
        return place.missing_parent_id, None
    return outermost.span_id, outermost


def _is_request(spans: Sequence[Span], stages: Mapping[str, Stage]) -> bool:
    return any(stages[span.span_id] in ("request", "retrieve", "generate") for span in spans)


def _by_start(span: Span) -> tuple[int, int]:
    return span.start_ns, -span.end_ns
