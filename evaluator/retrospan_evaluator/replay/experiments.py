"""Candidate experiments: what a replay's finding suggests trying, as text and as a command."""

from __future__ import annotations

from dataclasses import dataclass

from retrospan_evaluator.replay.arms import GOLD_CONTEXT, Intervention, recorded_arm
from retrospan_evaluator.replay.report import Experiment, ReplayReport
from retrospan_evaluator.replay.verdict import Label, Reason
from retrospan_evaluator.traces.request import RecordedPassage
from retrospan_evaluator.untrusted import Typed, command_line

_MORE_REPEATS = 20
"""Runs that may decide what fewer left open."""

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
    if report.passes_unchanged:
        return ()
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
            command=_run(typed, f"depth={2 * depth}"),
        ),
    )


def _raise_top_k(report: ReplayReport, typed: TypedReplay) -> tuple[Experiment, ...]:
    passage = _best_passage(report)
    if passage is None:
        return ()
    if passage.dropped_reason not in (None, "top_k"):
        return (_no_setting(passage),)
    arm = Intervention("top-k", passage.position)
    prompt = recorded_arm(report.request, arm).prompt
    if prompt is not None and passage.id not in prompt:
        return (_both_cuts(passage, typed),)
    text = f"A top-k of {arm.value} considers the relevant passage at position {arm.value}"
    return _untried(report, typed, arm, text)


def _make_room(report: ReplayReport, typed: TypedReplay) -> tuple[Experiment, ...]:
    passage = _best_passage(report)
    if passage is None:
        return ()
    if passage.dropped_reason != "budget":
        return (_no_setting(passage),)
    if passage.cumulative_tokens is None:
        return ()
    arm = Intervention("token-budget", passage.cumulative_tokens)
    text = (
        f"A token budget of {arm.value} is the smallest that holds every passage down to "
        f"the relevant one at position {passage.position}"
    )
    return _untried(report, typed, arm, text)


def _no_setting(passage: RecordedPassage) -> Experiment:
    return Experiment(
        text=f"The relevant passage was left out as {passage.dropped_reason}: "
        "no setting brings it back, look at the step that decided so",
        command=None,
    )


def _both_cuts(passage: RecordedPassage, typed: TypedReplay) -> Experiment:
    """The passage is below top-k, and the budget would leave it out there as well."""
    top_k, budget = passage.position, passage.cumulative_tokens
    settings = None if budget is None else (f"top_k={top_k}", f"token_budget={budget}")
    return Experiment(
        text=f"A top-k of {top_k} alone does not bring the relevant passage into the prompt, for "
        "the token budget leaves it out there: run a dataset with both of them larger",
        command=None if settings is None else _run(typed, *settings),
    )


def _untried(
    report: ReplayReport, typed: TypedReplay, proposed: Intervention, text: str
) -> tuple[Experiment, ...]:
    """The arm as an experiment, unless this replay has shown the generator that very prompt.

    Where that recovered the answer, what is left to try are the other questions.
    """
    prompt = recorded_arm(report.request, proposed).prompt
    for arm in (report.control, *report.arms):
        if arm.intervention == proposed:
            return ()
        # The gold context may hold other texts under the same ids.
        if arm.intervention == GOLD_CONTEXT or arm.n == 0 or arm.prompt != prompt:
            continue
        if not arm.recovered:
            return ()
        setting = f"{proposed.kind.replace('-', '_')}={proposed.value}"
        return (
            Experiment(
                text=f"{text}, which is the prompt of {arm.intervention.name}, and that recovers "
                "the answer: run a dataset with it",
                command=_run(typed, setting),
            ),
        )
    option = (f"--{proposed.kind}", proposed.value or 0)
    return (Experiment(text=text, command=typed.command(report.request.trace_id, option)),)


def _run(typed: TypedReplay, *settings: str) -> str | None:
    options: list[Option] = [("--system", Typed(typed.system))]
    options += [("--set", Typed(setting)) for setting in settings]
    return command_line("retrospan", "run", "DATASET", options=options)


def _gather_evidence(
    report: ReplayReport, typed: TypedReplay, reason: Reason
) -> tuple[Experiment, ...]:
    trace_id = report.request.trace_id
    match reason:
        case Reason.EVIDENCE_MISSING if report.control.n > 0 and report.arms[0].cannot_answer:
            # Gold that is named and has no text needs a file; else a name is what is missing.
            missing = ("--gold-passage", Typed("ID=FILE")) if typed.gold else ("--gold", "ID")
            return (
                Experiment(
                    text="Name the passage that holds the answer, and its text where it was not "
                    "retrieved",
                    command=typed.command(trace_id, missing),
                ),
            )
        case Reason.INCONCLUSIVE_UNDER_REPEATS if report.control.n < _MORE_REPEATS:
            return (
                Experiment(
                    text="More runs may decide what these leave open",
                    command=typed.command(trace_id, ("--repeats", _MORE_REPEATS)),
                ),
            )
        case Reason.RECOVERED_WITH_RELEVANT_IN_CONTEXT:
            position = report.best_relevant_position
            if position is None:
                return ()
            text = (
                "The relevant passage was in the prompt, so what stood beside it may "
                f"distract: try a prompt that ends at position {position}"
            )
            return _untried(report, typed, Intervention("top-k", position), text)
        case _:
            return ()


def _best_passage(report: ReplayReport) -> RecordedPassage | None:
    position = report.best_relevant_position
    if position is None:
        return None
    return report.request.passages[position - 1]
