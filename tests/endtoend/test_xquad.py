"""XQuAD in both languages, as a user would run it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LABELS = "RETRIEVAL_MISS|RANKED_OUT|CONTEXT_ASSEMBLY_LOSS|GENERATION_FAILURE|UNRESOLVED"


@pytest.mark.timeout(300)
def test_forty_real_questions_go_through_and_a_failed_one_of_each_language_gets_a_label(
    real_data: Path,
) -> None:
    command = [sys.executable, "-m", "tests.endtoend.xquad"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    assert re.findall(r"== (\w\w): run \S+, (\d+) questions", done.stdout) == [
        ("en", "20"),
        ("ar", "20"),
    ]
    labelled = re.findall(rf"== (\w\w): the request shown was labelled ({LABELS})", done.stdout)
    assert [language for language, _ in labelled] == ["en", "ar"]
    arabic = done.stdout.split("== ar: run", 1)[1]
    assert re.search(r"[\u0600-\u06ff]{3,}", arabic), "Arabic is shown as Arabic"
    assert "\\u06" not in arabic
