"""The evaluator's README: its Python runs, and it names every metric, reason and strength."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from retrospan_evaluator.metrics.suite import default_metrics
from retrospan_evaluator.replay.verdict import Label, Reason, Strength
from retrospan_evaluator.testsets.case import Case, Relevant
from retrospan_evaluator.testsets.dataset import Dataset

README = Path(__file__).resolve().parents[2] / "evaluator" / "README.md"
FENCES = re.findall(r"^```python\n(.*?)^```$", README.read_text("utf-8"), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("code", FENCES, ids=range(len(FENCES)))
def test_the_readmes_python_runs(code: str) -> None:
    exec(compile(code, str(README), "exec"), {"__name__": "readme"})


def test_every_metric_has_a_line() -> None:
    case = Case(id="a", input="q", expected_answer="a", relevant=(Relevant(document_id="d"),))
    dataset = Dataset(path=Path("cases.jsonl"), version="v", cases=(case,))
    lines = README.read_text("utf-8").splitlines()

    for metric in default_metrics(dataset, top_k=2, depth=6):
        name = metric.name.replace("_at_2", "_at_K").replace("_at_6", "_at_D")
        assert any(line.startswith(f"| `{name}` | {metric.kind}") for line in lines)


def test_every_label_reason_and_strength_is_explained() -> None:
    text = README.read_text("utf-8")

    for word in (*Label, *(f"`{reason}`" for reason in Reason), *(f"`{s}`" for s in Strength)):
        assert word in text
