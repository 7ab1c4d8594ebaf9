"""What senders get wrong is counted in full and logged sparingly."""

from __future__ import annotations

from collections import Counter

import pytest

from retrospan_collector.otlp.tally import Tally


def test_a_cause_is_logged_once_and_counted_every_time(caplog: pytest.LogCaptureFixture) -> None:
    tally = Tally()
    for number in range(100):
        tally.add(Counter({"a span id is 8 bytes": 3}), f"request {number}")
    tally.add(Counter({"another": 1}))
    assert tally.totals == {"a span id is 8 bytes": 300, "another": 1}
    assert caplog.messages == [
        "a span id is 8 bytes (3 since the start): request 0",
        "another (1 since the start)",
    ]


def test_nothing_wrong_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    Tally().add(Counter())
    assert caplog.messages == []
