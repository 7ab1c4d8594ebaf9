"""Which recorded candidates are the relevant ones, position by position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retrospan_evaluator.metrics.request import Candidate
from retrospan_evaluator.testsets.case import Relevant


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRanking:
    """A ranking read against its gold: a gain for every position."""

    gains: tuple[float, ...]
    """Per position: the grade it earns, 0 for a later copy or a candidate without relevance."""
    ideal: tuple[float, ...]
    """The grades of all relevant entries, best first, retrieved or not."""
    unsure: tuple[int, ...] = ()
    """Positions (from 1) whose record cannot say whether they hold a relevant chunk."""

    @property
    def best_position(self) -> int | None:
        """The first position (from 1) that holds something relevant."""
        return next((at for at, gain in enumerate(self.gains, start=1) if gain > 0), None)


def judge_ranking(candidates: Sequence[Candidate], relevant: Sequence[Relevant]) -> JudgedRanking:
    """The ranking's gains; only the first copy of a relevant chunk or document earns one."""
    gold = _Gold(relevant)
    claimed: set[Relevant] = set()
    seen: set[str] = set()
    gains: list[float] = []
    unsure: list[int] = []
    for position, candidate in enumerate(candidates, start=1):
        matching = gold.matching(candidate)
        still_open = [entry for entry in matching if entry not in claimed]
        if still_open and candidate.id not in seen:
            claimed.add(still_open[0])
            gains.append(max(still_open[0].grade, 0.0))
        else:
            gains.append(0.0)
        if not matching and gold.may_hide_in(candidate):
            unsure.append(position)
        if candidate.id is not None:
            seen.add(candidate.id)
    return JudgedRanking(gains=tuple(gains), ideal=gold.ideal(), unsure=tuple(unsure))


def matches(candidate: Candidate, entry: Relevant) -> bool:
    """Whether a candidate is what the entry names: by chunk where it names one, else document."""
    if entry.chunk_id is not None:
        return candidate.id == entry.chunk_id
    return candidate.document_id == entry.document_id


class _Gold:
    """Relevance labels by what they name; each chunk or document once, with its highest grade."""

    def __init__(self, relevant: Sequence[Relevant]) -> None:
        self._chunks: dict[str, Relevant] = {}
        self._documents: dict[str | None, Relevant] = {}
        for entry in sorted(relevant, key=lambda entry: entry.grade):
            if entry.chunk_id is not None:
                self._chunks[entry.chunk_id] = entry
            else:
                self._documents[entry.document_id] = entry
        self._chunked_documents = {e.document_id for e in self._chunks.values() if e.grade > 0}

    def matching(self, candidate: Candidate) -> list[Relevant]:
        """The labels that name a candidate; the chunk's own first, it decides."""
        by_chunk = None if candidate.id is None else self._chunks.get(candidate.id)
        by_document = self._documents.get(candidate.document_id)
        return [entry for entry in (by_chunk, by_document) if entry is not None]

    def may_hide_in(self, candidate: Candidate) -> bool:
        """Whether a labelled chunk could be in a candidate that is recorded as a document only."""
        documents = self._chunked_documents
        if candidate.id is None:
            unnamed = candidate.document_id is None or None in documents
            return bool(documents) and (unnamed or candidate.document_id in documents)
        return candidate.id == candidate.document_id and candidate.document_id in documents

    def ideal(self) -> tuple[float, ...]:
        """The grades that a perfect ranking would earn, in its order."""
        entries = (*self._chunks.values(), *self._documents.values())
        return tuple(sorted((e.grade for e in entries if e.grade > 0), reverse=True))
