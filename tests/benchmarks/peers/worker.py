"""Measure one library in the environment it is installed in; print the figures as JSON.

It stands alone: run by path, it imports nothing of this checkout but the library asked for.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import import_module
from importlib.metadata import version
from itertools import cycle
from random import Random
from statistics import median
from time import process_time, thread_time
from typing import Any, Final

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Tracer

QUESTION: Final = "Can I get my money back for an annual plan?"
ANSWER: Final = "Annual plans are refunded within 14 days, less the days that were used."

_WORDS: Final = "refund annual plan monthly cancel support window payment invoice account order"
_REQUESTS: Final = 100

Document = dict[str, Any]
Answer = Callable[[str], object]
Flush = Callable[[], object]


class Switch(SpanExporter):
    """Throws spans away; encodes them as OTLP first when switched on."""

    def __init__(self) -> None:
        self.encodes = False
        self.encode: Callable[[Sequence[ReadableSpan]], object] = _encode
        self.spans = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.spans += len(spans)
        if self.encodes:
            self.encode(spans)
        return SpanExportResult.SUCCESS


def _encode(spans: Sequence[ReadableSpan]) -> bytes:
    return encode_spans(spans).SerializeToString()


def _documents() -> Iterator[list[Document]]:
    random, words = Random(4), _WORDS.split()
    pool = [
        {
            "id": f"kb-{number:05}",
            "score": 1 - number % 10 / 16,
            "content": " ".join(random.choices(words, k=100))[:400],
        }
        for number in range(1_000)
    ]
    return cycle([pool[at : at + 10] for at in range(0, len(pool), 10)])


def _provider(exporter: SpanExporter) -> TracerProvider:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


def flat(tracer: Tracer) -> Answer:
    """Spans by hand that carry only id, score and text, one attribute each."""
    found = _documents()

    def answer(question: str) -> None:
        with tracer.start_as_current_span("request"):
            with tracer.start_as_current_span("retrieve") as span:
                for at, document in enumerate(next(found)):
                    prefix = f"retrieval.documents.{at}.document"
                    span.set_attribute(f"{prefix}.id", document["id"])
                    span.set_attribute(f"{prefix}.score", document["score"])
                    span.set_attribute(f"{prefix}.content", document["content"])
            with tracer.start_as_current_span("assemble"):
                pass
            with tracer.start_as_current_span("generate"):
                pass

    return answer


def _configured(exporter: Switch) -> tuple[Answer, Flush]:
    exporter.encode = import_module("retrospan._wire").encoded
    return _retrospan(exporter)


def _retrospan(exporter: Switch) -> tuple[Answer, Flush]:
    retrospan: Any = import_module("retrospan")
    provider = _provider(exporter)
    documents = _documents()
    # Made once, like the documents of the others.
    found = cycle(
        [
            [retrospan.Passage(d["id"], d["content"], d["score"]) for d in next(documents)]
            for _ in range(100)
        ]
    )

    class HelpDesk:
        def retrieve(self, input: str, depth: int) -> object:
            return retrospan.Retrieval(input, next(found))

        def generate(self, input: str, context: Sequence[object]) -> object:
            return ANSWER

    import_module("retrospan._tracing").use_provider(provider)
    decorate = retrospan.rag_system(
        name="help-desk", version="1", depth=10, top_k=8, index_version="1"
    )
    return decorate(HelpDesk)().answer, provider.force_flush


class Steps:
    """Undecorated steps of a request, and the request over the steps as they were decorated."""

    def __init__(self) -> None:
        self._found = _documents()
        self.retrieve: Any = self._retrieve
        self.assemble: Any = self._assemble
        self.generate: Any = self._generate

    def _retrieve(self, question: str) -> list[Document]:
        return next(self._found)

    def _assemble(self, documents: list[Document]) -> list[Document]:
        return documents[:8]

    def _generate(self, question: str, context: list[Document]) -> str:
        return ANSWER

    def answer(self, question: str) -> object:
        """Answer one question."""
        return self.generate(question, self.assemble(self.retrieve(question)))


def _openinference(exporter: Switch) -> tuple[Answer, Flush]:
    library: Any = import_module("openinference.instrumentation")
    provider = _provider(exporter)
    tracer: Any = library.OITracer(provider.get_tracer("peer"), library.TraceConfig())
    steps = Steps()
    steps.retrieve = tracer.retriever(steps.retrieve)
    steps.assemble = tracer.chain(steps.assemble)
    steps.generate = tracer.llm(steps.generate)
    return tracer.chain(steps.answer), provider.force_flush


def _langfuse(exporter: Switch) -> tuple[Answer, Flush]:
    library: Any = import_module("langfuse")
    client = library.Langfuse(
        public_key="pk-benchmark",
        secret_key="sk-benchmark",
        base_url="http://127.0.0.1:9",
        span_exporter=exporter,
        flush_at=512,
    )
    steps = Steps()
    steps.retrieve = library.observe(as_type="retriever")(steps.retrieve)
    steps.assemble = library.observe()(steps.assemble)
    steps.generate = library.observe(as_type="generation")(steps.generate)
    return library.observe()(steps.answer), client.flush


def _traceloop(exporter: Switch) -> tuple[Answer, Flush]:
    library: Any = import_module("traceloop.sdk")
    decorators: Any = import_module("traceloop.sdk.decorators")
    processor = BatchSpanProcessor(exporter)
    library.Traceloop.init(
        app_name="benchmark", processor=processor, telemetry_enabled=False, instruments=set()
    )
    steps = Steps()
    for name in ("retrieve", "assemble", "generate"):
        setattr(steps, name, decorators.task(name=name)(getattr(steps, name)))
    return decorators.workflow(name="answer")(steps.answer), processor.force_flush


PEERS: Final[Mapping[str, tuple[str, Callable[[Switch], tuple[Answer, Flush]]]]] = {
    "retrospan": ("retrospan", _configured),
    "retrospan-sdk": ("retrospan", _retrospan),
    "openinference": ("openinference-instrumentation", _openinference),
    "langfuse": ("langfuse", _langfuse),
    "traceloop": ("traceloop-sdk", _traceloop),
}


def measured(peer: str, turns: int) -> dict[str, object]:
    """Let the library and the flat spans take turns; return medians in microseconds."""
    distribution, prepare = PEERS[peer]
    peers_exporter, flat_exporter = Switch(), Switch()
    answer, flush = prepare(peers_exporter)
    flat_provider = _provider(flat_exporter)
    flat_answer = flat(flat_provider.get_tracer("by hand"))
    figures: dict[str, object] = {"version": version(distribution)}
    for encodes in (False, True):
        peers_exporter.encodes = flat_exporter.encodes = encodes
        own: list[tuple[float, float]] = []
        other: list[tuple[float, float]] = []
        for _ in range(turns + 1):
            own.append(_turn(answer, flush))
            other.append(_turn(flat_answer, flat_provider.force_flush))
        # With encoding, the work is in other threads; without, only the serving one counts.
        clock = 1 if encodes else 0
        figures["encoded" if encodes else "thread"] = {
            "own": median(turn[clock] for turn in own[1:]),
            "flat": median(turn[clock] for turn in other[1:]),
            "ratio": median(
                turn[clock] / beside[clock] for turn, beside in zip(own[1:], other[1:], strict=True)
            ),
        }
    # What arrived, so that a library that records nothing does not look cheap.
    figures["spans"] = peers_exporter.spans / (2 * (turns + 1) * _REQUESTS)
    return figures


def _turn(answer: Answer, flush: Flush) -> tuple[float, float]:
    """Processor time of a request: of this thread, and of all threads until it is exported."""
    thread, process = thread_time(), process_time()
    for _ in range(_REQUESTS):
        answer(QUESTION)
    thread = thread_time() - thread
    flush()
    process = process_time() - process
    return thread / _REQUESTS * 1e6, process / _REQUESTS * 1e6


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1], int(sys.argv[2]))), flush=True)
    # Some libraries have threads that try for long to reach a server that is not there.
    os._exit(0)
