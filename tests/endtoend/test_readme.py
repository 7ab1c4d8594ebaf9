"""What the README shows is what happens."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def fences(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def retrospan(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("retrospan")), *arguments]
    return subprocess.run(
        command,
        cwd=cwd,
        env=os.environ | {"COLUMNS": "80"},
        capture_output=True,
        text=True,
        timeout=100,
    )


def test_the_decorated_class_answers_and_is_scored_on_the_case_shown(tmp_path: Path) -> None:
    (system,) = fences("python")
    (case,) = fences("json")
    (tmp_path / "app.py").write_text(system, "utf-8")
    (tmp_path / "cases.jsonl").write_text(case, "utf-8")
    store = f"embedded:{tmp_path}/data"
    done = retrospan(
        "run", "cases.jsonl", "--system", "app:Handbook", "--store", store, "--json", cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout[done.stdout.index("{") :])
    assert document["cases"] == 1
    assert {name: m["estimate"] for name, m in document["metrics"].items()} == {
        "answer_correct": 1.0,
        "hit_rate_at_2": 1.0,
        "recall_at_2": 1.0,
        "mrr": 1.0,
        "ndcg_at_6": 1.0,
        "citations_valid": 1.0,
    }


def test_every_command_shown_exists() -> None:
    shown = {
        line.split()[3]
        for fence in fences("console")
        for line in fence.splitlines()
        if line.startswith("uv run retrospan ")
    }
    listed = retrospan("--help", cwd=ROOT).stdout
    for command in shown | {"demo"}:
        assert re.search(rf"^\s+{command}\b", listed, re.MULTILINE), command


def test_the_continuous_check_calls_the_test_command_of_the_readme() -> None:
    assert "uv run pytest" in {fence.strip() for fence in fences("console")}


def test_the_demo_prints_every_line_shown(tmp_path: Path) -> None:
    (shown,) = fences("text")
    printed = retrospan("demo", cwd=tmp_path).stdout.splitlines()
    assert [line for line in shown.splitlines() if line not in printed] == []
