"""Stdout is the command's answer alone, whatever the system's own code prints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

LOUD = """
    import os
    import subprocess
    import sys

    from retrospan import Passage, Retrieval, rag_system

    print("noise: module")
    sys.stdout.write("noise: unfinished line")

    @rag_system(name="loud", version="1", depth=2, top_k=1, index_version="i", deterministic=True)
    class Loud:
        def __init__(self):
            print("noise: made")

        def retrieve(self, input, depth):
            os.write(1, b"noise: descriptor\\n")
            return Retrieval(str(input), [Passage("a", "12 days"), Passage("b", "14 days")], depth)

        def generate(self, input, context):
            print("noise: generate")
            subprocess.run([sys.executable, "-c", "print('noise: program')"], check=True)
            return {"answer": context[0].text}
"""
CASE = {
    "id": "refund",
    "input": {"question": "When?"},
    "expected": {
        "answer": "14 days",
        "relevant": [{"document_id": "b"}],
        "gold_context": [{"document_id": "b", "text": "14 days"}],
    },
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a dataset and a system that prints at every opportunity."""
    (tmp_path / "loud.py").write_text(dedent(LOUD))
    (tmp_path / "cases.jsonl").write_text(json.dumps(CASE))
    return tmp_path


def retrospan(store_url: str, folder: Path, *words: str) -> str:
    """What a command prints on stdout, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-m", "retrospan_evaluator", *words, "--system", "loud:Loud"],
        cwd=folder,
        env={**os.environ, "RETROSPAN_STORE": store_url},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "noise" not in done.stdout
    for source in ("module", "unfinished line", "made", "generate", "program"):
        assert f"noise: {source}" in done.stderr
    return done.stdout


def test_what_a_system_prints_is_no_part_of_an_answer(store_url: str, folder: Path) -> None:
    run = json.loads(retrospan(store_url, folder, "run", "cases.jsonl", "--json"))
    assert "answer_correct" in retrospan(store_url, folder, "run", "cases.jsonl")
    diagnosis = json.loads(retrospan(store_url, folder, "diagnose", run["run_id"], "--json"))
    trace_id = diagnosis["cases"][0]["trace_id"]
    replay = json.loads(retrospan(store_url, folder, "replay", trace_id, "--json"))
    assert replay["trace_id"] == trace_id


def test_help_of_a_command_that_drives_a_system_is_on_stdout() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "retrospan_evaluator", "run", "--help"],
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith("Usage: retrospan run") and done.stderr == ""
