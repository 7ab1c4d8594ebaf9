"""A replay as a page of a terminal: the label and what it means, every arm, what to try next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rich.text import Text

from retrospan_evaluator.cli.layout import wrap
from retrospan_evaluator.replay.report import ArmReport, ReplayReport
from retrospan_evaluator.replay.verdict import Label, Reason, Strength
from retrospan_evaluator.wording import counted

MEANINGS: Mapping[Label, str] = {
    Label.RETRIEVAL_MISS: "no passage with the answer was retrieved",
    Label.RANKED_OUT: "a passage with the answer was retrieved, but ranked below the top-k cut",
    Label.CONTEXT_ASSEMBLY_LOSS: (
        "a passage with the answer ranked high enough, and was then left out of the prompt"
    ),
    Label.GENERATION_FAILURE: (
        "given only passages with the answer, the generator still got it wrong"
    ),
    Label.UNRESOLVED: "the evidence does not say which stage lost the answer",
}
"""What each label says, in half a sentence."""

_REASONS: Mapping[Reason, str] = {
    Reason.NOT_REPLAYABLE: "the stages of the request were not recorded",
    Reason.EVIDENCE_MISSING: "the control or the gold context could not be run",
    Reason.UNSTABLE_UNDER_CONTROL: "with nothing changed, it passes {passed} of {n}",
    Reason.FAILS_WITH_GOLD_CONTEXT: "it fails with the gold context as well",
    Reason.INCONCLUSIVE_UNDER_REPEATS: "the gold context neither fails nor recovers reliably",
    Reason.NO_RELEVANCE_LABELS: "nothing says which passage is relevant",
    Reason.RELEVANCE_UNIT_MISMATCH: "relevance names chunks, the record holds documents",
    Reason.RELEVANT_NOT_RETRIEVED: "it is nowhere among the recorded candidates",
    Reason.ASSEMBLY_NOT_RECORDED: "which passages entered the prompt was not recorded",
    Reason.RELEVANT_BELOW_TOP_K: "its best position is below top-k",
    Reason.RELEVANT_DROPPED: "it stood within top-k and was dropped",
    Reason.RECOVERED_WITH_RELEVANT_IN_CONTEXT: (
        "the relevant passage was in the prompt, and yet it recovers with gold alone"
    ),
}

_STRENGTHS: Mapping[Strength, str] = {
    Strength.INTERVENTION_RECOVERY: "the gold context recovers the answer",
    Strength.INTERVENTION_NON_RECOVERY: "the gold context does not recover the answer",
    Strength.REPLAY_CONFIRMED: "undoing that one cut recovers the answer too",
    Strength.JUDGED: "a judge, not a person, said what is relevant",
}

_INDENT = 12
_NAME = 20
_DROPPED = {"top_k": "below top-k", "budget": "over budget"}


def replay_page(report: ReplayReport, width: int) -> Iterator[Text]:
    """The lines of the page."""
    request = report.request
    yield Text(f"replay of trace {request.trace_id} with {report.system}", style="bold")
    yield from fact("question", _or_unknown(request.question), width)
    if report.expected is not None:
        yield from fact("expected", report.expected, width)
    yield from fact("answered", _or_unknown(request.answer), width)
    yield Text("")
    yield from verdict_lines(report, width)
    for arm in (report.control, *report.arms):
        yield Text("")
        yield from arm_lines(arm, report.control, width)
    if report.notes:
        yield Text("")
        for note in report.notes:
            yield from fact("note", note, width)
    if report.experiments:
        yield Text("")
        yield Text("Candidate experiments", style="bold")
        for experiment in report.experiments:
            yield from fact("", experiment.text, width)
            if experiment.command is not None:
                yield Text(f"{'':<{_INDENT}}{experiment.command}", style="cyan")


def verdict_lines(report: ReplayReport, width: int) -> Iterator[Text]:
    """The label, what it means, and what it rests on."""
    found = report.verdict
    if found is None:
        yield Text("no label", style="bold")
        return
    yield Text(found.label, style="bold")
    means = unchanged(report) if report.passes_unchanged else MEANINGS[found.label]
    yield from fact("means", means, width)
    because = _REASONS[found.reason].format(passed=report.control.passed, n=report.control.n)
    yield from fact("because", f"{because} ({found.reason})", width)
    if found.strength is not None:
        yield from fact("strength", f"{_STRENGTHS[found.strength]} ({found.strength})", width)
    if found.best_relevant_position is not None:
        yield from fact("relevant", f"best at position {found.best_relevant_position}", width)
    if found.implicated:
        yield from fact("implicates", ", ".join(found.implicated).replace("_", " "), width)


def unchanged(report: ReplayReport) -> str:
    """What it means that a request passes with nothing changed, in half a sentence."""
    match report.recorded_passed:
        case True:
            return "the answer is right, as it was recorded: there is nothing to explain"
        case False:
            return (
                "the recorded answer is wrong, and with nothing changed it is right now: "
                "the failure does not come back, so no stage can be blamed for it"
            )
        case None:
            return "with nothing changed the answer is right: there is nothing to explain"


def arm_lines(arm: ArmReport, control: ArmReport, width: int) -> Iterator[Text]:
    """One arm: how it fared beside the control, what it was shown, what it answered."""
    name = f"{arm.intervention.name:<{_NAME}}"
    if arm.cannot_answer is not None:
        yield from fact(name, f"cannot be answered: {arm.cannot_answer}", width, indent=_NAME)
        return
    yield Text.assemble((name, "bold"), _outcome(arm, control))
    tokens = "" if arm.prompt_tokens is None else f" ({arm.prompt_tokens} tokens)"
    yield from fact("prompt", (", ".join(arm.prompt) or "empty") + tokens, width)
    if arm.dropped:
        left_out = (
            f"{d.id} at {d.position} {_DROPPED.get(d.reason, d.reason)}" for d in arm.dropped
        )
        yield from fact("left out", ", ".join(left_out), width)
    for answer, times in _counted(arm.answers).items():
        again = "" if times == len(arm.answers) else f" ({times} of {len(arm.answers)} times)"
        yield from fact("answer", answer + again, width)
    for error in arm.errors:
        yield from fact("raised", error, width)
    if arm.answer_missing is not None:
        yield from fact("no answer", arm.answer_missing, width)


def fact(label: str, value: str, width: int, indent: int = _INDENT) -> Iterator[Text]:
    """A labelled text of a trace, wrapped and made safe for a terminal."""
    first, *more = wrap(value, max(20, width - indent))
    yield Text.assemble((f"{label:<{indent}}", "dim"), first)
    for line in more:
        yield Text(" " * indent + line)


def _outcome(arm: ArmReport, control: ArmReport) -> tuple[str, str]:
    """How an arm fared, and the colour of that."""
    if arm.n == 0:
        nothing = "no answer" if set(arm.answers) <= {None} else "nothing to judge"
        return f"{nothing} in {counted(len(arm.answers), 'run')}, so it is not measured", "yellow"
    if arm.passed is None:
        return f"run {counted(arm.n, 'time')}", ""
    passed = f"passed {arm.passed} of {arm.n}"
    if arm.recovered is None:
        return passed, ""
    if control.passed == control.n:
        # Nothing failed, so nothing can be said to recover.
        same = arm.passed == arm.n
        return f"{passed}, {'as' if same else 'where'} the control does", "" if same else "red"
    return (
        (f"{passed}, recovers", "green")
        if arm.recovered
        else (f"{passed}, does not recover", "red")
    )


def _counted(answers: tuple[str | None, ...]) -> Mapping[str, int]:
    counts: dict[str, int] = {}
    for answer in answers:
        shown = _or_unknown(answer)
        counts[shown] = counts.get(shown, 0) + 1
    return counts


def _or_unknown(text: str | None) -> str:
    return "(not recorded)" if text is None else text
