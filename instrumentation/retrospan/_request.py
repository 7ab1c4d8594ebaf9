"""One request through a decorated class, of whatever kind its methods are."""

import enum
import functools
import inspect
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any

from retrospan._assembly import Assembly
from retrospan._calls import forwarding, recorded
from retrospan._chunks import Chunks
from retrospan._encoding import clean_text
from retrospan._facts import RequestFacts
from retrospan._feedback import RequestReference, reference_to
from retrospan._output import Citation, answer_of, citations_of
from retrospan._record import request_attributes
from retrospan._returned import is_async_stream, is_stream
from retrospan._run_scope import current_run
from retrospan._settings import SystemSettings
from retrospan._stages import Ask, RagSystem, Stages
from retrospan._steps import open_step
from retrospan._streams import AsyncStream, RecordedCall
from retrospan._tracing import current_tracer
from retrospan.attributes import Stage


class Kind(enum.Enum):
    """What a system's `answer` is: a function of the same kind as its `generate`."""

    PLAIN = enum.auto()
    COROUTINE = enum.auto()
    GENERATOR = enum.auto()
    ASYNC_GENERATOR = enum.auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one request gave."""

    output: object
    """What `generate` returned, untouched; of a stream, its whole text or its items."""

    answer: str | None
    """The answer in it; None when it holds none."""

    citations: tuple[Citation, ...]
    """The citations in it, as given; empty when it holds none."""

    assembly: Assembly
    """What entered the prompt, and what did not."""

    request: RequestReference | None = None
    """What feedback about this request is given with; None where no provider is set up."""


def kind_of(system: Any) -> Kind:
    """Return which kind of function the answer of a class's instances is."""
    return _kind_of(system)


@functools.lru_cache(maxsize=1024)
def _kind_of(system: type) -> Kind:
    generate = getattr(system, "generate", None)
    methods = [getattr(system, name, None) for name in ("retrieve", "rerank", "generate")]
    waits = any(inspect.iscoroutinefunction(method) for method in methods)
    if inspect.isasyncgenfunction(generate):
        return Kind.ASYNC_GENERATOR
    if inspect.isgeneratorfunction(generate):
        return Kind.ASYNC_GENERATOR if waits else Kind.GENERATOR
    return Kind.COROUTINE if waits else Kind.PLAIN


def question(system: RagSystem, settings: SystemSettings, input: object) -> Ask:
    """Return a request as live traffic makes it."""
    return Ask(
        system=system,
        settings=settings,
        input=input,
        top_k=settings.top_k,
        token_budget=settings.token_budget,
        rule=settings.budget_rule,
    )


def serve(ask: Ask) -> Any:
    """Return what the system's `answer` returns: the output, a coroutine, or a stream."""
    return _SERVING[kind_of(type(ask.system))](ask)


def serve_whole(ask: Ask) -> Outcome:
    """Return the outcome of a request to a system of any kind, once it is there."""
    served = serve(ask)
    if inspect.isawaitable(served) or is_async_stream(served):
        # Only this needs asyncio, whose import takes longer than that of this library.
        from retrospan._event_loop import run_to_end

        output, text = run_to_end(_collected_async(served))
    else:
        output, text = _collected(served)
    settings, assembly = ask.settings, ask.assembly
    if assembly is None:
        raise RuntimeError("a request ended without an assembly")
    return Outcome(
        output=output,
        answer=answer_of(output, settings.answer_path) if text is None else text,
        citations=citations_of(output, settings.citations_path) or (),
        assembly=assembly,
        request=None if ask.span is None else reference_to(ask.span),
    )


def _collected(served: Any) -> tuple[object, str | None]:
    if not is_stream(served):
        return served, None
    chunks = Chunks()
    for item in served:
        chunks.add(item)
    return chunks.output, chunks.text


async def _collected_async(served: Any) -> tuple[object, str | None]:
    output = await served if inspect.isawaitable(served) else served
    if not is_async_stream(output):
        return _collected(output)
    chunks = Chunks()
    async for item in output:
        chunks.add(item)
    return chunks.output, chunks.text


def _opening(function: Callable[..., Any]) -> "Callable[..., RecordedCall | None]":
    return _begin


def _begin(args: tuple[Any, ...], kwargs: Mapping[str, object]) -> RecordedCall | None:
    ask: Ask = args[0]
    settings = ask.settings
    name = f"invoke_workflow {clean_text(settings.name)}"
    step = open_step(current_tracer(), Stage.REQUEST, name, opens=settings.capture)
    if step is None or step.request is None:
        return None
    request = step.request
    ask.span = request.span
    step.record(
        lambda: request_attributes(
            RequestFacts(
                name=settings.name, version=settings.version, input=ask.input, run=current_run()
            ),
            request.capture,
        )
    )
    return RecordedCall(step)


def _whole(ask: Ask) -> Any:
    stages = Stages(ask)
    return stages.generate(stages.assemble(stages.candidates()))


async def _whole_async(ask: Ask) -> Any:
    stages = Stages(ask)
    return await stages.generate_async(stages.assemble(await stages.candidates_async()))


def _stream(ask: Ask) -> Generator[Any, Any, Any]:
    stages = Stages(ask)
    return (yield from stages.stream(stages.assemble(stages.candidates())))


async def _opened_stream(ask: Ask) -> AsyncStream:
    stages = Stages(ask)
    return stages.stream_async(stages.assemble(await stages.candidates_async()))


_SERVING: Mapping[Kind, Callable[[Ask], Any]] = {
    Kind.PLAIN: recorded(_whole, "rag_system", _opening),
    Kind.COROUTINE: recorded(_whole_async, "rag_system", _opening),
    Kind.GENERATOR: recorded(_stream, "rag_system", _opening),
    Kind.ASYNC_GENERATOR: recorded(forwarding(_opened_stream), "rag_system", _opening),
}
