"""The statements of the read side, one `.sql` file each."""

from __future__ import annotations

from functools import cache
from importlib import resources


@cache
def statement(name: str) -> str:
    """The text of `queries/{name}.sql`."""
    folder = resources.files("retrospan_evaluator.traces") / "queries"
    return (folder / f"{name}.sql").read_text(encoding="utf-8")
