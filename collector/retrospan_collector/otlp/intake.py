"""One way in for both transports: inspect, spool, answer."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter

from retrospan_collector.folders import reason
from retrospan_collector.otlp.in_flight import BytesInFlight
from retrospan_collector.otlp.inspection import Inspected, inspect
from retrospan_collector.otlp.limits import Limits
from retrospan_collector.otlp.refusals import NotStored, Refusal
from retrospan_collector.otlp.tally import Tally
from retrospan_collector.segment_writer import SegmentWriter, SpoolClosed

_LARGE_BYTES = 4 * 2**20
"""A decoded request is several times its size, so those above this are decoded one at a time."""


class TraceIntake:
    """Takes trace export requests into the spool."""

    def __init__(self, writer: SegmentWriter, limits: Limits) -> None:
        self.limits = limits
        self.in_flight = BytesInFlight(limits.in_flight_bytes)
        self._writer = writer
        self._tally = Tally()
        self._one_large = threading.Lock()

    @property
    def ready(self) -> bool:
        """Whether a request sent now would be stored."""
        return self._writer.alive

    async def take(self, payload: bytes) -> bytes:
        """The serialized response, once every accepted span is on the disk.

        Raises a Refusal when the request as a whole is not taken.
        """
        inspected = await asyncio.to_thread(self._inspect, payload)
        if inspected.payload:
            try:
                await asyncio.wrap_future(self._writer.submit("traces", inspected.payload))
            except (OSError, SpoolClosed) as error:
                why = reason(error) if isinstance(error, OSError) else str(error)
                raise NotStored(f"the request could not be stored: {why}") from error
        self._tally.add(inspected.rejected + inspected.mended)
        return inspected.response()

    def refused(self, refusal: Refusal) -> None:
        """Count a request that was not taken."""
        cause = f"requests refused with status {refusal.http_status}"
        self._tally.add(Counter({cause: 1}), str(refusal))

    def _inspect(self, payload: bytes) -> Inspected:
        if len(payload) <= _LARGE_BYTES:
            return inspect(payload)
        with self._one_large:
            return inspect(payload)
