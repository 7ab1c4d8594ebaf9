"""Ids of runs, replays, diagnoses and traces, all drawn from one source of randomness."""

from __future__ import annotations

import random
from datetime import datetime


class Identifiers:
    """Draws ids; a seeded source makes them reproducible."""

    def __init__(self, source: random.Random | None = None) -> None:
        self._source = source if source is not None else random.SystemRandom()

    def trace_id(self) -> str:
        """A random W3C trace id in lower hexadecimal, never the invalid zero."""
        return f"{self._source.getrandbits(128) or 1:032x}"

    def run_id(self, now: datetime) -> str:
        """An id for a test run that sorts by the time it was started."""
        return f"run-{now:%Y%m%d-%H%M%S}-{self._token()}"

    def replay_id(self, now: datetime) -> str:
        """An id for one replay of one request."""
        return f"{now:%Y%m%d-%H%M%S}-{self._token()}"

    def diagnosis_id(self, now: datetime) -> str:
        """An id for a diagnosis of a whole run."""
        return f"diagnosis-{now:%Y%m%d-%H%M%S}-{self._token()}"

    def _token(self) -> str:
        return f"{self._source.getrandbits(32):08x}"
