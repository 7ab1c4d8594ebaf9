"""Which candidates enter the prompt: hand-worked tables, and laws that hold for every input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrospan import Assembly, BudgetRule, DroppedReason, Passage, assemble


def passages(*tokens: int | None) -> list[Passage]:
    return [Passage(f"p{position}", tokens=count) for position, count in enumerate(tokens, 1)]


@dataclass(frozen=True)
class Case:
    id: str
    tokens: tuple[int | None, ...]
    kept: list[int]
    dropped: dict[int, DroppedReason]
    top_k: int | None = None
    budget: int | None = None
    rule: BudgetRule = "stop"
    ineligible: Mapping[int, DroppedReason] = field(default_factory=dict)
    context_tokens: int | None = 0


CASES = [
    Case("nothing limits: all kept", (5, 7), kept=[1, 2], dropped={}, context_tokens=12),
    Case("no candidates", (), kept=[], dropped={}),
    Case(
        "top_k cuts first",
        (5, 5, 5),
        kept=[1, 2],
        dropped={3: "top_k"},
        top_k=2,
        context_tokens=10,
    ),
    Case(
        "stop keeps the longest prefix that fits",
        (10, 20, 30, 5),
        kept=[1, 2],
        dropped={3: "budget", 4: "budget"},
        budget=40,
        context_tokens=30,
    ),
    Case(
        "skip tries the next",
        (10, 20, 30, 5),
        kept=[1, 2, 4],
        dropped={3: "budget"},
        budget=40,
        rule="skip",
        context_tokens=35,
    ),
    Case(
        "a passage that fits exactly is kept",
        (40, 1),
        kept=[1],
        dropped={2: "budget"},
        budget=40,
        context_tokens=40,
    ),
    Case(
        "the first passage over budget under stop leaves an empty context",
        (50, 1),
        kept=[],
        dropped={1: "budget", 2: "budget"},
        budget=40,
    ),
    Case(
        "a passage without tokens does not re-open a closed context",
        (50, 0),
        kept=[],
        dropped={1: "budget", 2: "budget"},
        budget=40,
    ),
    Case(
        "beyond top_k the reason is top_k, over budget or not",
        (30, 30, 30),
        kept=[1],
        dropped={2: "budget", 3: "top_k"},
        top_k=2,
        budget=40,
        context_tokens=30,
    ),
    Case(
        "an ineligible passage counts toward top_k and weighs nothing",
        (10, 35, 10, 10),
        kept=[1, 3],
        dropped={2: "duplicate", 4: "top_k"},
        top_k=3,
        budget=20,
        ineligible={2: "duplicate"},
        context_tokens=20,
    ),
    Case(
        "an ineligible passage keeps its own reason beyond top_k",
        (1, 1, 1),
        kept=[1],
        dropped={2: "top_k", 3: "filter"},
        top_k=1,
        ineligible={3: "filter"},
        context_tokens=1,
    ),
    Case(
        "an ineligible passage needs no token count",
        (None, 5),
        kept=[2],
        dropped={1: "score"},
        budget=5,
        ineligible={1: "score"},
        context_tokens=5,
    ),
    Case(
        "a passage beyond top_k needs no token count",
        (5, None),
        kept=[1],
        dropped={2: "top_k"},
        top_k=1,
        budget=5,
        context_tokens=5,
    ),
    Case(
        "without a budget an unknown count stays unknown",
        (5, None),
        kept=[1, 2],
        dropped={},
        context_tokens=None,
    ),
    Case(
        "a top_k of zero drops everything",
        (5,),
        kept=[],
        dropped={1: "top_k"},
        top_k=0,
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_assembly_keeps_and_drops_as_worked_out_by_hand(case: Case) -> None:
    assembly = assemble(
        passages(*case.tokens),
        top_k=case.top_k,
        token_budget=case.budget,
        rule=case.rule,
        ineligible=case.ineligible,
    )
    assert [item.position for item in assembly.placements if item.prompt_position] == case.kept
    reasons = {item.position: item.dropped_reason for item in assembly.placements}
    assert {at: reason for at, reason in reasons.items() if reason} == case.dropped
    assert [passage.id for passage in assembly.context] == [f"p{at}" for at in case.kept]
    assert assembly.context_tokens == case.context_tokens
    assert (assembly.top_k, assembly.token_budget) == (case.top_k, case.budget)
    assert assembly.rule == case.rule


def test_a_passages_own_count_wins_over_the_systems() -> None:
    given_passages = [Passage("a", "one two", tokens=7), Passage("b", "one two")]
    assembly = assemble(given_passages, count_tokens=lambda passage: len(passage.text.split()))
    assert [item.tokens for item in assembly.placements] == [7, 2]


@pytest.mark.parametrize("tokens", [None, -1, "7", 2.5, True])
def test_a_budget_without_a_usable_count_names_the_stage_and_the_passage(tokens: object) -> None:
    nonsense = Passage("p2", tokens=tokens)  # type: ignore[arg-type]  # what is tested
    with pytest.raises(TypeError, match=r"^assemble: the passage at position 2 \(id 'p2'\)"):
        assemble([Passage("p1", tokens=1), nonsense], token_budget=10)


def test_a_missing_count_is_refused_even_behind_the_place_where_stop_closes() -> None:
    with pytest.raises(TypeError, match="position 2"):
        assemble(passages(50, None), token_budget=10)


def test_limits_that_cannot_be_are_refused() -> None:
    with pytest.raises(ValueError, match="top_k must be 0 or more"):
        assemble([], top_k=-1)
    with pytest.raises(ValueError, match="token_budget must be 0 or more"):
        assemble([], token_budget=-5)
    with pytest.raises(ValueError, match="rule must be 'stop' or 'skip'"):
        assemble([], rule="fill")  # type: ignore[arg-type]  # what is tested


COUNTS = st.lists(st.integers(0, 60), max_size=12)
LIMIT = st.none() | st.integers(0, 14)
BUDGET = st.none() | st.integers(0, 200)
RULE = st.sampled_from(["stop", "skip"])
INELIGIBLE = st.dictionaries(
    st.integers(1, 12), st.sampled_from(["duplicate", "score", "filter"]), max_size=4
)


def check_laws(assembly: Assembly, given_passages: list[Passage]) -> None:
    assert [item.passage for item in assembly.placements] == given_passages
    assert [item.position for item in assembly.placements] == list(
        range(1, len(given_passages) + 1)
    )
    kept = [item for item in assembly.placements if item.prompt_position]
    assert [item.prompt_position for item in kept] == list(range(1, len(kept) + 1))
    assert [item.passage for item in kept] == list(assembly.context)
    for item in assembly.placements:
        assert (item.dropped_reason is None) == (item.prompt_position > 0)
    if assembly.token_budget is not None:
        assert assembly.context_tokens is not None
        assert assembly.context_tokens <= assembly.token_budget
    if assembly.top_k is not None:
        assert all(item.position <= assembly.top_k for item in kept)


@given(COUNTS, LIMIT, BUDGET, RULE, INELIGIBLE)
def test_every_assembly_obeys_its_limits_and_accounts_for_every_candidate(
    counts: list[int],
    top_k: int | None,
    budget: int | None,
    rule: BudgetRule,
    ineligible: dict[int, DroppedReason],
) -> None:
    given_passages = passages(*counts)
    assembly = assemble(
        given_passages, top_k=top_k, token_budget=budget, rule=rule, ineligible=ineligible
    )
    check_laws(assembly, given_passages)
    for position, reason in ineligible.items():
        if position <= len(counts):
            assert assembly.placements[position - 1].dropped_reason == reason


@given(COUNTS, LIMIT, BUDGET, INELIGIBLE)
def test_under_stop_a_passage_is_in_exactly_when_its_position_and_running_total_allow(
    counts: list[int],
    top_k: int | None,
    budget: int | None,
    ineligible: dict[int, DroppedReason],
) -> None:
    """The what-if surface is computed from running totals alone; this is why it may be."""
    assembly = assemble(passages(*counts), top_k=top_k, token_budget=budget, ineligible=ineligible)
    total = 0
    for position, count in enumerate(counts, start=1):
        total += 0 if position in ineligible else count
        inside = (
            position not in ineligible
            and (top_k is None or position <= top_k)
            and (budget is None or total <= budget)
        )
        assert bool(assembly.placements[position - 1].prompt_position) == inside


@given(COUNTS, BUDGET, RULE)
def test_assembling_the_context_again_changes_nothing(
    counts: list[int], budget: int | None, rule: BudgetRule
) -> None:
    first = assemble(passages(*counts), token_budget=budget, rule=rule)
    again = assemble(first.context, token_budget=budget, rule=rule)
    assert again.context == first.context
    assert again.context_tokens == first.context_tokens


@given(COUNTS, st.integers(0, 200), st.integers(0, 50))
def test_under_stop_a_larger_budget_never_drops_what_a_smaller_one_kept(
    counts: list[int], budget: int, more: int
) -> None:
    smaller = assemble(passages(*counts), token_budget=budget)
    larger = assemble(passages(*counts), token_budget=budget + more)
    assert larger.context[: len(smaller.context)] == smaller.context
