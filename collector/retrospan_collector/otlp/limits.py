"""What a receiver takes from one sender, and how long it waits for it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The bounds that keep one sender from taking the receiver's memory or its time."""

    request_bytes: int = 64 * 2**20
    """The largest request, before and after decompression; OTLP's recommended default."""
    in_flight_bytes: int = 96 * 2**20
    """All requests together that have begun to arrive and are not answered."""
    header_s: float = 20.0
    """From the connection (or its last answer) to a complete HTTP request head. Well above the 5 s
    between an SDK's batches, so that a connection is not closed just as it is used again."""
    body_s: float = 30.0
    """From the head of a request, or the start of a gRPC call, to the end of its body."""
