"""Every figure that is told about the shipped example, from its code and texts alone.

No store, no spans: retrieve, assemble and generate as a system's author would call them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import cast

import pytest

from retrospan import Assembly, Passage, assemble, bind
from retrospan_evaluator.examples.support_rag.system import SupportRag
from retrospan_evaluator.metrics.answer import contains
from retrospan_evaluator.metrics.request import Candidate, ScoredRequest
from retrospan_evaluator.metrics.suite import default_metrics
from retrospan_evaluator.metrics.summary import MetricSummary, summarise
from retrospan_evaluator.replay.verdict import (
    Arm,
    Evidence,
    Label,
    RankedPassage,
    Runs,
    Verdict,
    verdict,
)
from retrospan_evaluator.statistics.rounding import percent_interval
from retrospan_evaluator.testsets.case import Case
from retrospan_evaluator.testsets.dataset import Dataset, load_dataset

TOP_K, BUDGET = 2, 40


@dataclass(frozen=True)
class Answered:
    """A case, what was found for it, what was kept, what was said."""

    case: Case
    found: Sequence[Passage]
    assembly: Assembly
    answer: str
    cited: Sequence[str]

    @property
    def right(self) -> bool:
        assert self.case.expected_answer is not None
        return contains(self.answer, self.case.expected_answer)


@pytest.fixture(scope="module")
def system() -> SupportRag:
    return SupportRag()


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    package = files("retrospan_evaluator.examples.support_rag")
    return load_dataset(Path(str(package / "cases.jsonl")))


def question(case: Case) -> dict[str, object]:
    return cast(dict[str, object], case.input)


def answered(
    system: SupportRag,
    case: Case,
    found: Sequence[Passage],
    top_k: int | None = TOP_K,
    token_budget: int | None = BUDGET,
) -> Answered:
    assembly = assemble(
        found, top_k=top_k, token_budget=token_budget, count_tokens=system.count_tokens
    )
    said = system.generate(question(case), assembly.context)
    return Answered(
        case, found, assembly, str(said["answer"]), cast(Sequence[str], said["citations"])
    )


@pytest.fixture(scope="module")
def controls(system: SupportRag, dataset: Dataset) -> tuple[Answered, ...]:
    return tuple(
        answered(system, case, system.retrieve(question(case), 6).candidates)
        for case in dataset.cases
    )


@pytest.fixture(scope="module")
def failures(controls: Sequence[Answered]) -> tuple[Answered, ...]:
    return tuple(control for control in controls if not control.right)


def gold(case: Case) -> list[Passage]:
    return [Passage(entry.passage_id, entry.text) for entry in case.gold_context]


@pytest.fixture(scope="module")
def with_gold(system: SupportRag, failures: Sequence[Answered]) -> tuple[Answered, ...]:
    return tuple(
        answered(system, failure.case, gold(failure.case), top_k=None, token_budget=None)
        for failure in failures
    )


def test_the_example_has_fourteen_passages_and_thirteen_complete_cases(
    system: SupportRag, dataset: Dataset
) -> None:
    package = files("retrospan_evaluator.examples.support_rag")
    assert len((package / "passages.jsonl").read_text("utf-8").splitlines()) == 14
    assert len(dataset.cases) == 13
    for case in dataset.cases:
        assert case.expected_answer and case.relevant and case.gold_context
        assert case.metadata["topic"]


def test_its_settings_are_those_that_are_told(system: SupportRag) -> None:
    settings = bind(system).settings

    assert (settings.depth, settings.top_k, settings.token_budget) == (6, TOP_K, BUDGET)
    assert (settings.budget_rule, settings.deterministic) == ("stop", True)
    assert settings.index_version


def test_gold_texts_are_the_help_pages_own(system: SupportRag, dataset: Dataset) -> None:
    for case in dataset.cases:
        # A page's own words find that page first.
        for entry in case.gold_context:
            first = system.retrieve({"question": entry.text}, 1).candidates[0]
            assert (first.id, first.text) == (entry.document_id, entry.text)


def test_every_help_page_fits_the_budget_alone(system: SupportRag, dataset: Dataset) -> None:
    found = [system.retrieve(question(case), 14).candidates for case in dataset.cases]

    assert all(system.count_tokens(page) <= BUDGET for pages in found for page in pages)


def scored(controls: Sequence[Answered], dataset: Dataset) -> dict[str, MetricSummary]:
    metrics = default_metrics(dataset, top_k=TOP_K, depth=6)
    requests = [
        ScoredRequest(
            case=control.case,
            candidates=tuple(Candidate(id=p.id, document_id=p.document_id) for p in control.found),
            answer=control.answer,
            citations=len(control.cited),
            dangling_citations=tuple(
                cited
                for cited in control.cited
                if cited not in {passage.id for passage in control.assembly.context}
            ),
        )
        for control in controls
    ]
    scores = [metric.score(request) for request in requests for metric in metrics]
    return {summary.name: summary for summary in summarise(metrics, scores)}


def test_nine_of_thirteen_are_right_twelve_are_hits_and_every_citation_is_valid(
    controls: Sequence[Answered], dataset: Dataset
) -> None:
    figures = scored(controls, dataset)

    right = figures["answer_correct"]
    assert (right.successes, right.n) == (9, 13)
    assert right.lower is not None and right.upper is not None
    assert percent_interval(right.lower, right.upper) == "[38.5 %, 91.0 %]"
    assert (figures["hit_rate_at_2"].successes, figures["hit_rate_at_2"].n) == (12, 13)
    assert (figures["citations_valid"].successes, figures["citations_valid"].n) == (13, 13)
    assert figures["recall_at_2"].estimate == pytest.approx(12 / 13)
    assert figures["ndcg_at_6"].n == 13


def fate(failure: Answered) -> str:
    """What became of the relevant page."""
    wanted = failure.case.relevant[0].document_id
    placement = next(
        (place for place in failure.assembly.placements if place.passage.id == wanted), None
    )
    if placement is None:
        return "not retrieved"
    return placement.dropped_reason or "in the prompt"


def test_the_four_failures_have_three_kinds_of_cause(failures: Sequence[Answered]) -> None:
    assert Counter(fate(failure) for failure in failures) == {
        "not retrieved": 1,
        "budget": 2,
        "in the prompt": 1,
    }
    for failure in failures:
        # Six candidates were there to choose from, and the budget cut within the top 2.
        if fate(failure) == "not retrieved":
            assert len(failure.found) == 6
        if fate(failure) == "budget":
            assert failure.assembly.placements[1].dropped_reason == "budget"
            assert failure.found[1].id == failure.case.relevant[0].document_id


def test_nobody_gives_up_every_failure_is_a_plausible_wrong_sentence(
    failures: Sequence[Answered], system: SupportRag
) -> None:
    for failure in failures:
        assert any(failure.answer in passage.text for passage in failure.assembly.context)


def test_the_gold_context_recovers_three_of_four(with_gold: Sequence[Answered]) -> None:
    assert sum(gold_answer.right for gold_answer in with_gold) == 3


@pytest.mark.parametrize(("top_k", "token_budget"), [(4, BUDGET), (TOP_K, 120)])
def test_neither_a_larger_top_k_nor_a_larger_budget_recovers_any(
    system: SupportRag, failures: Sequence[Answered], top_k: int, token_budget: int
) -> None:
    again = [answered(system, f.case, f.found, top_k, token_budget) for f in failures]

    assert [answer.right for answer in again] == [False] * 4


def test_the_larger_budget_does_bring_the_dropped_pages_back(
    system: SupportRag, failures: Sequence[Answered]
) -> None:
    dropped = [failure for failure in failures if fate(failure) == "budget"]
    again = [answered(system, f.case, f.found, TOP_K, 120) for f in dropped]

    assert [fate(answer) for answer in again] == ["in the prompt"] * 2


def labelled(failure: Answered, gold_answer: Answered, system: SupportRag) -> Verdict:
    def runs(answer: Answered) -> Runs:
        return Runs(passed=int(answer.right), n=1)

    larger: dict[str, Callable[[], Answered]] = {
        "top_k": lambda: answered(system, failure.case, failure.found, 4, BUDGET),
        "token_budget": lambda: answered(system, failure.case, failure.found, TOP_K, 120),
    }
    arms = []
    for kind, run in larger.items():
        answer = run()
        arms.append(
            Arm(
                intervention=kind,
                kind="top_k" if kind == "top_k" else "token_budget",
                runs=runs(answer),
                prompt=tuple(passage.id for passage in answer.assembly.context),
            )
        )
    return verdict(
        Evidence(
            replayable=True,
            control=runs(failure),
            gold=runs(gold_answer),
            single_run_decides=True,
            arms=tuple(arms),
            relevant=failure.case.relevant,
            passages=tuple(
                RankedPassage(
                    id=place.passage.id,
                    document_id=place.passage.document_id,
                    prompt_position=place.prompt_position,
                    dropped_reason=place.dropped_reason,
                )
                for place in failure.assembly.placements
            ),
            top_k=TOP_K,
        )
    )


def test_the_labels_name_the_stage_and_the_budget_is_implicated_in_two_of_three(
    system: SupportRag, failures: Sequence[Answered], with_gold: Sequence[Answered]
) -> None:
    verdicts = [
        labelled(failure, gold_answer, system)
        for failure, gold_answer in zip(failures, with_gold, strict=True)
    ]

    assert Counter(found.label for found in verdicts) == {
        Label.RETRIEVAL_MISS: 1,
        Label.CONTEXT_ASSEMBLY_LOSS: 2,
        Label.GENERATION_FAILURE: 1,
    }
    recovered = [found for found, answer in zip(verdicts, with_gold, strict=True) if answer.right]
    assert sum("context_budget" in found.implicated for found in recovered) == 2
    assert len(recovered) == 3
    # No larger budget recovered anything, so no label may claim a confirmation.
    assert {found.strength for found in recovered} == {"intervention_recovery"}


def test_it_answers_when_nothing_is_found(system: SupportRag) -> None:
    nothing = bind(system).answer({"question": "???"})

    assert nothing.assembly.context == ()
    assert nothing.citations == ()
    assert nothing.answer
