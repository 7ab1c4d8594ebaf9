"""The step no tracing convention records: which candidates enter the prompt, and why not."""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from retrospan._passages import Passage

BudgetRule = Literal["stop", "skip"]
"""What happens at the first passage that does not fit the budget: stop there, or skip it."""

DroppedReason = Literal["top_k", "budget", "duplicate", "score", "filter"]
"""Why a candidate is not in the prompt."""


class Placement(NamedTuple):
    """What became of one candidate; a tuple, because a request makes one for every passage."""

    passage: Passage
    position: int
    """1-based place in the list that assembly was given."""

    tokens: int | None
    """Tokens of the passage; None when unknown."""

    prompt_position: int
    """1-based place in the prompt; 0 when the passage was left out."""

    dropped_reason: DroppedReason | None
    """Why it was left out; None when it was kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Assembly:
    """The whole outcome of assembling a prompt's context."""

    placements: tuple[Placement, ...]
    """One for every candidate, in position order."""

    context: tuple[Passage, ...]
    """The kept passages, in prompt order."""

    context_tokens: int | None
    """Tokens of the context; None when one of its passages has no known count."""

    top_k: int | None
    token_budget: int | None
    rule: BudgetRule | None
    """None for a choice of the application's own, whose rule is not known."""


def assemble(
    passages: Sequence[Passage],
    *,
    top_k: int | None = None,
    token_budget: int | None = None,
    rule: BudgetRule = "stop",
    count_tokens: Callable[[Passage], int] | None = None,
    ineligible: Mapping[int, DroppedReason] | None = None,
) -> Assembly:
    """Return which passages enter the prompt, and the reason for each that does not.

    A pure function: first the passages beyond `top_k` go, then those without room.

    Args:
        top_k: how many positions to consider; None for all.
        token_budget: tokens the context may hold; None for no limit.
        rule: `stop` keeps the longest prefix that fits; `skip` leaves out a passage that does
            not fit and tries the next.
        count_tokens: asked for every passage that carries no count of its own.
        ineligible: 1-based positions that are out for a reason of their own. They hold their
            position, count toward `top_k` and weigh no tokens.

    Raises:
        TypeError: there is a budget, and a passage it must be applied to has no token count.
        ValueError: a limit is negative, or the rule is unknown.
    """
    _check_limits(top_k, token_budget, rule)
    placements = _place(passages, top_k, _Room(token_budget, rule), count_tokens, ineligible or {})
    kept = [placement for placement in placements if placement.prompt_position]
    known = [placement.tokens for placement in kept if placement.tokens is not None]
    return Assembly(
        placements=tuple(placements),
        context=tuple([placement.passage for placement in kept]),
        context_tokens=sum(known) if len(known) == len(kept) else None,
        top_k=top_k,
        token_budget=token_budget,
        rule=rule,
    )


def _place(
    passages: Sequence[Passage],
    top_k: int | None,
    room: "_Room",
    count_tokens: Callable[[Passage], int] | None,
    ineligible: Mapping[int, DroppedReason],
) -> list[Placement]:
    placements: list[Placement] = []
    kept = 0
    for position, passage in enumerate(passages, start=1):
        tokens = token_count(passage, count_tokens)
        reason = ineligible.get(position) if ineligible else None
        if reason is None and top_k is not None and position > top_k:
            reason = "top_k"
        if reason is None and not room.admits(position, passage, tokens):
            reason = "budget"
        kept += reason is None
        placements.append(Placement(passage, position, tokens, 0 if reason else kept, reason))
    return placements


def token_count(passage: Passage, count_tokens: Callable[[Passage], int] | None) -> int | None:
    """Return the passage's own count, else the system's, else None; a nonsense count is unknown."""
    counted: object = passage.tokens
    if counted is None and count_tokens is not None:
        counted = count_tokens(passage)
    if type(counted) is int:
        return counted if counted >= 0 else None
    if counted is None or isinstance(counted, bool):
        return None
    try:
        tokens = operator.index(counted)  # type: ignore[arg-type]  # numpy integers have an index
    except Exception:  # a host's object may raise anything
        return None
    return tokens if tokens >= 0 else None


class _Room:
    """The tokens still free, and whether the `stop` rule has closed the context."""

    __slots__ = ("_budget", "_closed", "_rule", "_used")

    def __init__(self, budget: int | None, rule: BudgetRule) -> None:
        self._budget = budget
        self._rule = rule
        self._used = 0
        self._closed = False

    def admits(self, position: int, passage: Passage, tokens: int | None) -> bool:
        if self._budget is None:
            return True
        if tokens is None:
            raise TypeError(
                f"assemble: the passage at position {position} (id {passage.id!r}) has no token"
                f" count that is a whole number of 0 or more, and there is a token budget of"
                f" {self._budget}: set Passage.tokens, or give the system a count_tokens method"
            )
        if self._closed or self._used + tokens > self._budget:
            self._closed = self._rule == "stop"
            return False
        self._used += tokens
        return True


def _check_limits(top_k: int | None, token_budget: int | None, rule: BudgetRule) -> None:
    for name, limit in (("top_k", top_k), ("token_budget", token_budget)):
        if limit is not None and limit < 0:
            raise ValueError(f"assemble: {name} must be 0 or more, or None; it is {limit!r}")
    if rule not in ("stop", "skip"):
        raise ValueError(f"assemble: rule must be 'stop' or 'skip'; it is {rule!r}")
