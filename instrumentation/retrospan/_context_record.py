"""Record what entered a prompt: by the library's own assembly, or by code that does it itself."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from opentelemetry import trace

from retrospan import _assembly, attributes
from retrospan._assembly import Assembly, BudgetRule, DroppedReason
from retrospan._choice import Choice
from retrospan._encoding import clean_text
from retrospan._facts import PromptFacts
from retrospan._guard import guarded
from retrospan._passages import Passage
from retrospan._record import assembly_attributes, prompt_attributes
from retrospan._steps import Step
from retrospan._tracing import current_tracer
from retrospan.attributes import Stage


def assemble(
    passages: Sequence[Passage],
    *,
    top_k: int | None = None,
    token_budget: int | None = None,
    rule: BudgetRule = "stop",
    count_tokens: Callable[[Passage], int] | None = None,
    ineligible: Mapping[int, DroppedReason] | None = None,
    prompt_name: str | None = None,
    prompt_version: str | None = None,
) -> Assembly:
    """Return which passages enter the prompt, and the reason for each that does not.

    First the passages beyond `top_k` go, then those without room. Inside a span that is
    recorded the outcome is recorded too; otherwise this is a pure function.

    Args:
        passages: the candidates, best first.
        top_k: how many positions to consider; None for all.
        token_budget: tokens the context may hold; None for no limit.
        rule: `stop` keeps the longest prefix that fits; `skip` leaves out a passage that does
            not fit and tries the next.
        count_tokens: asked for every passage that carries no count of its own.
        ineligible: 1-based positions that are out for a reason of their own. They hold their
            position, count toward `top_k` and weigh no tokens.
        prompt_name: name of the prompt, for the record.
        prompt_version: version of the prompt, for the record.

    Raises:
        TypeError: there is a budget, and a passage it must be applied to has no token count.
        ValueError: a limit is negative, or the rule is unknown.
    """
    recording = False
    with guarded("find the current span"):
        recording = trace.get_current_span().is_recording()
    step = _assemble_step(prompt_name) if recording else Step(None, Stage.ASSEMBLE, "assemble")
    with step:
        assembly = _assembly.assemble(
            passages,
            top_k=top_k,
            token_budget=token_budget,
            rule=rule,
            count_tokens=count_tokens,
            ineligible=ineligible,
        )
        step.stop_clock()
        if recording:
            _record(step, assembly, PromptFacts(name=prompt_name, version=prompt_version))
    return assembly


def record_context(
    kept: Iterable[object],
    *,
    dropped: Mapping[str, str] | Iterable[tuple[object, str]] = (),
    candidates: Sequence[object] | None = None,
    top_k: int | None = None,
    token_budget: int | None = None,
    rule: BudgetRule | None = None,
    prompt: str | None = None,
    prompt_name: str | None = None,
    prompt_version: str | None = None,
) -> None:
    """Record which passages entered a prompt, for code that assembles its prompt by itself.

    Also beside the spans of another instrumentation: it adds what those lack. Outside of any
    recorded span nothing happens, and nothing is ever raised.

    Args:
        kept: passages, or documents of a framework, or passage ids (texts), in prompt order.
        dropped: the reason for each passage left out whose reason is known (a `DroppedReason`):
            by id, or as pairs.
        candidates: what there was to choose from, best first; None for what the request
            retrieved last, else for what is kept and dropped.
        top_k: how many positions were considered.
        token_budget: tokens the context could hold.
        rule: what happened at a passage that did not fit.
        prompt: the finished prompt; only its hash is recorded.
        prompt_name: name of the prompt.
        prompt_version: version of the prompt.
    """
    with guarded("record a context"):
        if not trace.get_current_span().is_recording():
            return
        with _assemble_step(prompt_name) as step:
            request = step.request
            if request is None:
                return
            seen = request.memory.candidates if candidates is None else candidates
            choice = Choice(seen)
            choice.keep(kept)
            choice.drop(dropped)
            assembly = choice.assembly(top_k, token_budget, rule)
            _record(step, assembly, PromptFacts(name=prompt_name, version=prompt_version))
            if prompt is not None:
                step.record(
                    lambda: {attributes.ASSEMBLY_PROMPT_HASH: request.capture.text_hash(prompt)}
                )


def _assemble_step(prompt_name: str | None) -> Step:
    name = "assemble" if prompt_name is None else f"assemble {clean_text(prompt_name)}"
    return Step(current_tracer(), Stage.ASSEMBLE, name)


def _record(step: Step, assembly: Assembly, prompt: PromptFacts) -> None:
    request = step.request
    if request is not None:
        request.memory.context = assembly.context
        step.record(lambda: assembly_attributes(assembly) | prompt_attributes(prompt))
