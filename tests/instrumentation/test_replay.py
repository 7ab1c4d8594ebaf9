"""The same system under other settings, and on passages it did not retrieve."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from retrospan import BoundSystem, ConfigurationError, Passage, Retrieval, bind, rag_system

if TYPE_CHECKING:
    from tests.instrumentation.conftest import Recorder

PASSAGES = tuple(Passage(f"p{n}", "w " * n, tokens=n * 10) for n in range(1, 5))


@rag_system(name="words", version="1", depth=4, top_k=2, token_budget=25, index_version="1")
class Words:
    """Its retriever only works when it is asked to."""

    def __init__(self, *, may_retrieve: bool = True) -> None:
        self.may_retrieve = may_retrieve
        self.depths: list[int] = []

    def retrieve(self, input: str, depth: int) -> Retrieval:
        if not self.may_retrieve:
            raise AssertionError("a replay asked the retriever")
        self.depths.append(depth)
        return Retrieval(input, PASSAGES[:depth])

    def generate(self, input: str, context: tuple[Passage, ...]) -> str:
        return " ".join(passage.id for passage in context)


def replaying() -> BoundSystem:
    return bind(Words(may_retrieve=False))


def test_a_replay_never_asks_the_retriever(recorder: Recorder) -> None:
    outcome = replaying().replay("q", PASSAGES, top_k=2, token_budget=25, budget_rule="stop")
    assert outcome.answer == "p1"
    assert [span.name for span in recorder.spans] == [
        "assemble",
        "generate words",
        "invoke_workflow words",
    ]
    assert recorder.attributes("request")["retrospan.input"] == '"q"'


def test_a_replay_without_limits_keeps_every_passage_it_is_given(recorder: Recorder) -> None:
    outcome = replaying().replay(
        "q", list(PASSAGES), top_k=None, token_budget=None, budget_rule="stop"
    )
    assert outcome.answer == "p1 p2 p3 p4"
    assert outcome.assembly.context_tokens == 100
    recorded = recorder.attributes("assemble")
    assert "retrospan.assembly.top_k" not in recorded
    assert "retrospan.assembly.token_budget" not in recorded


def test_a_replay_takes_its_own_limits_and_not_the_systems(recorder: Recorder) -> None:
    outcome = replaying().replay("q", PASSAGES, top_k=3, token_budget=41, budget_rule="skip")
    assert outcome.answer == "p1 p2"
    reasons = [item.dropped_reason for item in outcome.assembly.placements]
    assert reasons == [None, None, "budget", "top_k"]


def test_an_ineligible_passage_does_not_come_back_in_a_replay(recorder: Recorder) -> None:
    outcome = replaying().replay(
        "q",
        PASSAGES,
        top_k=None,
        token_budget=None,
        budget_rule="stop",
        ineligible={2: "duplicate"},
    )
    assert outcome.answer == "p1 p3 p4"
    assert recorder.attributes("assemble")["retrospan.assembly.dropped_reason"] == (
        "",
        "duplicate",
        "",
        "",
    )


def test_a_replay_with_a_budget_and_no_count_names_the_stage(recorder: Recorder) -> None:
    with pytest.raises(TypeError, match="^assemble: the passage at position 1"):
        replaying().replay("q", [Passage("x")], top_k=1, token_budget=5, budget_rule="stop")


def test_a_replay_refuses_what_is_not_a_passage(recorder: Recorder) -> None:
    texts: Any = ["p1"]
    with pytest.raises(TypeError, match="^replay: words must give retrospan.Passage objects"):
        replaying().replay("q", texts, top_k=1, token_budget=None, budget_rule="stop")


def test_changed_settings_hold_for_the_changed_system_only(recorder: Recorder) -> None:
    system = bind(Words())
    changed = system.with_settings(depth=3, top_k=3, token_budget=None, budget_rule="skip")
    assert changed.answer("q").answer == "p1 p2 p3"
    assert system.answer("q").answer == "p1"
    assert isinstance(system.system, Words)
    assert system.system.depths == [3, 4]
    assert (changed.settings.depth, system.settings.depth) == (3, 4)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"top_k": 0}, "top_k must be a whole number of 1 or more; it is 0"),
        ({"depth": None}, "depth must be a whole number of 1 or more; it is None"),
        ({"budget_rule": "fit"}, "budget_rule must be 'stop' or 'skip'; it is 'fit'"),
        ({"token_budget": 2.5}, "token_budget must be a whole number of 1 or more; it is 2.5"),
        (
            {"name": "x"},
            "'name' is not a setting that can be changed: use one of depth, top_k, token_budget,"
            " budget_rule",
        ),
    ],
)
def test_changes_are_checked_as_at_decoration(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigurationError) as refusal:
        bind(Words()).with_settings(**changes)
    assert str(refusal.value) == message
