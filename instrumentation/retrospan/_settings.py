"""What a system declares about itself, checked before anything runs."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from retrospan._assembly import BudgetRule
from retrospan._capture import CaptureSettings
from retrospan._encoding import canonical_json, plain
from retrospan._errors import ConfigurationError

CHANGEABLE: Final = ("depth", "top_k", "token_budget", "budget_rule")
"""The settings a test run may change without touching the system's code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SystemSettings:
    """The declared settings of one system."""

    name: str
    version: str
    depth: int
    """How many candidates are asked of the retriever."""

    top_k: int
    """How many of them assembly considers."""

    token_budget: int | None = None
    """Tokens the context may hold; None for no limit."""

    budget_rule: BudgetRule = "stop"
    index_version: str | None = None
    """Version of the index; JSON text when declared as parts."""

    prompt_version: str | None = None
    deterministic: bool = False
    """Whether `generate` gives the same answer twice; a replay then needs one run."""

    answer_path: str = "answer"
    """Where the answer stands in a mapping that `generate` returns; dots descend."""

    citations_path: str = "citations"
    """Where the citations stand in it."""

    has_token_counter: bool = False
    """Whether the system has a `count_tokens` method."""

    tokenizer: str | None = None
    """Name of what counts the tokens."""

    capture: CaptureSettings = CaptureSettings()
    """How much of the content is recorded."""

    def __post_init__(self) -> None:
        for name in ("name", "version", "answer_path", "citations_path"):
            _check_text(name, getattr(self, name))
        for name in ("index_version", "prompt_version", "tokenizer"):
            if getattr(self, name) is not None:
                _check_text(name, getattr(self, name))
        for name in ("depth", "top_k"):
            _check_positive(name, getattr(self, name))
        if self.token_budget is not None:
            _check_positive("token_budget", self.token_budget)
        if self.budget_rule not in ("stop", "skip"):
            raise ConfigurationError(
                f"budget_rule must be 'stop' or 'skip'; it is {self.budget_rule!r}"
            )
        if not isinstance(self.deterministic, bool):
            raise ConfigurationError(
                f"deterministic must be True or False; it is {self.deterministic!r}"
            )

    def changed(self, changes: Mapping[str, object]) -> "SystemSettings":
        """Return these settings with some of the changeable ones replaced and checked again."""
        for name in changes:
            if name not in CHANGEABLE:
                raise ConfigurationError(
                    f"{name!r} is not a setting that can be changed: use one of"
                    f" {', '.join(CHANGEABLE)}"
                )
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]  # checked on init


def index_version_text(version: str | Mapping[str, str] | None) -> str | None:
    """Return the index version as it is recorded: parts become canonical JSON text."""
    return canonical_json(plain(version)) if isinstance(version, Mapping) else version


def _check_text(name: str, value: object) -> None:
    if not isinstance(value, str) or not value.strip():
        raise ConfigurationError(f"{name} must be a text that is not empty; it is {value!r}")


def _check_positive(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ConfigurationError(f"{name} must be a whole number of 1 or more; it is {value!r}")
