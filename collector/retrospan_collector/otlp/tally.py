"""Counting what senders got wrong without letting a sender fill the log."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter

logger = logging.getLogger(__name__)

_WINDOW_S = 60.0


class Tally:
    """Totals a cause, and one log line a cause and minute.

    Some exporters ignore the body of a success, so what was rejected has to be seen here too.
    """

    def __init__(self) -> None:
        self.totals: Counter[str] = Counter()
        self._logged_at: dict[str, float] = {}
        self._lock = threading.Lock()

    def add(self, causes: Counter[str], example: str = "") -> None:
        """Count, and log every cause that was not logged within the last minute.

        The causes are a fixed set; what varies from request to request is the example.
        """
        if not causes:
            return
        now = time.monotonic()
        with self._lock:
            self.totals.update(causes)
            due = [c for c in causes if now - self._logged_at.get(c, -_WINDOW_S) >= _WINDOW_S]
            self._logged_at.update(dict.fromkeys(due, now))
        for cause in due:
            total = self.totals[cause]
            logger.warning("%s (%d since the start)%s", cause, total, example and f": {example}")
