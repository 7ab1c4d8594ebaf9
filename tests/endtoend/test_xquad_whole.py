"""XQuAD whole: every question asked, every failed one given a label, nothing lost on the way."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.endtoend.xquad_whole import LABELS, follow_all, side_by_side


@pytest.mark.timeout(400)
def test_every_question_is_scored_and_every_failed_one_is_labelled_in_both_languages(
    real_data: Path, tmp_path: Path
) -> None:
    followed = follow_all(f"embedded:{tmp_path}/data", tmp_path)

    assert list(followed) == ["en", "ar"]
    for one in followed.values():
        assert one.run["cases"] == 1190 and one.run["errors"] == 0
        for name, metric in one.run["metrics"].items():
            # An answer that cites nothing has no citations to be valid; nothing else is left out.
            assert metric["n"] + metric["excluded"] == 1190, name
            assert metric["excluded"] == 0 or name == "citations_valid"
        assert 0 < one.failed < 1190
        assert one.diagnosis["selected"] == one.failed
        assert sum(one.diagnosis["labels"].values()) == one.failed
        assert set(one.diagnosis["labels"]) <= set(LABELS)
        # Nothing changed, nothing recovered: the system is deterministic.
        assert one.diagnosis["control"] == {"passed": 0, "n": one.failed}
        assert one.run_cost.requests == 1190
        # One control and one gold context each.
        assert one.diagnosis_cost.requests == 2 * one.failed
    table = "\n".join(side_by_side(followed))
    assert table.count("1190") == 2
    assert all(label in table for label in LABELS)
