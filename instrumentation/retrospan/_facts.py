"""What a caller declares about a step, beside what the step takes and returns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from retrospan._run_scope import RunScope


class RequestFacts(NamedTuple):
    """What was asked, of which system, by whom."""

    name: str
    version: str | None = None
    input: object = None
    run: RunScope | None = None
    conversation_id: str | None = None
    user_id: object = None
    """Recorded only as an HMAC, and only where there is a key for it."""

    user_roles: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalFacts:
    """How a retriever was asked; None for what nobody declared."""

    system: str
    """Who asked, for messages."""

    system_version: str | None = None
    depth: int | None = None
    index_version: str | None = None
    data_source_id: str | None = None
    embedding_model: str | None = None
    score_kind: str | None = None
    tokenizer: str | None = None
    filter: object = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptFacts:
    """Which prompt a context was assembled for, and which model reads it."""

    name: str | None = None
    version: str | None = None
    model: str | None = None
