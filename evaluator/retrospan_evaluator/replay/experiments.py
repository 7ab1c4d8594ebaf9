"""Candidate experiments: what a replay's finding suggests trying, as text and as a command."""

from __future__ import annotations

from dataclasses import dataclass

from retrospan_evaluator.replay.report import Experiment, ReplayReport
from retrospan_evaluator.replay.verdict import Label, Reason
from retrospan_evaluator.traces.request import RecordedPassage
from retrospan_evaluator.untrusted import Typed, command_line

Option = tuple[str, str | int | Typed]


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedReplay:
    """What was typed to start a replay, so that a command that goes on from it says the same."""

    system: str
    expect: str | None = None
    gold: tuple[str, ...] = ()
    gold_passages: tuple[str, ...] = ()
    root: str | None = None
    store: tuple[Option, ...] = ()
    """`--store`, where the next command needs it to find the same data."""

    def command(self, trace_id: str, *more: Option) -> str | None:
        """A replay of the trace with further options; None where it cannot be printed safely."""
        options: list[Option] = [("--system", Typed(self.system))]
        if self.root is not None:
            options.append(("--root", self.root))
        if self.expect is not None:
            options.append(("--expect", Typed(self.expect)))
        options += [("--gold", Typed(identifier)) for identifier in self.gold]
        options += [("--gold-passage", Typed(entry)) for entry in self.gold_passages]
        return command_line("retrospan", "replay", trace_id, options=[*options, *more, *self.store])


def experiments(report: ReplayReport, typed: TypedReplay) -> tuple[Experiment, ...]:
    """What could be tried next; an arm that this replay already has is not proposed again."""
    trace_id = report.request.trace_id
    if report.verdict is None:
        return (
            Experiment(
                text="Say what a right answer contains, to get a label",
                command=typed.command(trace_id, ("--expect", "TEXT")),
            ),
        )
    match report.verdict.label:
        case Label.RETRIEVAL_MISS:
            return _retrieve_deeper(report, typed)
        case Label.RANKED_OUT:
            return _raise_top_k(report, typed)
        case Label.CONTEXT_ASSEMBLY_LOSS:
            return _make_room(report, typed)
        case Label.GENERATION_FAILURE:
            return (
                Experiment(
                    text="The generator fails even on the gold passages alone: change its prompt "
                    "or model, then replay this request",
                    command=typed.command(trace_id),
                ),
            )
        case Label.UNRESOLVED:
            return _gather_evidence(report, typed, report.verdict.reason)


def _retrieve_deeper(report: ReplayReport, typed: TypedReplay) -> tuple[Experiment, ...]:
    depth = report.request.settings.depth
    if depth is None:
        return ()
    return (
        Experiment(
            text=f"No relevant passage is among the first {depth}: retrieve deeper, or look at "
            "how the question and the passage are matched",
            command=command_line(
                "retrospan",
                "run",
                "DATASET",
                options=[("--system", Typed(typed.system)), ("--set", Typed(f"depth={2 * depth}"))],
            ),
        ),
    )


def _raise_top_k(report: ReplayReport, typed: TypedReplay) -> tuple[Experiment, ...]:
    position = report.best_relevant_position
    if position is None or _tried(report, f"top-k {position}"):
        return ()
    return (
        Experiment(
            text=f"A top-k of {position} considers the relevant passage at position {position}",
            command=typed.command(report.request.trace_id, ("--top-k", position)),
        ),
    )


def _make_room(report: ReplayReport, typed: TypedReplay) -> tuple[Experiment, ...]:
    passage = _best_passage(report)
    if passage is None:
        return ()
    if passage.dropped_reason != "budget":
        return (
            Experiment(
                text=f"The relevant passage was left out as {passage.dropped_reason}: "
                "no setting brings it back, look at the step that decided so",
                command=None,
            ),
        )
    budget = passage.cumulative_tokens
    if budget is None or _tried(report, f"token-budget {budget}"):
        return ()
    return (
        Experiment(
            text=f"A token budget of {budget} is the smallest that holds every passage down to "
            f"the relevant one at position {passage.position}",
            command=typed.command(report.request.trace_id, ("--token-budget", budget)),
        ),
    )


def _gather_evidence(
    report: ReplayReport, typed: TypedReplay, reason: Reason
) -> tuple[Experiment, ...]:
    trace_id = report.request.trace_id
    match reason:
        case Reason.EVIDENCE_MISSING if report.control.n > 0:
            # Gold that is named and has no text needs a file; else a name is what is missing.
            missing = ("--gold-passage", Typed("ID=FILE")) if typed.gold else ("--gold", "ID")
            return (
                Experiment(
                    text="Name the passage that holds the answer, and its text where it was not "
                    "retrieved",
                    command=typed.command(trace_id, missing),
                ),
            )
        case Reason.INCONCLUSIVE_UNDER_REPEATS:
            return (
                Experiment(
                    text="More runs may decide what these leave open",
                    command=typed.command(trace_id, ("--repeats", 20)),
                ),
            )
        case Reason.RECOVERED_WITH_RELEVANT_IN_CONTEXT:
            position = report.best_relevant_position
            if position is None or _tried(report, f"top-k {position}"):
                return ()
            return (
                Experiment(
                    text="The relevant passage was in the prompt, so what stood beside it may "
                    f"distract: try a prompt that ends at position {position}",
                    command=typed.command(trace_id, ("--top-k", position)),
                ),
            )
        case _:
            return ()


def _best_passage(report: ReplayReport) -> RecordedPassage | None:
    position = report.best_relevant_position
    if position is None:
        return None
    return report.request.passages[position - 1]


def _tried(report: ReplayReport, intervention: str) -> bool:
    return any(arm.intervention.name == intervention for arm in report.arms)
