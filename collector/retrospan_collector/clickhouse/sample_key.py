"""The sample key: where a trace falls in the one reproducible order every draw uses."""

from __future__ import annotations

from hashlib import sha256

_DOMAIN = b"retrospan:sample:v1\0"


def sample_key(trace_id: str) -> int:
    """The first 8 bytes, big endian, of SHA-256 over the domain and the lower-hex trace id.

    The schema computes the same number in SQL; every look-up by trace id adds it, because the
    tables are sorted by it and not by the id.
    """
    return int.from_bytes(sha256(_DOMAIN + trace_id.encode()).digest()[:8], "big")
