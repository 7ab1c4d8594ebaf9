"""Kill -9 at random moments: what was acknowledged is in the view `spans`, once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.endtoend.faults_kills import kill_again_and_again

KILLS = 20


@pytest.mark.timeout(300)
def test_twenty_random_kills_lose_no_acknowledged_span_and_double_none(tmp_path: Path) -> None:
    report = kill_again_and_again(tmp_path, KILLS, seed=20261201)

    assert report.kills.total() == KILLS
    assert set(report.kills) == {"owner", "receiver", "both"}
    assert report.before_insert > 0, "some kills met a segment that was answered, not inserted"
    assert report.before_answer > 0, "some kills met an export that was not answered"
    assert report.account.acknowledged > 1000
    assert report.account.nothing_lost, report.lines()
    assert report.account.stored_once == report.account.acknowledged
