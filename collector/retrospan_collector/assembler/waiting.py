"""Traces that have spans and are not done, and when each is to be looked at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retrospan_collector.assembler.reading import TouchedTrace, Trace


@dataclass(slots=True)
class _Place:
    trace: Trace
    last_ms: int
    due_ms: int
    unsure: bool


class WaitingTraces:
    """A waiting room: traces enter when they are touched and leave when they are assembled."""

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}

    def __len__(self) -> int:
        return len(self._places)

    def is_news(self, touched: TouchedTrace) -> bool:
        """Whether a trace is not waiting, or has got spans since it entered."""
        place = self._places.get(touched.trace.trace_id)
        return place is None or touched.last_ms > place.last_ms

    def enter(self, touched: TouchedTrace, *, due_ms: int, unsure: bool) -> None:
        """Note a trace, or that it got more spans.

        Args:
            unsure: whether rows may have been written for it that nobody remembers.
        """
        known = self._places.get(touched.trace.trace_id)
        unsure = unsure or (known is not None and known.unsure)
        self._places[touched.trace.trace_id] = _Place(
            touched.trace, touched.last_ms, due_ms, unsure
        )

    def due(self, now_ms: int) -> list[Trace]:
        """The traces to look at now, in the order in which their rows lie in the store."""
        due = [place.trace for place in self._places.values() if place.due_ms <= now_ms]
        return sorted(due, key=lambda trace: trace.sample_key)

    def unsure(self, traces: Sequence[Trace]) -> list[Trace]:
        """Those of the traces of which rows may stand that nobody remembers."""
        return [trace for trace in traces if self._places[trace.trace_id].unsure]

    def oldest_ms(self) -> int | None:
        """When the trace that has been quiet for longest got its newest span."""
        return min((place.last_ms for place in self._places.values()), default=None)

    def last_ms(self, trace_id: str) -> int:
        """When a trace's newest known span arrived."""
        return self._places[trace_id].last_ms

    def postpone(self, trace_id: str, due_ms: int) -> None:
        """Look at a trace again at a later time."""
        self._places[trace_id].due_ms = due_ms

    def leave(self, trace_id: str) -> None:
        """A trace is done, until it is touched again."""
        del self._places[trace_id]
