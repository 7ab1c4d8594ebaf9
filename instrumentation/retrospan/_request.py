"""One request through a system: retrieve, assemble, generate, with a span for each."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from opentelemetry.trace import SpanKind

from retrospan._assembly import Assembly, BudgetRule, DroppedReason, assemble
from retrospan._encoding import clean_text
from retrospan._facts import PromptFacts, RequestFacts, RetrievalFacts
from retrospan._guard import guarded
from retrospan._memory import RequestMemory, TokenCounter
from retrospan._output import Citation, answer_of, citations_of
from retrospan._passages import FULL, Passage, Retrieval
from retrospan._record import (
    RecordedPassage,
    assembly_attributes,
    context_attributes,
    generation_attributes,
    prompt_attributes,
    request_attributes,
    rerank_attributes,
    retrieval_attributes,
)
from retrospan._run_scope import RunScope, current_run
from retrospan._settings import SystemSettings
from retrospan._steps import Step
from retrospan._tracing import current_tracer
from retrospan.attributes import Stage


class RagSystem(Protocol):
    """What a decorated class must have; `count_tokens` and `rerank` may come on top."""

    def retrieve(self, input: Any, depth: int, /) -> Retrieval:
        """Return the candidates for an input, best first."""

    def generate(self, input: Any, context: tuple[Passage, ...], /) -> object:
        """Return the answer as a string, or a mapping that holds it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one request gave."""

    output: object
    """What `generate` returned, untouched."""

    answer: str | None
    """The answer in it; None when it holds none."""

    citations: tuple[Citation, ...]
    """The citations in it, as given; empty when it holds none."""

    assembly: Assembly
    """What entered the prompt, and what did not."""


class Request:
    """The steps of one request; each opens its span under the request's."""

    __slots__ = (
        "_capture",
        "_counter",
        "_input",
        "_memory",
        "_prompt_facts",
        "_retrieval_facts",
        "_settings",
        "_system",
        "_tracer",
    )

    def __init__(
        self, system: RagSystem, settings: SystemSettings, input: object, step: Step
    ) -> None:
        request = step.request
        self._system = system
        self._settings = settings
        self._input = input
        self._tracer = step.recording_tracer
        self._capture = FULL if request is None else request.capture
        self._memory = RequestMemory(FULL) if request is None else request.memory
        count = getattr(system, "count_tokens", None)
        self._counter = None if count is None else TokenCounter(count)
        self._prompt_facts = PromptFacts(version=settings.prompt_version)
        self._retrieval_facts = RetrievalFacts(
            system=settings.name,
            system_version=settings.version,
            depth=settings.depth,
            index_version=settings.index_version,
            tokenizer=settings.tokenizer,
        )

    def retrieve(self) -> Sequence[Passage]:
        """Return the candidates in the order assembly takes them: reranked, if the system does."""
        settings = self._settings
        step = Step(self._tracer, Stage.RETRIEVE, "retrieval", kind=SpanKind.CLIENT)
        with step:
            retrieval = self._system.retrieve(self._input, settings.depth)
            step.stop_clock()
            if not isinstance(retrieval, Retrieval):
                raise TypeError(
                    f"retrieve: {settings.name} must return a retrospan.Retrieval; it returned"
                    f" {type(retrieval).__qualname__}"
                )
            _check_passages("retrieve", settings.name, retrieval.candidates)
            step.record(
                lambda: retrieval_attributes(
                    retrieval,
                    self._retrieval_facts,
                    self._recorded(retrieval.candidates),
                    self._capture,
                )
            )
        rerank = getattr(self._system, "rerank", None)
        return retrieval.candidates if rerank is None else self._rerank(rerank, retrieval)

    def _rerank(
        self, rerank: Callable[[object, Sequence[Passage]], object], retrieval: Retrieval
    ) -> Sequence[Passage]:
        before = retrieval.candidates
        with Step(self._tracer, Stage.RERANK, "rerank") as step:
            after = rerank(self._input, before)
            step.stop_clock()
            if not isinstance(after, list | tuple):
                raise TypeError(
                    f"rerank: {self._settings.name} must return a list or tuple of"
                    f" retrospan.Passage; it returned {type(after).__qualname__}"
                )
            _check_passages("rerank", self._settings.name, after)
            step.record(lambda: rerank_attributes(self._recorded(before), self._recorded(after)))
        return tuple(after)

    def assemble(
        self,
        passages: Sequence[Passage],
        *,
        top_k: int | None,
        token_budget: int | None,
        rule: BudgetRule,
        ineligible: Mapping[int, DroppedReason] | None = None,
    ) -> Assembly:
        """Return what enters the prompt."""
        with Step(self._tracer, Stage.ASSEMBLE, "assemble") as step:
            step.record(lambda: prompt_attributes(self._prompt_facts))
            assembly = assemble(
                passages,
                top_k=top_k,
                token_budget=token_budget,
                rule=rule,
                count_tokens=self._counting(token_budget),
                ineligible=ineligible,
            )
            step.stop_clock()
            step.record(lambda: assembly_attributes(assembly))
        return assembly

    def generate(self, assembly: Assembly) -> Outcome:
        """Return what the system made of the assembled context."""
        settings = self._settings
        name = f"generate {clean_text(settings.name)}"
        with Step(self._tracer, Stage.GENERATE, name) as step:
            step.record(lambda: prompt_attributes(self._prompt_facts))
            step.record(lambda: context_attributes(self._recorded(assembly.context), self._capture))
            output = self._system.generate(self._input, assembly.context)
            step.stop_clock()
            if not isinstance(output, str | Mapping):
                raise TypeError(
                    f"generate: {settings.name} must return a string or a mapping; it returned"
                    f" {type(output).__qualname__}"
                )
            answer = answer_of(output, settings.answer_path)
            citations = citations_of(output, settings.citations_path)
            step.record(lambda: generation_attributes(answer, citations, self._capture))
        return Outcome(output=output, answer=answer, citations=citations or (), assembly=assembly)

    def _counting(self, token_budget: int | None) -> Callable[[Passage], int] | None:
        """Return how to count: strictly for a budget, else for the record, else not at all."""
        if self._counter is None or token_budget is not None:
            return self._counter
        return None if self._tracer is None else self._counter.or_unknown

    def _recorded(self, passages: Sequence[Passage]) -> list[RecordedPassage]:
        return self._memory.recorded(passages, self._counter)


def serve(system: RagSystem, settings: SystemSettings, input: object) -> Outcome:
    """Run one request whole: retrieve, assemble, generate."""
    with _request_step(system, settings, input) as request:
        assembly = request.assemble(
            request.retrieve(),
            top_k=settings.top_k,
            token_budget=settings.token_budget,
            rule=settings.budget_rule,
        )
        return request.generate(assembly)


def serve_again(
    system: RagSystem,
    settings: SystemSettings,
    input: object,
    passages: Sequence[Passage],
    *,
    top_k: int | None,
    token_budget: int | None,
    rule: BudgetRule,
    ineligible: Mapping[int, DroppedReason] | None,
) -> Outcome:
    """Run a request on passages already known: the retriever is not asked."""
    with _request_step(system, settings, input) as request:
        _check_passages("replay", settings.name, passages)
        assembly = request.assemble(
            passages, top_k=top_k, token_budget=token_budget, rule=rule, ineligible=ineligible
        )
        return request.generate(assembly)


@contextmanager
def _request_step(system: RagSystem, settings: SystemSettings, input: object) -> Iterator[Request]:
    run: RunScope | None = None
    with guarded("find the run"):
        run = current_run()
    name = f"invoke_workflow {clean_text(settings.name)}"
    with Step(current_tracer(), Stage.REQUEST, name, opens=settings.capture) as step:
        request = step.request
        facts = RequestFacts(name=settings.name, version=settings.version, input=input, run=run)
        if request is not None:
            step.record(lambda: request_attributes(facts, request.capture))
        yield Request(system, settings, input, step)


def _check_passages(stage: str, name: str, passages: Sequence[object]) -> None:
    for position, passage in enumerate(passages, start=1):
        if not isinstance(passage, Passage):
            raise TypeError(
                f"{stage}: {name} must give retrospan.Passage objects; at position {position}"
                f" there is a {type(passage).__qualname__}"
            )
