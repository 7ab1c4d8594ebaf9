"""What a stored request is in Python: sentinels of the store turned into None, once, here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedSettings:
    """The settings a request ran under, as far as they were recorded."""

    depth: int | None = None
    """How many passages the retriever was asked for."""
    top_k: int | None = None
    """How many of the first passages may enter the prompt."""
    token_budget: int | None = None
    """None means no budget where `budget_rule` is recorded, and unknown where it is not."""
    budget_rule: str | None = None
    """`stop` or `skip`; None when the assembly was not recorded."""
    context_tokens: int | None = None
    """Tokens of the passages that entered the prompt."""
    tokenizer: str | None = None
    """What counted the tokens."""
    score_kind: str | None = None
    """What the retriever's scores are, for instance `bm25`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedPassage:
    """One candidate at its recorded position."""

    position: int
    """1-based, in the retriever's own order."""
    id: str
    document_id: str
    """The same as `id` when the system named no other."""
    hash: str | None = None
    """Hex of the hash of text and metadata; None when there was none."""
    score: float | None = None
    tokens: int | None = None
    cumulative_tokens: int | None = None
    """Tokens of the eligible passages up to here; None from the first unknown count on."""
    prompt_position: int | None = None
    """0 = known to be left out; None = the assembly was not recorded."""
    dropped_reason: str | None = None
    """`top_k`, `budget`, `duplicate`, `score` or `filter`; None when kept or not recorded."""
    text: str | None = None
    """None when the text was not captured or is no longer stored."""
    metadata: Mapping[str, object] | None = None
    source_version: str | None = None
    updated_at: str | None = None
    acl: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedStage:
    """One step that returned passages: a retrieval, a rerank, a tool."""

    span_id: str
    kind: str
    name: str
    error_type: str | None = None
    """None for a step that ended without an error."""
    ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRequest:
    """One request as it is stored: what came in, what was retrieved, kept, dropped, answered."""

    trace_id: str
    root_span_id: str
    service: str
    started_at: datetime
    """UTC."""
    duration_s: float | None = None
    environment: str | None = None
    system_name: str | None = None
    system_version: str | None = None
    dialect: str = ""
    """The convention the spans were written in."""
    replay_class: str = ""
    """`full`, `text`, `ids` or `none`: how much of a replay the record allows."""
    retrieval_status: str = ""
    """`recorded`, `failed`, `not_recorded` or `unreadable`: an empty list is only then an empty
    result when it was recorded."""
    completeness: tuple[str, ...] = ()
    """What is missing from the record, by name; empty when nothing is known to be."""
    input: object = None
    """The input, parsed from its JSON; the raw text when it is not JSON."""
    question: str | None = None
    answer: str | None = None
    citations: tuple[str, ...] = ()
    """As the system gave them, ids or 1-based positions as shown in the prompt; all as text."""
    cited_positions: tuple[int, ...] = ()
    """Positions (in the candidate list) of the passages that were cited."""
    dangling_citations: tuple[str, ...] = ()
    """Citations of nothing that was in the prompt."""
    index_version: str | None = None
    prompt_version: str | None = None
    model: str | None = None
    run_id: str | None = None
    """None for live traffic."""
    case_id: str | None = None
    repeat: int | None = None
    status: str = "unknown"
    """`ok` or `error`; `unknown` while the root span is missing."""
    error_type: str | None = None
    settings: RecordedSettings = field(default_factory=RecordedSettings)
    passages: tuple[RecordedPassage, ...] = ()
    stages: tuple[RecordedStage, ...] = ()

    @property
    def assembly_recorded(self) -> bool:
        """Whether the record says which passages entered the prompt."""
        if self.settings.budget_rule is not None:
            return True
        return any(passage.prompt_position is not None for passage in self.passages)

    @property
    def prompt(self) -> tuple[RecordedPassage, ...]:
        """The passages that entered the prompt, in the order they stood in it."""
        kept = [(p.prompt_position, p) for p in self.passages if p.prompt_position]
        return tuple(passage for _, passage in sorted(kept, key=lambda pair: pair[0]))


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSummary:
    """One line of a list of requests."""

    trace_id: str
    root_span_id: str
    service: str
    started_at: datetime
    system_name: str | None = None
    run_id: str | None = None
    case_id: str | None = None
    status: str = "unknown"
    error_type: str | None = None
    replay_class: str = ""
    question: str | None = None
    answer: str | None = None
    candidates: int = 0
    """How many passages the retriever returned."""
    kept: int | None = None
    """How many of them entered the prompt; None when the assembly was not recorded."""
