"""The arms of a replay: the recorded passages under settings that differ in one thing at most."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

from retrospan import BudgetRule, DroppedReason, Passage, SystemSettings, assemble
from retrospan_evaluator.errors import UsageError
from retrospan_evaluator.traces.request import RecordedPassage, RecordedRequest
from retrospan_evaluator.wording import counted

InterventionKind = Literal["control", "gold-context", "top-k", "token-budget"]

_INELIGIBLE = ("duplicate", "score", "filter")
"""Reasons that are not settings: such a passage does not re-enter under another top_k or budget."""


@dataclass(frozen=True, slots=True)
class Intervention:
    """The one thing an arm changes."""

    kind: InterventionKind
    value: int | None = None
    """The top_k or the token budget; a budget of None is no budget."""

    @property
    def name(self) -> str:
        """As it is printed and stored: `gold-context`, `top-k 4`, `token-budget 120`."""
        if self.kind == "control" or self.kind == "gold-context":
            return self.kind
        return f"{self.kind} {'none' if self.value is None else self.value}"


CONTROL = Intervention("control")
GOLD_CONTEXT = Intervention("gold-context")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """What is given to assembly and generation in one arm."""

    intervention: Intervention
    passages: tuple[Passage, ...]
    unknown_texts: frozenset[int] = frozenset()
    """Positions (1-based) whose text is not stored."""
    top_k: int | None
    token_budget: int | None
    budget_rule: BudgetRule
    ineligible: Mapping[int, DroppedReason] = field(default_factory=dict)

    def unanswerable(self, settings: SystemSettings) -> str | None:
        """Why this arm cannot be run from what was recorded; None when it can be."""
        considered = [
            (position, passage)
            for position, passage in enumerate(self.passages, start=1)
            if position not in self.ineligible and (self.top_k is None or position <= self.top_k)
        ]
        uncounted = {position for position, passage in considered if passage.tokens is None}
        if self.token_budget is not None and uncounted:
            if not settings.has_token_counter:
                return (
                    f"{counted(len(uncounted), 'passage has', 'passages have')} no recorded token "
                    "count, so what a budget admits is unknown: set Passage.tokens, or give the "
                    "system a count_tokens method"
                )
            if uncounted & self.unknown_texts:
                return "the texts that would have to be counted are not stored"
        shown = {position for position, _ in considered}
        if self.token_budget is not None and not uncounted:
            shown = self._admitted()
        without_text = len(shown & self.unknown_texts)
        if without_text:
            what = counted(without_text, "passage it shows is", "passages it shows are")
            return f"{what} stored without text"
        return None

    @property
    def prompt(self) -> tuple[str, ...] | None:
        """Ids of the passages that will enter the prompt; None where a count is unknown."""
        considered = self.passages if self.top_k is None else self.passages[: self.top_k]
        if self.token_budget is not None and any(p.tokens is None for p in considered):
            return None
        admitted = self._admitted()
        return tuple(p.id for place, p in enumerate(self.passages, 1) if place in admitted)

    def _admitted(self) -> set[int]:
        """Positions that enter the prompt; every count must be known."""
        assembly = assemble(
            self.passages,
            top_k=self.top_k,
            token_budget=self.token_budget,
            rule=self.budget_rule,
            ineligible=self.ineligible,
        )
        return {placed.position for placed in assembly.placements if placed.prompt_position > 0}


def interventions(top_ks: Sequence[int], token_budgets: Sequence[str]) -> tuple[Intervention, ...]:
    """The interventions of the flags `--top-k N` and `--token-budget N|none`, one a flag."""
    asked = [Intervention("top-k", value) for value in top_ks]
    asked += [Intervention("token-budget", _budget(typed)) for typed in token_budgets]
    return tuple(dict.fromkeys(asked))


def recorded_arm(request: RecordedRequest, intervention: Intervention) -> Arm:
    """The recorded passages under the recorded settings, `intervention` changing one of them."""
    settings = request.settings
    return Arm(
        intervention=intervention,
        passages=tuple(as_passage(passage) for passage in request.passages),
        unknown_texts=frozenset(p.position for p in request.passages if p.text is None),
        top_k=intervention.value if intervention.kind == "top-k" else settings.top_k,
        token_budget=(
            intervention.value if intervention.kind == "token-budget" else settings.token_budget
        ),
        budget_rule="skip" if settings.budget_rule == "skip" else "stop",
        ineligible={
            passage.position: cast(DroppedReason, passage.dropped_reason)
            for passage in request.passages
            if passage.dropped_reason in _INELIGIBLE
        },
    )


def gold_arm(gold: Sequence[Passage], request: RecordedRequest) -> Arm:
    """All gold passages in their order, nothing cut."""
    return Arm(
        intervention=GOLD_CONTEXT,
        passages=tuple(gold),
        top_k=None,
        token_budget=None,
        budget_rule="skip" if request.settings.budget_rule == "skip" else "stop",
    )


def as_passage(recorded: RecordedPassage) -> Passage:
    """A recorded passage as the system's generator was given it."""
    return Passage(
        recorded.id,
        recorded.text or "",
        recorded.score,
        recorded.document_id,
        recorded.tokens,
        recorded.metadata,
    )


def _budget(typed: str) -> int | None:
    if typed == "none":
        return None
    if typed.isascii() and typed.isdigit() and int(typed) > 0:
        return int(typed)
    raise UsageError(
        f"--token-budget expects a whole number above zero or none, got {typed!r}: "
        "for instance --token-budget 120"
    )
