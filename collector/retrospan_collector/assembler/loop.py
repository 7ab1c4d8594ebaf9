"""The assembler's loop: touched traces in, requests out; any round may be done twice."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

from retrospan_collector.assembler.reading import (
    Remembered,
    Shard,
    Trace,
    progress_ms,
    registrations_of,
    remembered,
    spans_of,
    stored_requests,
    touched_traces,
)
from retrospan_collector.assembler.request import Registration, utc_from_ns
from retrospan_collector.assembler.span import Span
from retrospan_collector.assembler.texts import KnownTexts
from retrospan_collector.assembler.trace import (
    AssembledTrace,
    Settling,
    assemble_trace,
    milliseconds,
)
from retrospan_collector.assembler.waiting import WaitingTraces
from retrospan_collector.clickhouse.connection import Store
from retrospan_collector.clickhouse.request_row import ProgressRow

_log = logging.getLogger(__name__)

_OVERLAP_MS: Final = 10_000
"""An insert becomes visible after the arrival time it carries; a round reads this far back."""

_SWEEP_EVERY_MS: Final = 60_000
"""How often the whole look-back is read, for inserts that took longer than that."""

_NOTE_EVERY_MS: Final = 60_000
_VISIBLE_WITHIN_MS: Final = 60_000
_LOOK_AGAIN_MS: Final = 500
_TRACES_PER_LOOK_UP: Final = 10_000
_Item = TypeVar("_Item")


@dataclass(slots=True, kw_only=True)
class RoundReport:
    """What one round did."""

    traces: int = 0
    """Traces whose spans were read."""
    requests: int = 0
    """Rows written, rewritten ones included."""
    tombstones: int = 0
    """Rows taken back because their key changed."""
    texts: int = 0
    """Passage texts written."""
    unregistered: int = 0
    """Requests that name a run which did not register them, and count as live."""
    failed: int = 0
    """Traces that could not be assembled because of a fault of ours; tried again later."""
    waiting: int = 0
    """Traces that are not settled, or were left for the next round."""
    behind: bool = False
    """Whether traces that were due were left for the next round."""


class Assembler:
    """Turns the spans of a store into its requests, a round at a time.

    Args:
        store: where spans are read and requests written.
        settle_s: how long a trace must be quiet, once a request's root is there.
        lookback_s: how far beyond that a sweep reads back for touched traces.
        orphan_s: after how long a group of spans without its root is taken as it is; must be
            shorter than the look-back.
        shard: which part of the traces is this assembler's.
        traces_per_read: how many traces' spans are held in memory at a time.
        traces_per_round: how many traces one round takes at most.
    """

    def __init__(
        self,
        store: Store,
        *,
        settle_s: float = 30,
        lookback_s: float = 900,
        orphan_s: float = 600,
        shard: Shard | None = None,
        traces_per_read: int = 1000,
        traces_per_round: int = 20_000,
    ) -> None:
        self._store = store
        self._settling = Settling(settle_ms=int(settle_s * 1000), orphan_ms=int(orphan_s * 1000))
        self._window_ms = int((settle_s + lookback_s) * 1000)
        self._shard = shard or Shard()
        self._traces_per_read = traces_per_read
        self._traces_per_round = traces_per_round
        self._waiting = WaitingTraces()
        self._texts = KnownTexts(store)
        self._read_ms: int | None = None
        self._swept_ms = 0
        self._noted_ms = 0
        self._changed = False
        self._logged: set[str] = set()

    def round(self, now: datetime) -> RoundReport:
        """Assemble what has settled by now."""
        now_ms = milliseconds(now)
        self._discover(now_ms)
        due = self._waiting.due(now_ms)
        report = RoundReport(behind=len(due) > self._traces_per_round)
        for batch in _batches(due[: self._traces_per_round], self._traces_per_read):
            with _no_cycle_search():
                self._assemble(batch, now, report)
        report.waiting = len(self._waiting)
        self._changed = self._changed or report.traces > 0
        if self._changed and now_ms - self._noted_ms >= _NOTE_EVERY_MS:
            self._note_progress(now)
        return report

    def _note_progress(self, now: datetime) -> None:
        """Write down from where the next process has to begin."""
        now_ms = milliseconds(now)
        oldest_ms = self._waiting.oldest_ms()
        done_ms = now_ms if oldest_ms is None else min(oldest_ms, now_ms)
        row = ProgressRow(
            shard=self._shard.index,
            shards=self._shard.count,
            done_until=utc_from_ns(done_ms * 1_000_000),
            written_at=now,
        )
        self._store.insert("assembler_progress", [row])
        self._noted_ms = now_ms
        self._changed = False

    def _discover(self, now_ms: int) -> None:
        """Let newly touched traces enter; those of registered runs are due at once."""
        first = self._read_ms is None
        sweep = first or now_ms - self._swept_ms >= _SWEEP_EVERY_MS
        touched = touched_traces(self._store, self._since_ms(now_ms, sweep), self._shard)
        news = [item for item in touched if self._waiting.is_news(item)]
        for batch in _batches(news, _TRACES_PER_LOOK_UP):
            registered = registrations_of(self._store, [item.trace for item in batch])
            for item in batch:
                is_registered = item.trace.trace_id in registered
                due_ms = now_ms if is_registered else item.last_ms + self._settling.settle_ms
                self._waiting.enter(item, due_ms=due_ms, unsure=first)
        self._read_ms = now_ms
        if sweep:
            self._swept_ms = now_ms

    def _since_ms(self, now_ms: int, sweep: bool) -> int:
        if self._read_ms is None:
            # Traces may have been waiting when the process before this one ended.
            done_ms = progress_ms(self._store, self._shard)
            return 0 if done_ms is None else max(0, min(done_ms, now_ms) - self._window_ms)
        return now_ms - self._window_ms if sweep else self._read_ms - _OVERLAP_MS

    def _assemble(self, traces: Sequence[Trace], now: datetime, report: RoundReport) -> None:
        spans = spans_of(self._store, traces)
        before = self._known_before(traces)
        registered = registrations_of(self._store, traces)
        results: list[AssembledTrace] = []
        for trace in traces:
            result = self._attempt(
                trace,
                spans[trace.trace_id],
                before.get(trace.trace_id, Remembered()),
                registered.get(trace.trace_id),
                now,
            )
            if result is None:
                report.failed += 1
                self._waiting.leave(trace.trace_id)
            else:
                results.append(result)
        self._write(results, now, report)
        for result in results:
            self._let_go(result, spans[result.trace.trace_id], registered, milliseconds(now))
        report.traces += len(traces)

    def _known_before(self, traces: Sequence[Trace]) -> dict[str, Remembered]:
        """What is remembered, and after a start also what stands without being remembered.

        Rows are written before they are remembered, so a process that was killed between the
        two may have left some.
        """
        known = remembered(self._store, traces)
        unsure = self._waiting.unsure(traces)
        if unsure:
            for trace_id, standing in stored_requests(self._store, unsure).items():
                known[trace_id] = known.get(trace_id, Remembered()).together_with(standing)
        return known

    def _attempt(
        self,
        trace: Trace,
        spans: Sequence[Span],
        before: Remembered,
        registration: Registration | None,
        now: datetime,
    ) -> AssembledTrace | None:
        """The trace's rows; None when a fault of ours prevents them, which must not stop others."""
        try:
            return assemble_trace(
                trace,
                spans,
                before,
                registration=registration,
                settling=self._settling,
                now=now,
            )
        except Exception as error:
            cause = f"{type(error).__name__}: {error}"
            if cause not in self._logged:
                self._logged.add(cause)
                _log.exception("trace %s could not be assembled", trace.trace_id)
            return None

    def _write(self, results: Sequence[AssembledTrace], now: datetime, report: RoundReport) -> None:
        lists = [passages for result in results for passages in result.lists]
        texts = self._texts.missing(lists, now.date())
        tombstones = [row for result in results for row in result.tombstones]
        rows = [row for result in results for row in result.rows]
        self._store.insert("passage_texts", texts)
        self._texts.written(texts)
        self._store.insert("requests", tombstones)
        self._store.insert("requests", rows)
        self._store.insert(
            "assembled", [result.memory for result in results if result.memory is not None]
        )
        report.texts += len(texts)
        report.tombstones += len(tombstones)
        report.requests += len(rows)
        report.unregistered += sum(result.unregistered for result in results)

    def _let_go(
        self,
        result: AssembledTrace,
        spans: Sequence[Span],
        registered: dict[str, Registration],
        now_ms: int,
    ) -> None:
        trace_id = result.trace.trace_id
        last_ms = self._waiting.last_ms(trace_id)
        unseen = last_ms > max((span.arrived_ms for span in spans), default=-1)
        may_come = now_ms - last_ms < _VISIBLE_WITHIN_MS
        if may_come and (unseen or (result.due_ms is not None and trace_id in registered)):
            # The parts of one insert do not become visible in one moment.
            self._waiting.postpone(trace_id, now_ms + _LOOK_AGAIN_MS)
        elif result.due_ms is not None:
            self._waiting.postpone(trace_id, result.due_ms)
        else:
            self._waiting.leave(trace_id)


@contextmanager
def _no_cycle_search() -> Iterator[None]:
    """Hold back Python's search for reference cycles while a batch is in memory.

    A batch makes a million objects and no cycle; looking through them over and over would take
    a fifth of its time. The search is for the whole process, so it is put off for one batch only.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _batches(items: Sequence[_Item], size: int) -> Iterator[Sequence[_Item]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
