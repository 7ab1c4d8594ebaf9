"""What a request's spans say, in our own terms: every dialect is read into this.

A tuple is what was recorded, None is what was not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from retrospan_collector.assembler.span import Span
from retrospan_collector.clickhouse.request_row import BudgetRule

Stage = Literal["request", "retrieve", "rerank", "assemble", "generate"]
"""The steps a request is made of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageList:
    """Passages in recorded order, as parallel columns of one length with the store's sentinels."""

    id: tuple[str, ...]
    document_id: tuple[str, ...]
    hash: tuple[bytes, ...]
    score: tuple[float, ...]
    tokens: tuple[int, ...]
    source_version: tuple[str, ...]
    updated_at: tuple[str, ...]
    acl: tuple[str, ...]
    text: tuple[str | None, ...]
    metadata: tuple[Mapping[str, object] | None, ...]
    """Columns, not an object a passage: those would wake the garbage collector in every batch."""

    def __len__(self) -> int:
        return len(self.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalStep:
    """A retrieval or a rerank."""

    kind: Literal["retrieve", "rerank"]
    span: Span
    passages: PassageList | None
    error_type: str = ""
    query: str = ""
    depth: int | None = None
    index_version: str = ""
    data_source_id: str = ""
    embedding_model: str = ""
    tokenizer: str = ""
    score_kind: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placements:
    """What became of each passage that the assembly saw, as parallel columns."""

    id: tuple[str, ...]
    position: tuple[int, ...]
    """1-based position in the list that was assembled."""
    prompt_position: tuple[int, ...]
    dropped_reason: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AssemblyStep:
    """The cut from the candidates to the prompt."""

    span: Span
    placements: Placements | None
    error_type: str = ""
    top_k: int | None = None
    token_budget: int | None = None
    rule: BudgetRule = ""
    context_tokens: int | None = None
    prompt_hash: str = ""
    prompt_version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationStep:
    """One call of the generator."""

    span: Span
    error_type: str = ""
    answer: str | None = None
    citations: tuple[str | int, ...] | None = None
    model: str = ""
    prompt_hash: str = ""
    """The finished prompt may be known only here."""
    prompt_version: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    finish_reason: str = ""
    first_chunk_ns: int | None = None


Step = RetrievalStep | AssemblyStep | GenerationStep


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord:
    """One request as its spans tell it."""

    dialect: str
    system_name: str = ""
    system_version: str = ""
    run_id: str = ""
    """The run the span names; whether it is registered is for the store to say."""
    input: str = ""
    input_cut: bool = False
    conversation_id: str = ""
    user_hash: str = ""
    caller_roles: tuple[str, ...] = ()
    error_type: str = ""
    adjusted_count: float = 1.0
    retrievals: Sequence[RetrievalStep] = field(default=())
    assemblies: Sequence[AssemblyStep] = field(default=())
    generations: Sequence[GenerationStep] = field(default=())
    completeness: int = 0
    """Bits of `Completeness` found while reading."""
