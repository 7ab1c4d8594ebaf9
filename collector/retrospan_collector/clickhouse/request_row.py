"""Rows the assembler writes: requests, the texts of their passages, and its own memory.

Sentinels stand where an array has to be dense: an unknown score is NaN, an unknown token count
`UNKNOWN_TOKENS`, an unknown hash `NO_HASH`, any other unknown string is empty.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from enum import IntFlag
from typing import Final, Literal

ReplayClass = Literal["full", "text", "ids", "none"]
RetrievalStatus = Literal["recorded", "failed", "not_recorded", "unreadable"]
RequestStatus = Literal["ok", "error", "unknown"]
Script = Literal["arabic", "latin", "mixed", "other", ""]
StageKind = Literal["retrieve", "rerank", "assemble", "generate"]
BudgetRule = Literal["stop", "skip", ""]

UNKNOWN_TOKENS: Final = 0xFFFFFFFF
"""An unknown token count in `PassageTokens`."""

NO_HASH: Final = bytes(16)
"""An unknown hash in `PassageHash`."""


class Completeness(IntFlag):
    """What is missing from a request's record, or in doubt; the bits of column `Completeness`."""

    ROOT_MISSING = 1
    """The span that encloses the request has not come."""
    LATE_REWRITE = 2
    """Spans came after the request had been settled, and it was assembled again."""
    ATTRIBUTES_DROPPED = 4
    """A span lost attributes to the application's limits."""
    TRUNCATED = 8
    """Lists of one step disagree in length or content: part of one was cut off."""
    REDACTED = 16
    """A text was replaced by a redaction mark before it was sent."""
    CLOCK_SKEW = 32
    """Times contradict each other, or lie outside this century."""
    UNREADABLE = 64
    """A value is there that could not be read."""
    TEXT_CUT = 128
    """The sender cut a text at its limit, or a passage, whose text then has another hash."""

    @property
    def names(self) -> tuple[str, ...]:
        """The set bits as lower-case words, in the order of their values."""
        return tuple(bit.name.lower() for bit in Completeness if bit in self and bit.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRow:
    """One request as it was answered: table `requests`.

    Passages are the list the prompt was assembled from, as parallel tuples in recorded order:
    index 0 is position 1.
    """

    service_name: str
    timestamp: datetime
    """Start of the root span, cut to microseconds; the span keeps the nanoseconds."""
    trace_id: str
    root_span_id: str
    """The request's own span; of an orphan group, the id of the parent that has not come."""
    sample_key: int
    run_id: str = ""
    """The run that registered this trace; empty for live traffic."""
    case_id: str = ""
    repeat: int = 0
    adjusted_count: float = 1.0
    """How many requests this one stands for: 1/p of head sampling upstream."""

    environment: str = ""
    system_name: str = ""
    system_version: str = ""
    index_version: str = ""
    prompt_version: str = ""
    model: str = ""
    embedding_model: str = ""
    data_source_id: str = ""
    language: str = ""
    script: Script = ""
    """Writing system of the question."""
    dialect: str
    replay_class: ReplayClass
    retrieval_status: RetrievalStatus
    """Keeps an empty result, a failed retrieval and a missing record apart."""
    status: RequestStatus
    """How the request ended; unknown while its root is missing."""
    error_type: str = ""
    conversation_id: str = ""
    user_hash: str = ""
    caller_roles: tuple[str, ...] = ()

    input: str = ""
    """JSON as recorded; empty when it was not."""
    question: str = ""
    answer: str = ""
    prompt_hash: str = ""

    passage_id: tuple[str, ...] = ()
    passage_document_id: tuple[str, ...] = ()
    passage_hash: tuple[bytes, ...] = ()
    """Key into `passage_texts`."""
    passage_score: tuple[float, ...] = ()
    passage_tokens: tuple[int, ...] = ()
    cum_tokens: tuple[int, ...] = ()
    """Prefix sums of tokens, ineligible passages weighing nothing, cut at the first unknown
    count: fewer than k entries means that no question about the first k can be answered."""
    passage_prompt_position: tuple[int | None, ...] = ()
    """None: not recorded; 0: known to be left out; else the 1-based position in the prompt."""
    passage_dropped_reason: tuple[str, ...] = ()
    passage_source_version: tuple[str, ...] = ()
    passage_updated_at: tuple[str, ...] = ()
    passage_acl: tuple[str, ...] = ()

    stage_span_id: tuple[str, ...] = ()
    """The request's steps by start time, those that did not give the result included."""
    stage_kind: tuple[StageKind, ...] = ()
    stage_name: tuple[str, ...] = ()
    stage_error_type: tuple[str, ...] = ()
    """Empty for a step that ended without an error."""
    stage_ids: tuple[tuple[str, ...], ...] = ()

    depth: int | None = None
    top_k: int | None = None
    token_budget: int | None = None
    """None means no budget where `budget_rule` is recorded, and unknown where it is not."""
    context_tokens: int | None = None
    budget_rule: BudgetRule = ""
    tokenizer: str = ""
    score_kind: str = ""

    citations: tuple[str, ...] = ()
    """As the answer gave them, numbers as text."""
    cited_positions: tuple[int, ...] = ()
    """Positions in the recorded list of the passages that citations resolve to, each once."""
    dangling_citations: tuple[str, ...] = ()
    """Citations of nothing that was in the prompt."""
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: float | None = None
    finish_reason: str = ""
    duration_ns: int | None = None
    retrieval_ns: int | None = None
    generation_ns: int | None = None
    first_chunk_ns: int | None = None
    feedback_score: float | None = None

    completeness: int = 0
    """Bits of `Completeness`; 0 when nothing is known to be missing."""
    assembled_at: datetime
    version: int
    is_deleted: int = 0
    """1 takes back the row that stood under this key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageTextRow:
    """A passage's text and metadata under the hash of both: table `passage_texts`."""

    hash: bytes
    text: str
    metadata: str = ""
    """A JSON object, or empty when the passage has none."""
    last_seen: date


@dataclass(frozen=True, slots=True, kw_only=True)
class AssembledRow:
    """What the assembler remembers of a trace: table `assembled`."""

    sample_key: int
    trace_id: str
    span_count: int
    last_arrival: datetime
    key_service_name: tuple[str, ...] = ()
    """Service, timestamp, root, span count and lateness of the rows written, in parallel."""
    key_timestamp: tuple[datetime, ...] = ()
    key_root_span_id: tuple[str, ...] = ()
    key_span_count: tuple[int, ...] = ()
    key_late: tuple[int, ...] = ()
    """1 where the row had been settled before and was written again."""
    pending: int = 0
    """1 while a group of the trace still waits for its root."""
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressRow:
    """How far one shard of the assembler has got: table `assembler_progress`."""

    shard: int
    shards: int
    done_until: datetime
    """Every trace whose last span arrived before is assembled."""
    written_at: datetime
