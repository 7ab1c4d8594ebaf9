"""What one check of `retrospan doctor` says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "note", "problem"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at."""

    name: str
    status: Status
    """`note` is worth reading and hinders nothing; `problem` does."""
    found: str
    advice: str | None = None
    """What to do; None where nothing needs doing."""


def things(count: int, noun: str) -> str:
    """A number of things, in words."""
    return f"{count} {noun}{'' if count == 1 else 's'}"
