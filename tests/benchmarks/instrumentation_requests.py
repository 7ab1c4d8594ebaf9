"""One request of ten passages, recorded by the library, by hand with equal spans, and flat.

All of them find and assemble the same passages; what differs is only how that is recorded.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from random import Random
from typing import Final

from opentelemetry.trace import SpanKind, Tracer

from retrospan import Passage, Retrieval, rag_system
from tests.benchmarks.words import WORDS_PER_LANGUAGE, words

PASSAGES: Final = 10
TEXT_LENGTH: Final = 400
TOP_K: Final = 8
BUDGET: Final = 600
QUESTION: Final = "Can I get my money back for an annual plan?"
ANSWER: Final = "Annual plans are refunded within 14 days, less the days that were used."

_POOL: Final = 1_000
_NAME: Final = "help-desk"
_INDEX: Final = "2026-11-01"


def _pool() -> list[Passage]:
    random = Random(4)
    vocabulary = words()[:WORDS_PER_LANGUAGE]
    return [
        Passage(
            id=f"kb-{number:05}",
            text=" ".join(random.choices(vocabulary, k=TEXT_LENGTH // 2))[:TEXT_LENGTH],
            score=round(1 - number % PASSAGES / 16, 4),
            document_id=f"article-{number // 3:04}",
            tokens=90,
        )
        for number in range(_POOL)
    ]


class Index:
    """Finds the next ten of a thousand passages, whatever it is asked."""

    __slots__ = ("_found",)

    def __init__(self) -> None:
        pool = _pool()
        self._found: Iterator[list[Passage]] = cycle(
            [pool[at : at + PASSAGES] for at in range(0, _POOL, PASSAGES)]
        )

    def search(self) -> list[Passage]:
        """The passages of one request."""
        return next(self._found)


@rag_system(
    name=_NAME,
    version="1",
    depth=PASSAGES,
    top_k=TOP_K,
    token_budget=BUDGET,
    index_version=_INDEX,
)
class HelpDesk:
    """The system as the library records it: `answer` comes from the decorator."""

    def __init__(self, index: Index) -> None:
        self.index = index

    def retrieve(self, input: str, depth: int) -> Retrieval:
        """The next ten passages."""
        return Retrieval(input, self.index.search()[:depth])

    def generate(self, input: str, context: tuple[Passage, ...]) -> dict[str, object]:
        """A fixed answer that cites what it was shown first."""
        return {"answer": ANSWER, "citations": [context[0].id]}


def answer_of(desk: HelpDesk) -> Callable[[str], object]:
    """The method that the decorator adds, which a type checker cannot see."""
    answer: Callable[[str], object] = desk.answer  # type: ignore[attr-defined]
    return answer


@dataclass(frozen=True, slots=True)
class ByHand:
    """The same spans with exactly the same attributes, as one would write them with the API."""

    index: Index
    tracer: Tracer

    def answer(self, question: str) -> None:
        """Record one request."""
        with self.tracer.start_as_current_span(f"invoke_workflow {_NAME}") as span:
            span.set_attributes(
                {
                    **_every("request"),
                    "gen_ai.operation.name": "invoke_workflow",
                    "gen_ai.workflow.name": _NAME,
                    "retrospan.system.name": _NAME,
                    "retrospan.system.version": "1",
                    "retrospan.input": json.dumps(question, ensure_ascii=False),
                }
            )
            found, hashes = self._retrieve(question)
            kept = self._assemble(found)
            self._generate(found[:kept], hashes[:kept])

    def _retrieve(self, question: str) -> tuple[list[Passage], list[str]]:
        with self.tracer.start_as_current_span("retrieval", kind=SpanKind.CLIENT) as span:
            found = self.index.search()
            hashes = [_hash(passage.text.encode() + b"\0") for passage in found]
            documents = [{"id": p.id, "score": p.score, "content": p.text} for p in found]
            span.set_attributes(
                {
                    **_every("retrieve"),
                    "gen_ai.operation.name": "retrieval",
                    "gen_ai.retrieval.top_k": PASSAGES,
                    "gen_ai.retrieval.query.text": question,
                    "gen_ai.retrieval.documents": json.dumps(documents, ensure_ascii=False),
                    "retrospan.retrieval.identity": _hash(
                        _compact([question, PASSAGES, _INDEX, "1", None, None])
                    ),
                    "retrospan.index.version": _INDEX,
                    "retrospan.passages.id": [p.id for p in found],
                    "retrospan.passages.document_id": [p.document_id or p.id for p in found],
                    "retrospan.passages.score": [p.score or 0.0 for p in found],
                    "retrospan.passages.tokens": [p.tokens or -1 for p in found],
                    "retrospan.passages.hash": hashes,
                }
            )
        return found, hashes

    def _assemble(self, found: Sequence[Passage]) -> int:
        with self.tracer.start_as_current_span("assemble") as span:
            used, kept, fits = 0, 0, True
            prompt_positions: list[int] = []
            reasons: list[str] = []
            for position, passage in enumerate(found, start=1):
                tokens = passage.tokens or 0
                fits = fits and used + tokens <= BUDGET
                reason = "top_k" if position > TOP_K else "" if fits else "budget"
                used, kept = (used, kept) if reason else (used + tokens, kept + 1)
                prompt_positions.append(0 if reason else kept)
                reasons.append(reason)
            span.set_attributes(
                {
                    **_every("assemble"),
                    "retrospan.assembly.top_k": TOP_K,
                    "retrospan.assembly.token_budget": BUDGET,
                    "retrospan.assembly.rule": "stop",
                    "retrospan.assembly.context_tokens": used,
                    "retrospan.assembly.id": [p.id for p in found],
                    "retrospan.assembly.position": list(range(1, len(found) + 1)),
                    "retrospan.assembly.prompt_position": prompt_positions,
                    "retrospan.assembly.dropped_reason": reasons,
                }
            )
        return kept

    def _generate(self, context: Sequence[Passage], hashes: Sequence[str]) -> None:
        with self.tracer.start_as_current_span(f"generate {_NAME}") as span:
            output = {"answer": ANSWER, "citations": [context[0].id]}
            span.set_attributes(
                {
                    **_every("generate"),
                    "retrospan.context.identity": _identity(context, hashes),
                    "retrospan.answer": ANSWER,
                    "retrospan.citations": json.dumps(output["citations"], ensure_ascii=False),
                    "retrospan.completed": True,
                }
            )


@dataclass(frozen=True, slots=True)
class Flat:
    """As many spans that carry only id, score and text, one attribute each."""

    index: Index
    tracer: Tracer

    def answer(self, question: str) -> None:
        """Record one request."""
        with self.tracer.start_as_current_span("request"):
            with self.tracer.start_as_current_span("retrieve") as span:
                for at, passage in enumerate(self.index.search()):
                    prefix = f"retrieval.documents.{at}.document"
                    span.set_attribute(f"{prefix}.id", passage.id)
                    span.set_attribute(f"{prefix}.score", passage.score or 0.0)
                    span.set_attribute(f"{prefix}.content", passage.text)
            with self.tracer.start_as_current_span("assemble"):
                pass
            with self.tracer.start_as_current_span("generate"):
                pass


def _every(stage: str) -> dict[str, str]:
    return {"retrospan.schema.version": "1", "retrospan.stage": stage}


def _identity(passages: Sequence[Passage], hashes: Sequence[str]) -> str:
    return _hash(_compact([[p.id, hash] for p, hash in zip(passages, hashes, strict=True)]))


def _compact(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode()


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).digest()[:16].hex()
