"""What one call of a retrieving function was asked, and what it found."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from opentelemetry.trace import SpanKind

from retrospan._adapters import passages_of
from retrospan._chunks import Chunks
from retrospan._encoding import clean_text
from retrospan._errors import ConfigurationError
from retrospan._facts import RetrievalFacts
from retrospan._guard import guarded, note_once
from retrospan._memory import TokenCounter
from retrospan._passages import Passage, Retrieval
from retrospan._record import retrieval_attributes
from retrospan._settings import index_version_text
from retrospan._signatures import MISSING, Parameters, takes_no_argument
from retrospan._steps import Step, open_step
from retrospan._streams import RecordedCall
from retrospan._tracing import current_tracer
from retrospan.attributes import Stage

IndexVersion = str | Mapping[str, str]

_QUERY_NAMES: Final = ("query", "question", "q", "input", "text", "search", "prompt")
_DEPTH_NAMES: Final = ("depth", "top_k", "k", "limit", "n_results", "similarity_top_k")
_FILTER_NAMES: Final = ("filter", "filters", "where")
_TEXTS: Final = ("score_kind", "data_source_id", "embedding_model", "tokenizer")
_CALLABLES: Final = ("passages", "count_tokens")

Arguments = tuple[tuple[object, ...], Mapping[str, object]]
Read = Callable[[Arguments], object]
"""Reads something out of a call's arguments."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieving:
    """What a decorator declares about a retrieving function."""

    passages: Callable[[Any], object] | None
    index_version: IndexVersion | Callable[..., IndexVersion | None] | None
    depth: int | str | None
    query: str | Callable[..., object] | None
    score_kind: str | None
    data_source_id: str | None
    embedding_model: str | None
    tokenizer: str | None
    count_tokens: Callable[[Passage], int] | None
    filter: object

    def __post_init__(self) -> None:
        for name in _TEXTS:
            check_text("retrieve", name, getattr(self, name))
        for name in _CALLABLES:
            given = getattr(self, name)
            if given is not None and not callable(given):
                raise ConfigurationError(f"retrieve: {name} must be a function; it is {given!r}")
        if self.index_version is not None and not (
            callable(self.index_version) or isinstance(self.index_version, Mapping)
        ):
            check_text("retrieve", "index_version", self.index_version)
        if not isinstance(self.depth, str | None) and (
            not isinstance(self.depth, int) or isinstance(self.depth, bool) or self.depth < 1
        ):
            raise ConfigurationError(
                "retrieve: depth must be a whole number of 1 or more, or the name of the"
                f" parameter that says it; it is {self.depth!r}"
            )

    def opening(self, function: Callable[..., Any]) -> "RetrieveOpening":
        """Return what starts the record of a call of this function."""
        return RetrieveOpening(self, function)


class RetrieveOpening:
    """Starts the record of each call; what it looks for was found at decoration."""

    __slots__ = (
        "_declared",
        "_depth",
        "_filter",
        "_index_version",
        "_name",
        "_query",
        "_span_name",
    )

    def __init__(self, declared: Retrieving, function: Callable[..., Any]) -> None:
        parameters = Parameters(function)
        self._declared = declared
        self._name = getattr(function, "__qualname__", type(function).__qualname__)
        source = declared.data_source_id
        self._span_name = "retrieval" if source is None else f"retrieval {clean_text(source)}"
        self._query = _query(declared.query, parameters)
        self._depth = _depth(declared.depth, parameters)
        self._filter = _filter(declared.filter, parameters)
        self._index_version = _index_version(declared.index_version)

    def __call__(
        self, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> "RetrieveCall | None":
        step = open_step(current_tracer(), Stage.RETRIEVE, self._span_name, kind=SpanKind.CLIENT)
        if step is None:
            return None
        call = RetrieveCall(step, self._declared, self._name)
        if step.recording:
            call.asked(self._facts((args, kwargs)), _read(self._query, (args, kwargs), "query"))
        return call

    def _facts(self, arguments: Arguments) -> RetrievalFacts:
        declared = self._declared
        depth = _read(self._depth, arguments, "depth")
        version = _read(self._index_version, arguments, "index_version")
        return RetrievalFacts(
            system=self._name,
            depth=depth if isinstance(depth, int) and not isinstance(depth, bool) else None,
            index_version=_version_text(version),
            data_source_id=declared.data_source_id,
            embedding_model=declared.embedding_model,
            score_kind=declared.score_kind,
            tokenizer=declared.tokenizer,
            filter=_read(self._filter, arguments, "filter"),
        )


class RetrieveCall(RecordedCall):
    """One call of a retrieving function."""

    __slots__ = ("_declared", "_facts", "_name", "_query")

    keeps_chunks = True

    def __init__(self, step: Step, declared: Retrieving, name: str) -> None:
        super().__init__(step)
        self._declared = declared
        self._name = name
        self._facts = RetrievalFacts(system=name)
        self._query: object = None

    def asked(self, facts: RetrievalFacts, query: object) -> None:
        """Take note of what the function was asked."""
        self._facts = facts
        self._query = query

    def record_output(self, output: object) -> None:
        """Record the passages the function returned."""
        found: tuple[Passage, ...] | None = None
        with guarded(f"read the passages that {self._name} returned"):
            found = passages_of(output, self._declared.passages)
            if found is None:
                note_once(
                    f"passages: {self._name}",
                    f"what {self._name} returned (a {type(output).__qualname__}) is not understood"
                    " as passages, and none are recorded: give retrieve(passages=...) a function"
                    " that turns it into a list of retrospan.Passage",
                )
        self._record(found, output if isinstance(output, Retrieval) else None)

    def record_stream(self, chunks: Chunks, first_chunk_s: float | None, completed: bool) -> None:
        """Record the passages a stream gave; those of a call that raised are unknown."""
        if chunks.items or completed:
            self.record_output(chunks.items)
        else:
            self._record(None, None)

    def _record(self, found: tuple[Passage, ...] | None, given: Retrieval | None) -> None:
        request = self.step.request
        if request is None:
            return
        query = cast(str, self._query)  # any value is recorded
        retrieval = given or Retrieval(query, found or ())
        count = self._declared.count_tokens
        counter = None if count is None else TokenCounter(count)
        memory = request.memory
        if found is not None:
            memory.candidates = found
        self.step.record(
            lambda: retrieval_attributes(
                retrieval,
                self._facts,
                None if found is None else memory.recorded(found, counter),
                request.capture,
            )
        )


def check_text(where: str, name: str, value: object) -> None:
    """Refuse a declared text that says nothing."""
    if value is not None and (not isinstance(value, str) or not value.strip()):
        raise ConfigurationError(
            f"{where}: {name} must be a text that is not empty; it is {value!r}"
        )


def _query(declared: str | Callable[..., object] | None, parameters: Parameters) -> Read | None:
    if callable(declared):
        return lambda arguments: declared(*arguments[0], **arguments[1])
    if declared is not None:
        return _parameter(_known(declared, "query", parameters), parameters)
    name = parameters.first_of(_QUERY_NAMES) or next(iter(parameters.names), None)
    return _likely_query if name is None else _parameter(name, parameters)


def _likely_query(arguments: Arguments) -> object:
    """Return what looks like the query of a function that does not name its parameters."""
    args, kwargs = arguments
    named = [kwargs[name] for name in _QUERY_NAMES if name in kwargs]
    return next(iter(named + [value for value in args if isinstance(value, str)]), None)


def _depth(declared: int | str | None, parameters: Parameters) -> Read | None:
    if isinstance(declared, int):
        return lambda arguments: declared
    if declared is not None:
        return _parameter(_known(declared, "depth", parameters), parameters)
    name = parameters.first_of(_DEPTH_NAMES)
    return None if name is None else _parameter(name, parameters)


def _filter(declared: object, parameters: Parameters) -> Read | None:
    if callable(declared):
        return lambda arguments: declared(*arguments[0], **arguments[1])
    name = declared if declared is not None else parameters.first_of(_FILTER_NAMES)
    if isinstance(name, str) and name in parameters.names:
        return _parameter(name, parameters)
    return None if declared is None else lambda arguments: declared


def _index_version(
    declared: IndexVersion | Callable[..., IndexVersion | None] | None,
) -> Read | None:
    if not callable(declared):
        return None if declared is None else lambda arguments: declared
    if takes_no_argument(declared):
        return lambda arguments: declared()
    return lambda arguments: declared(*arguments[0], **arguments[1])


def _version_text(version: object) -> str | None:
    if version is None or isinstance(version, str):
        return version
    return index_version_text(version) if isinstance(version, Mapping) else clean_text(version)


def _known(name: str, setting: str, parameters: Parameters) -> str:
    if name not in parameters.names and not parameters.takes_any_name:
        raise ConfigurationError(
            f"retrieve: {setting}={name!r} is no parameter of the function; it has"
            f" {', '.join(parameters.names) or 'none'}"
        )
    return name


def _parameter(name: str, parameters: Parameters) -> Read:
    def read(arguments: Arguments) -> object:
        value = parameters.value(name, *arguments)
        return None if value is MISSING else value

    return read


def _read(read: Read | None, arguments: Arguments, what: str) -> object:
    if read is not None:
        with guarded(f"find the {what} of a retrieval"):
            return read(arguments)
    return None
