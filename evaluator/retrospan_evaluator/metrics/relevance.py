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
    gold = _unique(relevant)
    claimed: set[Relevant] = set()
    seen: set[str] = set()
    gains: list[float] = []
    unsure: list[int] = []
    for position, candidate in enumerate(candidates, start=1):
        matching = [entry for entry in gold if matches(candidate, entry)]
        open_entries = [entry for entry in matching if entry not in claimed]
        if open_entries and candidate.id not in seen:
            claimed.add(open_entries[0])
            gains.append(max(open_entries[0].grade, 0.0))
        else:
            gains.append(0.0)
        if not matching and any(_might_match(candidate, entry) for entry in gold):
            unsure.append(position)
        if candidate.id is not None:
            seen.add(candidate.id)
    ideal = sorted((entry.grade for entry in gold if entry.grade > 0), reverse=True)
    return JudgedRanking(gains=tuple(gains), ideal=tuple(ideal), unsure=tuple(unsure))


def matches(candidate: Candidate, entry: Relevant) -> bool:
    """Whether a candidate is what the entry names: by chunk where it names one, else document."""
    if entry.chunk_id is not None:
        return candidate.id == entry.chunk_id
    return candidate.document_id == entry.document_id


def _might_match(candidate: Candidate, entry: Relevant) -> bool:
    """Whether the entry's chunk could hide in a candidate that is recorded as a document only."""
    if entry.chunk_id is None or entry.grade <= 0:
        return False
    if candidate.id is None:
        return None in (candidate.document_id, entry.document_id) or (
            candidate.document_id == entry.document_id
        )
    return candidate.id == candidate.document_id == entry.document_id


def _unique(relevant: Sequence[Relevant]) -> list[Relevant]:
    """Each chunk or document once, with its highest grade; chunks first, they decide."""
    best: dict[tuple[str | None, str | None], Relevant] = {}
    for entry in relevant:
        key = (entry.chunk_id, None if entry.chunk_id else entry.document_id)
        if key not in best or entry.grade > best[key].grade:
            best[key] = entry
    return sorted(best.values(), key=lambda entry: entry.chunk_id is None)
