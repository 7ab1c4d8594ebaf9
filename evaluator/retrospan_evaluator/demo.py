"""The shipped example from end to end: run it, and replay what failed under larger settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib.resources import as_file, files

from retrospan_collector.clickhouse.connection import Store
from retrospan_evaluator.diagnosis import Diagnosis, diagnose, failed_cases
from retrospan_evaluator.identifiers import Identifiers
from retrospan_evaluator.replay.arms import Intervention
from retrospan_evaluator.replay.judge import ANSWER_CORRECT
from retrospan_evaluator.replay.report import ReplayReport
from retrospan_evaluator.replay.verdict import Label
from retrospan_evaluator.runs import RunReport, run_dataset
from retrospan_evaluator.systems import load_system
from retrospan_evaluator.testsets.dataset import Dataset, load_dataset

SYSTEM = "retrospan_evaluator.examples.support_rag.system:SupportRag"
"""The example as `--system` names it."""

EXPERIMENTS = (Intervention("top-k", 4), Intervention("token-budget", 120))
"""What anybody would try first when passages are missing from the prompt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demonstration:
    """What the demo did."""

    run: RunReport
    diagnosis: Diagnosis

    @property
    def example(self) -> ReplayReport | None:
        """The failed request worth looking at: a passage lost in assembly, else any."""
        replays = self.diagnosis.replays
        lost = [r for r in replays if r.verdict and r.verdict.label is Label.CONTEXT_ASSEMBLY_LOSS]
        return next(iter([*lost, *replays]), None)

    @property
    def recovered(self) -> int:
        """Failed requests that the gold context recovers."""
        return next((arm.recovered for arm in self.diagnosis.arms), 0)

    @property
    def budget_implicated(self) -> int:
        """How many of the recovered ones lost their passage to the token budget."""
        return sum(
            "context_budget" in replay.verdict.implicated
            for replay in self.diagnosis.replays
            if replay.verdict is not None
        )

    @property
    def restored(self) -> int:
        """Replays in which a larger setting put the page that was lost back into the prompt."""
        return sum(
            any(_best_passage(replay) in arm.prompt for arm in replay.arms[1:])
            for replay in self.diagnosis.replays
            if _best_passage(replay) not in (None, *replay.control.prompt)
        )

    def to_json(self) -> Mapping[str, object]:
        """What `retrospan demo --json` prints."""
        return {
            "version": 1,
            "run": self.run.to_json(),
            "diagnosis": self.diagnosis.to_json(),
            "context_budget_implicated": self.budget_implicated,
        }


def _best_passage(replay: ReplayReport) -> str | None:
    position = replay.best_relevant_position
    return None if position is None else replay.request.passages[position - 1].id


def demo_dataset() -> Dataset:
    """The example's questions, as they are shipped."""
    with as_file(files("retrospan_evaluator.examples.support_rag") / "cases.jsonl") as path:
        return load_dataset(path)


def demonstrate(
    store: Store,
    otlp_grpc: str,
    *,
    identifiers: Identifiers,
    now: datetime,
    say: Callable[[str], None] = lambda step: None,
) -> Demonstration:
    """Run the example and diagnose its failures, all of it through the store.

    Args:
        otlp_grpc: host:port of the receiver that writes to `store`.
        say: told what is being done.
    """
    system = load_system(SYSTEM)
    say("asking the help desk")
    run = run_dataset(demo_dataset(), system, store, otlp_grpc, identifiers=identifiers, now=now)
    say("replaying what it got wrong")
    diagnosis = diagnose(
        failed_cases(store, run.run_id, ANSWER_CORRECT),
        EXPERIMENTS,
        system,
        store,
        otlp_grpc,
        identifiers=identifiers,
        now=now,
    )
    return Demonstration(run=run, diagnosis=diagnosis)
