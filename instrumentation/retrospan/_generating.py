"""What one call of a generating function made of its context."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from opentelemetry.trace import Tracer

from retrospan import attributes
from retrospan._chunks import Chunks, text_of
from retrospan._encoding import clean_text
from retrospan._errors import ConfigurationError
from retrospan._facts import PromptFacts
from retrospan._guard import guarded, note_fault
from retrospan._output import Citation, answer_of, citations_of
from retrospan._record import (
    Attributes,
    answer_attributes,
    context_attributes,
    prompt_attributes,
)
from retrospan._retrieving import check_text
from retrospan._steps import Step, open_step
from retrospan._streams import RecordedCall
from retrospan._tracing import current_tracer
from retrospan._usage import generation_facts
from retrospan.attributes import Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Generating:
    """What a decorator declares about a generating function."""

    name: str | None = None
    answer: str | Callable[[Any], object] = "answer"
    citations: str | Callable[[Any], object] = "citations"
    model: str | None = None
    prompt_name: str | None = None
    prompt_version: str | None = None

    def __post_init__(self) -> None:
        for name in ("name", "model", "prompt_name", "prompt_version"):
            check_text("generate", name, getattr(self, name))
        for name in ("answer", "citations"):
            given = getattr(self, name)
            if not callable(given) and not (isinstance(given, str) and given.strip()):
                raise ConfigurationError(
                    f"generate: {name} must be a path such as 'answer.text', or a function; it is"
                    f" {given!r}"
                )

    def opening(self, function: Callable[..., Any]) -> "GenerateOpening":
        """Return what starts the record of a call of this function."""
        own = getattr(function, "__name__", type(function).__name__)
        name = f"generate {own}" if self.model is None else f"chat {self.model}"
        return GenerateOpening(self, clean_text(self.name or name))

    def answer_in(self, output: object) -> str | None:
        """Return the answer in an output; None when there is none."""
        if callable(self.answer):
            return answer_of({"answer": self.answer(output)}, "answer")
        answer = answer_of(output, self.answer)
        if answer is not None or (isinstance(output, Mapping) and "choices" not in output):
            return answer
        return text_of(output)

    def citations_in(self, output: object) -> tuple[Citation, ...] | None:
        """Return the citations in an output; None when it has no place for any."""
        if callable(self.citations):
            return citations_of({"citations": self.citations(output)}, "citations")
        return citations_of(output, self.citations)


class GenerateOpening:
    """Starts the record of each call."""

    __slots__ = ("_declared", "_name", "_prompt")

    def __init__(self, declared: Generating, name: str) -> None:
        self._declared = declared
        self._name = name
        self._prompt = PromptFacts(
            name=declared.prompt_name, version=declared.prompt_version, model=declared.model
        )

    def __call__(
        self, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> "GenerateCall | None":
        step = open_step(current_tracer(), Stage.GENERATE, self._name)
        return None if step is None else GenerateCall(step, self._declared, self._prompt)

    def begin(self, tracer: Tracer | None) -> "GenerateCall":
        """Start a call's span; with None, one that records nothing."""
        step = Step(tracer, Stage.GENERATE, self._name)
        step.start()
        return GenerateCall(step, self._declared, self._prompt)


class GenerateCall(RecordedCall):
    """One call of a generating function."""

    __slots__ = ("_context", "_declared", "_prompt")

    keeps_chunks = True

    def __init__(self, step: Step, declared: Generating, prompt: PromptFacts) -> None:
        super().__init__(step)
        self._declared = declared
        self._prompt = prompt
        request = step.request
        self._context = None if request is None else request.memory.context

    def record_output(self, output: object) -> None:
        """Record the answer and what the provider said about it."""
        recorded = self._recorded(output, completed=True)
        recorded |= generation_facts(output)
        self.step.record(lambda: recorded)

    def record_stream(self, chunks: Chunks, first_chunk_s: float | None, completed: bool) -> None:
        """Record the answer as far as the stream gave it."""
        given = chunks.items or completed
        recorded = self._recorded(chunks.output if given else None, completed, chunks.text)
        if first_chunk_s is not None:
            recorded[attributes.TIME_TO_FIRST_CHUNK] = first_chunk_s
        for item in chunks.telling():
            with guarded("read a provider's response"):
                recorded |= generation_facts(item)
        self.step.record(lambda: recorded)

    def _recorded(self, output: object, completed: bool, text: str | None = None) -> Attributes:
        recorded = prompt_attributes(self._prompt)
        request = self.step.request
        if request is None:
            return recorded
        if self._context is not None:
            try:
                context = request.memory.recorded(self._context)
                recorded |= context_attributes(context, request.capture)
            except Exception as error:
                note_fault("record a context", error)
        recorded[attributes.COMPLETED] = completed
        if output is None:
            return recorded
        answer: str | None = None
        citations: tuple[Citation, ...] | None = None
        try:
            answer = text if text and not callable(self._declared.answer) else None
            answer = answer or self._declared.answer_in(output)
        except Exception as error:  # a host's function may raise anything
            note_fault("find the answer in an output", error)
        try:
            citations = self._declared.citations_in(output)
        except Exception as error:  # likewise
            note_fault("find the citations in an output", error)
        recorded |= answer_attributes(answer, citations, request.capture)
        return recorded
