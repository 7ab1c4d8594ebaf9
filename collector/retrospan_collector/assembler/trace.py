"""From a trace's spans, and what is remembered of it, to the rows that have to be written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from retrospan_collector.assembler.dialects import retrospan
from retrospan_collector.assembler.reading import (
    Remembered,
    RequestKey,
    Trace,
    WrittenRequest,
)
from retrospan_collector.assembler.record import PassageList
from retrospan_collector.assembler.request import (
    BuiltRequest,
    Registration,
    Writing,
    build_request,
    utc_from_ns,
)
from retrospan_collector.assembler.span import Span
from retrospan_collector.assembler.tree import SpanGroup, group_requests
from retrospan_collector.clickhouse.request_row import AssembledRow, RequestRow


@dataclass(frozen=True, slots=True, kw_only=True)
class Settling:
    """When a request counts as over."""

    settle_ms: int
    """For how long nothing may arrive for its trace, once its root is there."""
    orphan_ms: int
    """After how long it is taken as it is, with or without its root."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AssembledTrace:
    """What one look at a trace gave."""

    trace: Trace
    rows: tuple[RequestRow, ...]
    tombstones: tuple[RequestRow, ...]
    lists: tuple[PassageList, ...]
    """The lists that hold the texts of their passages."""
    memory: AssembledRow | None
    """None when there is nothing new to remember."""
    due_ms: int | None
    """When to look again; None when every request of the trace is settled."""
    unregistered: int
    """Requests whose spans name a run that did not register the trace; they count as live."""


def assemble_trace(
    trace: Trace,
    spans: Sequence[Span],
    before: Remembered,
    *,
    registration: Registration | None,
    settling: Settling,
    now: datetime,
) -> AssembledTrace:
    """Build the settled requests of a trace, as far as they are new or changed."""
    look = _Look(trace, before, registration, settling, now, spans)
    for group in look.groups:
        look.take(group)
    return look.result()


class _Look:
    """One pass over the requests of a trace."""

    def __init__(
        self,
        trace: Trace,
        before: Remembered,
        registration: Registration | None,
        settling: Settling,
        now: datetime,
        spans: Sequence[Span],
    ) -> None:
        self.groups = group_requests(spans, retrospan.stage_of)
        self._trace = trace
        self._before = before
        self._registration = registration
        self._settling = settling
        self._now = now
        self._now_ms = milliseconds(now)
        self._span_count = len(spans)
        self._last_ms = max((span.arrived_ms for span in spans), default=before.last_ms)
        self._version = max(before.version + 1, int(now.timestamp() * 1e6))
        keys = {_key(group) for group in self.groups}
        self._written = {request.key: request for request in before.written}
        self._vanished = [request for request in before.written if request.key not in keys]
        self._standing: list[WrittenRequest] = []
        self._built: list[BuiltRequest] = []
        self._due: list[int] = []
        self._unregistered = 0

    def take(self, group: SpanGroup) -> None:
        """Build the group's row if it is settled and not the one that stands already."""
        written = self._written.get(_key(group))
        due_ms = self._settles_at(group)
        if due_ms > self._now_ms:
            self._due.append(due_ms)
            if written is not None:
                self._standing.append(written)
        elif written is not None and self._is_unchanged(group, written):
            self._standing.append(written)
        else:
            self._build(group, written)

    def result(self) -> AssembledTrace:
        """What this pass gave."""
        pending = bool(self._due)
        replaced = [] if pending and not self._built else self._vanished
        self._standing += [] if replaced else self._vanished
        news = self._built or replaced or not pending
        return AssembledTrace(
            trace=self._trace,
            rows=tuple(built.row for built in self._built),
            tombstones=tuple(map(self._tombstone, replaced)),
            lists=tuple([passages for built in self._built for passages in built.lists]),
            memory=self._memory(pending) if news else None,
            due_ms=min(self._due, default=None),
            unregistered=self._unregistered,
        )

    def _settles_at(self, group: SpanGroup) -> int:
        orphan_ms = group.last_arrival_ms + self._settling.orphan_ms
        if group.root is None:
            return orphan_ms
        if self._registration is not None:
            return self._now_ms
        return min(orphan_ms, self._last_ms + self._settling.settle_ms)

    def _is_unchanged(self, group: SpanGroup, written: WrittenRequest) -> bool:
        return (
            written.span_count == len(group.spans) and group.last_arrival_ms <= self._before.last_ms
        )

    def _build(self, group: SpanGroup, written: WrittenRequest | None) -> None:
        record = retrospan.read_request(group)
        late = bool(self._vanished)
        if written is not None:
            grown = written.span_count not in (0, len(group.spans))
            late = late or written.late or grown
        built = build_request(
            group,
            record,
            sample_key=self._trace.sample_key,
            registration=self._registration or Registration(),
            writing=Writing(now=self._now, version=self._version, late=late),
        )
        if record.run_id and self._registration is None:
            self._unregistered += 1
        self._built.append(built)
        self._standing.append(
            WrittenRequest(
                service_name=built.row.service_name,
                timestamp=built.row.timestamp,
                root_span_id=built.row.root_span_id,
                span_count=len(group.spans),
                late=late,
            )
        )

    def _tombstone(self, request: WrittenRequest) -> RequestRow:
        return RequestRow(
            service_name=request.service_name,
            timestamp=request.timestamp,
            trace_id=self._trace.trace_id,
            root_span_id=request.root_span_id,
            sample_key=self._trace.sample_key,
            dialect="",
            replay_class="none",
            retrieval_status="not_recorded",
            status="unknown",
            assembled_at=self._now,
            version=self._version,
            is_deleted=1,
        )

    def _memory(self, pending: bool) -> AssembledRow:
        standing = self._standing
        return AssembledRow(
            sample_key=self._trace.sample_key,
            trace_id=self._trace.trace_id,
            span_count=self._span_count,
            last_arrival=utc_from_ns(self._last_ms * 1_000_000),
            key_service_name=tuple(request.service_name for request in standing),
            key_timestamp=tuple(request.timestamp for request in standing),
            key_root_span_id=tuple(request.root_span_id for request in standing),
            key_span_count=tuple(request.span_count for request in standing),
            key_late=tuple(int(request.late) for request in standing),
            pending=int(pending),
            version=self._version,
        )


def milliseconds(moment: datetime) -> int:
    """A moment as milliseconds since 1970."""
    return int(moment.astimezone(UTC).timestamp() * 1000)


def _key(group: SpanGroup) -> RequestKey:
    first = group.root or group.spans[0]
    day = utc_from_ns(first.start_ns).date()
    return RequestKey(first.service_name, day, group.root_span_id)
