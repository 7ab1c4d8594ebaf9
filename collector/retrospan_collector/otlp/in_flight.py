"""The bound on request bytes held in memory at one time."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Self

from retrospan_collector.otlp.refusals import NotStored


class BytesInFlight:
    """Counts the bytes of unanswered requests and refuses what would exceed the bound."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = 0
        self._lock = threading.Lock()

    def reserve(self) -> Reservation:
        """An empty reservation, to be grown as bytes arrive and left when they are gone."""
        return Reservation(self)

    def take(self, size: int) -> None:
        """Count the bytes, or refuse the request they belong to."""
        with self._lock:
            if self._held + size > self._limit:
                raise NotStored(
                    f"the receiver holds {self._held} bytes of unanswered requests and takes "
                    f"{self._limit} at most: send this request again"
                )
            self._held += size

    def give_back(self, size: int) -> None:
        """Forget bytes that were counted."""
        with self._lock:
            self._held -= size


class Reservation:
    """What one request holds; given back on leaving."""

    def __init__(self, in_flight: BytesInFlight) -> None:
        self._in_flight = in_flight
        self._held = 0

    def grow(self, size: int) -> None:
        """Hold so many bytes more, or be refused."""
        self._in_flight.take(size)
        self._held += size

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._in_flight.give_back(self._held)
        self._held = 0
