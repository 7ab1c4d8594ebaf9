"""Reads recorded requests back from the store.

Every look-up by trace id names its sample key too, because the tables are sorted by that, after
service and day. So a look-up, like a list, finds the keys of its requests on narrow columns first
and reads wide ones for those only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from retrospan_collector.clickhouse.connection import Store
from retrospan_collector.clickhouse.request_row import RequestRow
from retrospan_collector.clickhouse.rows import from_row
from retrospan_collector.clickhouse.sample_key import sample_key
from retrospan_evaluator.traces.errors import SeveralRequests, UnknownTrace
from retrospan_evaluator.traces.request import RecordedRequest, RequestSummary
from retrospan_evaluator.traces.statements import statement
from retrospan_evaluator.traces.stored import (
    StoredText,
    passage_hashes,
    recorded_request,
    request_summary,
    stored_text,
)

BATCH = 500
"""Traces, or hashes of texts, asked for in one statement."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFilter:
    """Which requests a list holds."""

    service: str = ""
    """Only this service's; empty for all."""
    run_id: str = ""
    """Only this run's or replay's; empty for live traffic and every run."""
    replays: bool = False
    """Also what replays recorded."""

    def parameters(self) -> dict[str, object]:
        """The values the statements bind; a replay named by its id is always shown."""
        replays = self.replays or self.run_id.startswith("replay:")
        return {"service": self.service, "run_id": self.run_id, "replays": int(replays)}


@dataclass(frozen=True, slots=True)
class _Places:
    """Services and days in which requests lie: with the sample key, what the table is sorted by."""

    services: list[str]
    days: list[str]

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> _Places:
        found = {(row["ServiceName"], row["Day"].isoformat()) for row in rows}
        return cls(sorted({name for name, _ in found}), sorted({day for _, day in found}))


class TraceReader:
    """Finds recorded requests by trace id, one or many, and lists the newest.

    Args:
        store: an open store; it stays the caller's to close.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def request(self, trace_id: str, root_span_id: str | None = None) -> RecordedRequest:
        """The request of a trace, with its passages and their texts.

        Raises:
            UnknownTrace: nothing is stored under this id, or nothing yet.
            SeveralRequests: the trace holds several and `root_span_id` names none.
        """
        rows = self._rows([trace_id])
        if not rows:
            raise self._unknown(trace_id)
        chosen = [row for row in rows if root_span_id in (None, row.root_span_id)]
        if len(chosen) == 1:
            return self._with_texts(chosen)[0]
        roots = self._summaries([trace_id], self._places([trace_id]))[::-1]
        if chosen:
            raise SeveralRequests(trace_id, roots)
        raise UnknownTrace(
            f"trace {trace_id} has no request under the root span {root_span_id!r}: "
            f"take one of {', '.join(root.root_span_id for root in roots)}"
        )

    def requests(self, trace_ids: Iterable[str]) -> dict[str, RecordedRequest]:
        """The requests of many traces by trace id; a trace without one is left out.

        Of a trace with several requests it is the first that started.
        """
        found: dict[str, RecordedRequest] = {}
        for batch in _batches(list(dict.fromkeys(trace_ids))):
            for request in self._with_texts(self._rows(batch)):
                found.setdefault(request.trace_id, request)
        return found

    def latest(
        self, limit: int, since: datetime, only: RequestFilter | None = None
    ) -> list[RequestSummary]:
        """The newest requests since then, newest first."""
        rows = self._latest_keys(limit, since, only or RequestFilter())
        places = _Places.of(rows)
        keys = {(row["TraceId"], row["RootSpanId"]) for row in rows}
        found = [
            summary
            for batch in _batches(sorted({trace_id for trace_id, _ in keys}))
            for summary in self._summaries(batch, places)
            if (summary.trace_id, summary.root_span_id) in keys
        ]
        return sorted(found, key=lambda summary: summary.started_at, reverse=True)

    def newest(self, only: RequestFilter | None = None) -> datetime | None:
        """When the newest request began, however long ago; None when there is none."""
        rows = self._store.query(statement("newest"), (only or RequestFilter()).parameters())
        return rows[0]["Timestamp"] if rows else None

    def _latest_keys(
        self, limit: int, since: datetime, only: RequestFilter
    ) -> list[dict[str, Any]]:
        """Keys of the newest live rows: read twice as many until enough of them are left."""
        asked = 2 * limit
        while True:
            rows = self._store.query(
                statement("latest_keys"),
                {"since": since, "rows": asked, **only.parameters()},
            )
            live = [row for row in rows if not row["IsDeleted"]]
            exhausted = not rows or rows[0]["RowsRead"] < asked
            if exhausted or len(live) >= limit:
                live.sort(key=lambda row: row["Timestamp"], reverse=True)
                return live[:limit]
            asked *= 2

    def _rows(self, trace_ids: Sequence[str]) -> list[RequestRow]:
        found = self._at("requests_by_trace", trace_ids, self._places(trace_ids))
        live = [from_row(RequestRow, row) for row in found if not row["IsDeleted"]]
        return sorted(live, key=lambda row: (row.timestamp, row.root_span_id))

    def _summaries(self, trace_ids: Sequence[str], places: _Places) -> list[RequestSummary]:
        return [request_summary(row) for row in self._at("summaries", trace_ids, places)]

    def _places(self, trace_ids: Sequence[str]) -> _Places:
        return _Places.of(self._store.query(statement("places_of_traces"), _keys(trace_ids)))

    def _at(self, name: str, trace_ids: Sequence[str], places: _Places) -> list[dict[str, Any]]:
        if not places.days:
            return []
        return self._store.query(
            statement(name),
            {**_keys(trace_ids), "services": places.services, "days": places.days},
        )

    def _with_texts(self, rows: Sequence[RequestRow]) -> list[RecordedRequest]:
        texts: dict[str, StoredText] = {}
        for batch in _batches(sorted(set().union(*map(passage_hashes, rows)))):
            found = self._store.query(statement("texts_by_hash"), {"hashes": batch})
            texts |= {row["HexHash"]: stored_text(row) for row in found}
        return [recorded_request(row, texts) for row in rows]

    def _unknown(self, trace_id: str) -> UnknownTrace:
        counted = self._store.query(
            statement("spans_of_trace"),
            {"trace_id": trace_id, "sample_key": sample_key(trace_id)},
        )
        if spans := counted[0]["Spans"]:
            return UnknownTrace(
                f"trace {trace_id} was received ({spans} spans) and its request is not assembled: "
                "that happens half a minute after its root span ended, while `retrospan serve` "
                "runs, if a retrieval or generation stands in it"
            )
        return UnknownTrace(
            f"no trace {trace_id!r} is in {self._store.address}: a trace id is 32 hexadecimal "
            "digits, and `retrospan traces` lists the recorded ones"
        )


def _keys(trace_ids: Sequence[str]) -> dict[str, object]:
    return {"trace_ids": list(trace_ids), "sample_keys": [sample_key(one) for one in trace_ids]}


def _batches(values: Sequence[str]) -> list[list[str]]:
    return [list(values[start : start + BATCH]) for start in range(0, len(values), BATCH)]
