"""Reads recorded requests back from the store."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from retrospan_collector.clickhouse.connection import Store
from retrospan_evaluator.traces.request import RecordedRequest, RequestSummary


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
        raise NotImplementedError

    def requests(self, trace_ids: Iterable[str]) -> dict[str, RecordedRequest]:
        """The requests of many traces by trace id; a trace without one is left out.

        Of a trace with several requests it is the first that started.
        """
        raise NotImplementedError

    def latest(
        self,
        limit: int,
        since: datetime,
        *,
        service: str | None = None,
        run_id: str | None = None,
        replays: bool = False,
    ) -> list[RequestSummary]:
        """The newest requests since then, newest first.

        Args:
            service: only this service's.
            run_id: only this run's (or replay's).
            replays: also those that a replay recorded.
        """
        raise NotImplementedError
