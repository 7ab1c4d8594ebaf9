"""What the metrics read of a request: a small record that any source can be turned into."""

from __future__ import annotations

from dataclasses import dataclass

from retrospan_evaluator.testsets.case import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A recorded candidate by name; its place in the list is its position."""

    id: str | None
    """The passage's own id; None where the record holds none."""
    document_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredRequest:
    """One request beside the case it answered."""

    case: Case
    candidates: tuple[Candidate, ...] = ()
    """All recorded candidates in position order, whatever became of them; never re-sorted."""
    answer: str | None = None
    """None when no answer was recorded, which is not an empty answer."""
    answer_missing: str = "no answer was recorded"
    """Why there is none, as far as it is known."""
    citations: int = 0
    """How many citations the answer carries, dangling ones included."""
    dangling_citations: tuple[str, ...] = ()
    """Those among them that point at nothing in the prompt."""
    retrieval_failed: bool = False
    """The retrieval raised, or was not recorded: its list says nothing, not even empty."""
