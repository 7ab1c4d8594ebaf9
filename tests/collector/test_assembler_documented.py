"""The collector's README names every setting, flag and class of the assembler."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import get_args

from retrospan_collector.assembler.loop import Assembler
from retrospan_collector.clickhouse.request_row import Completeness, ReplayClass, RetrievalStatus


def section() -> str:
    readme = Path(__file__).resolve().parents[2] / "collector" / "README.md"
    _, _, rest = readme.read_text(encoding="utf-8").partition("\n## Assembler\n")
    return rest.partition("\n## ")[0]


def test_every_setting_stands_in_the_readme_with_its_default() -> None:
    text = section()
    for setting in list(inspect.signature(Assembler).parameters.values())[1:]:
        default = f"{setting.default:,}" if setting.default is not None else "all"
        assert f"| `{setting.name}` | {default} |" in text


def test_every_completeness_flag_stands_in_the_readme_with_its_value() -> None:
    text = section()
    for flag in Completeness:
        (name,) = flag.names
        assert f"| `{name}` | {flag.value} |" in text


def test_every_replay_class_and_retrieval_status_stands_in_the_readme() -> None:
    text = section()
    for name in (*get_args(ReplayClass), *get_args(RetrievalStatus)):
        assert f"| `{name}` |" in text
