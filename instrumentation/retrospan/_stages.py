"""The steps of a decorated class's request: retrieve, rerank, assemble, generate."""

import functools
import inspect
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from opentelemetry.trace import Span, SpanKind

from retrospan._assembly import Assembly, BudgetRule, DroppedReason, assemble
from retrospan._calls import given_back
from retrospan._current import open_request
from retrospan._encoding import clean_text
from retrospan._facts import PromptFacts, RetrievalFacts
from retrospan._generating import GenerateCall, GenerateOpening, Generating
from retrospan._memory import RequestMemory, TokenCounter
from retrospan._passages import FULL, Passage, RecordedPassage, Retrieval
from retrospan._record import (
    assembly_attributes,
    prompt_attributes,
    rerank_attributes,
    retrieval_attributes,
)
from retrospan._returned import is_stream
from retrospan._settings import SystemSettings
from retrospan._steps import Step
from retrospan._streams import AsyncStream, Stream
from retrospan._tracing import current_tracer
from retrospan.attributes import Stage


class RagSystem(Protocol):
    """What a decorated class must have; `count_tokens` and `rerank` may come on top.

    Each may be async; `generate` may also be a generator, or return a stream.
    """

    def retrieve(self, input: Any, depth: int, /) -> Any:
        """Return the candidates for an input, best first: a `Retrieval`."""

    def generate(self, input: Any, context: tuple[Passage, ...], /) -> Any:
        """Return the answer as a string, or a mapping that holds it."""


@dataclass(slots=True, kw_only=True)
class Ask:
    """One request to a system, and what became of it on the way."""

    system: RagSystem
    settings: SystemSettings
    input: Any
    passages: Sequence[Passage] | None = None
    """The candidates of a replay; None to ask the retriever."""

    top_k: int | None
    token_budget: int | None
    rule: BudgetRule
    ineligible: Mapping[int, DroppedReason] | None = None
    assembly: Assembly | None = None
    """What entered the prompt; None before assembly."""

    span: Span | None = None
    """The request's span; None where there is none."""


class Stages:
    """The steps of one request, run inside its span; each opens its own.

    Those that call the host exist twice, for plain and for async methods.
    """

    __slots__ = ("_ask", "_capture", "_counter", "_memory", "_tracer")

    def __init__(self, ask: Ask) -> None:
        request = open_request()
        recording = request is not None and request.span.is_recording()
        count = getattr(ask.system, "count_tokens", None)
        self._ask: Final = ask
        self._tracer = current_tracer() if recording else None
        self._capture = FULL if request is None else request.capture
        self._memory = RequestMemory(FULL) if request is None else request.memory
        self._counter = None if count is None else TokenCounter(count)

    def candidates(self) -> Sequence[Passage]:
        """Return the passages in the order assembly takes them: reranked, if the system does."""
        ask = self._ask
        if ask.passages is not None:
            return self._given(ask.passages)
        with self._retrieve_step() as step:
            found = self._retrieved(step, ask.system.retrieve(ask.input, ask.settings.depth))
        rerank = getattr(ask.system, "rerank", None)
        if rerank is None:
            return found
        with self._rerank_step() as step:
            return self._reranked(step, found, rerank(ask.input, found))

    async def candidates_async(self) -> Sequence[Passage]:
        """Return what `candidates` does, where a method may be async."""
        ask = self._ask
        if ask.passages is not None:
            return self._given(ask.passages)
        with self._retrieve_step() as step:
            retrieval = await settled(ask.system.retrieve(ask.input, ask.settings.depth))
            found = self._retrieved(step, retrieval)
        rerank = getattr(ask.system, "rerank", None)
        if rerank is None:
            return found
        with self._rerank_step() as step:
            return self._reranked(step, found, await settled(rerank(ask.input, found)))

    def _given(self, passages: Sequence[Passage]) -> Sequence[Passage]:
        _check_passages("replay", self._ask.settings.name, passages)
        return passages

    def _retrieve_step(self) -> Step:
        return Step(self._tracer, Stage.RETRIEVE, "retrieval", kind=SpanKind.CLIENT)

    def _retrieved(self, step: Step, retrieval: object) -> Sequence[Passage]:
        step.stop_clock()
        settings = self._ask.settings
        if not isinstance(retrieval, Retrieval):
            raise TypeError(
                f"retrieve: {settings.name} must return a retrospan.Retrieval; it returned"
                f" {type(retrieval).__qualname__}"
            )
        found = retrieval.candidates
        _check_passages("retrieve", settings.name, found)
        self._memory.candidates = found
        facts = _retrieval_facts(
            settings.name,
            settings.version,
            settings.depth,
            settings.index_version,
            settings.tokenizer,
        )
        step.record(
            lambda: retrieval_attributes(retrieval, facts, self._recorded(found), self._capture)
        )
        return found

    def _rerank_step(self) -> Step:
        return Step(self._tracer, Stage.RERANK, "rerank")

    def _reranked(self, step: Step, before: Sequence[Passage], after: object) -> Sequence[Passage]:
        step.stop_clock()
        name = self._ask.settings.name
        if not isinstance(after, list | tuple):
            raise TypeError(
                f"rerank: {name} must return a list or tuple of retrospan.Passage; it returned"
                f" {type(after).__qualname__}"
            )
        _check_passages("rerank", name, after)
        self._memory.candidates = kept = tuple(after)
        step.record(lambda: rerank_attributes(self._recorded(before), self._recorded(kept)))
        return kept

    def assemble(self, passages: Sequence[Passage]) -> Assembly:
        """Return what enters the prompt."""
        ask = self._ask
        prompt = _prompt_facts(ask.settings.prompt_version)
        count = self._counter
        with Step(self._tracer, Stage.ASSEMBLE, "assemble", attaches=count is not None) as step:
            if count is not None and ask.token_budget is None:
                # Nothing but the record needs the counts: none for nobody, and none that raise.
                counting = None if self._tracer is None else count.or_unknown
            else:
                counting = count
            assembly = assemble(
                passages,
                top_k=ask.top_k,
                token_budget=ask.token_budget,
                rule=ask.rule,
                count_tokens=counting,
                ineligible=ask.ineligible,
            )
            step.stop_clock()
            step.record(lambda: prompt_attributes(prompt) | assembly_attributes(assembly))
        ask.assembly = assembly
        self._memory.context = assembly.context
        return assembly

    def generate(self, assembly: Assembly) -> Any:
        """Return what the system made of the assembled context; a stream is followed."""
        ask, call = self._ask, self._generate_call()
        try:
            with call.step.attached():
                output = ask.system.generate(ask.input, assembly.context)
                self._check_output(call, output)
        except BaseException as error:
            call.failed(error)
            raise
        return given_back(output, call)

    async def generate_async(self, assembly: Assembly) -> Any:
        """Return what `generate` does, where the method may be async."""
        ask, call = self._ask, self._generate_call()
        try:
            with call.step.attached():
                output = await settled(ask.system.generate(ask.input, assembly.context))
                self._check_output(call, output)
        except BaseException as error:
            call.failed(error)
            raise
        return given_back(output, call)

    def stream(self, assembly: Assembly) -> Stream:
        """Return the steps of a system whose `generate` is a generator."""
        ask, call = self._ask, self._generate_call()
        return Stream(ask.system.generate(ask.input, assembly.context), call)

    def stream_async(self, assembly: Assembly) -> AsyncStream:
        """Return the steps of a system whose `generate` is a generator of either kind."""
        ask, call = self._ask, self._generate_call()
        inner = ask.system.generate(ask.input, assembly.context)
        return AsyncStream(_as_async(inner) if inspect.isgenerator(inner) else inner, call)

    def _generate_call(self) -> GenerateCall:
        settings = self._ask.settings
        opening = _generate_opening(
            settings.name, settings.answer_path, settings.citations_path, settings.prompt_version
        )
        return opening.begin(self._tracer)

    def _check_output(self, call: GenerateCall, output: object) -> None:
        call.step.stop_clock()
        if not isinstance(output, str | Mapping) and not is_stream(output):
            raise TypeError(
                f"generate: {self._ask.settings.name} must return a string or a mapping; it"
                f" returned {type(output).__qualname__}"
            )

    def _recorded(self, passages: Sequence[Passage]) -> list[RecordedPassage]:
        return self._memory.recorded(passages, self._counter)


@functools.lru_cache(maxsize=256)
def _retrieval_facts(
    system: str, version: str, depth: int, index_version: str | None, tokenizer: str | None
) -> RetrievalFacts:
    return RetrievalFacts(
        system=system,
        system_version=version,
        depth=depth,
        index_version=index_version,
        tokenizer=tokenizer,
    )


@functools.lru_cache(maxsize=256)
def _prompt_facts(version: str | None) -> PromptFacts:
    return PromptFacts(version=version)


@functools.lru_cache(maxsize=256)
def _generate_opening(
    system: str, answer_path: str, citations_path: str, prompt_version: str | None
) -> GenerateOpening:
    declared = Generating(
        answer=answer_path, citations=citations_path, prompt_version=prompt_version
    )
    return GenerateOpening(declared, f"generate {clean_text(system)}")


async def settled(output: Any) -> Any:
    """Return what a method returned, waiting for it where it is async."""
    return await output if inspect.isawaitable(output) else output


async def _as_async(inner: Generator[Any, Any, Any]) -> AsyncGenerator[Any, Any]:
    try:
        for item in inner:
            yield item
    finally:
        inner.close()


def _check_passages(stage: str, name: str, passages: Sequence[object]) -> None:
    for position, passage in enumerate(passages, start=1):
        if not isinstance(passage, Passage):
            raise TypeError(
                f"{stage}: {name} must give retrospan.Passage objects; at position {position}"
                f" there is a {type(passage).__qualname__}"
            )
