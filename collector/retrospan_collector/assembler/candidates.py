"""Which list of passages a request answered from, and what became of each of them.

The result is the list that the last assembly before the answer saw, else the last rerank, else
the last retrieval that gave one. Recorded order is the truth: nothing is sorted by score.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from retrospan_collector.assembler.record import (
    AssemblyStep,
    PassageList,
    Placements,
    RetrievalStep,
)
from retrospan_collector.clickhouse.request_row import NO_HASH, UNKNOWN_TOKENS

_INELIGIBLE: Final = frozenset({"duplicate", "score", "filter"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """A request's passages with their fate, as parallel columns."""

    passages: PassageList
    prompt_position: tuple[int | None, ...]
    """None where no assembly was recorded: nothing recorded is not nothing kept."""
    dropped_reason: tuple[str, ...]
    complete: bool = True
    """False when the assembly names passages that stand nowhere else, and leaves gaps."""

    @property
    def assembly_recorded(self) -> bool:
        """Whether the record says of every passage if it entered the prompt."""
        return None not in self.prompt_position

    def cumulative_tokens(self) -> tuple[int, ...]:
        """Prefix sums of tokens, ineligible passages weighing nothing, cut at an unknown count."""
        total = 0
        sums: list[int] = []
        for tokens, reason in zip(self.passages.tokens, self.dropped_reason, strict=True):
            if reason not in _INELIGIBLE:
                total = UNKNOWN_TOKENS if tokens == UNKNOWN_TOKENS else total + tokens
            if total >= UNKNOWN_TOKENS:
                break
            sums.append(total)
        return tuple(sums)


def find_candidates(
    retrievals: Sequence[RetrievalStep], assembly: AssemblyStep | None
) -> Candidates | None:
    """The passages a request answered from; None when no list of them was recorded."""
    placements = assembly.placements if assembly else None
    lists = list(_best_first(retrievals, assembly))
    if placements is None:
        return _unplaced(lists[0]) if lists else None
    order = sorted(range(len(placements.id)), key=placements.position.__getitem__)
    for passages in lists:
        if _saw(placements, order, passages):
            return _placed(passages, placements)
    return _from_placements(placements, order, lists)


def _best_first(
    retrievals: Sequence[RetrievalStep], assembly: AssemblyStep | None
) -> Iterable[PassageList]:
    latest = [
        step
        for step in reversed(retrievals)
        if not step.error_type
        and (assembly is None or step.span.start_ns <= assembly.span.start_ns)
    ]
    for kind in ("rerank", "retrieve"):
        for step in latest:
            if step.kind == kind and step.passages is not None:
                yield step.passages


def _unplaced(passages: PassageList) -> Candidates:
    n = len(passages)
    return Candidates(passages=passages, prompt_position=(None,) * n, dropped_reason=("",) * n)


def _saw(placements: Placements, order: Sequence[int], passages: PassageList) -> bool:
    """Whether an assembly's entries name a list's passages at their positions."""
    if tuple(order) == tuple(range(len(passages))) and placements.id == passages.id:
        return placements.position == tuple(range(1, len(order) + 1))
    return bool(order) and all(
        0 < placements.position[entry] <= len(passages)
        and passages.id[placements.position[entry] - 1] == placements.id[entry]
        for entry in order
    )


def _placed(passages: PassageList, placements: Placements) -> Candidates:
    n = len(passages)
    places: list[int | None] = [None] * n
    reasons = [""] * n
    for position, place, reason in zip(
        placements.position, placements.prompt_position, placements.dropped_reason, strict=True
    ):
        places[position - 1] = place
        reasons[position - 1] = reason
    return Candidates(
        passages=passages, prompt_position=tuple(places), dropped_reason=tuple(reasons)
    )


def _from_placements(
    placements: Placements, order: Sequence[int], lists: Sequence[PassageList]
) -> Candidates:
    """The list as the assembly names it, details taken by id from the lists before it.

    A replay is recorded like this (it retrieves nothing), and so is a list that the
    application put together itself from several retrievals.
    """
    positions = [placements.position[entry] for entry in order]
    return Candidates(
        passages=_looked_up([placements.id[entry] for entry in order], lists),
        prompt_position=tuple(placements.prompt_position[entry] for entry in order),
        dropped_reason=tuple(placements.dropped_reason[entry] for entry in order),
        complete=positions == list(range(1, len(order) + 1)),
    )


def _looked_up(ids: Sequence[str], lists: Sequence[PassageList]) -> PassageList:
    places = {
        passage_id: (passages, index)
        for passages in reversed(lists)
        for index, passage_id in reversed(list(enumerate(passages.id)))
        if passage_id
    }
    found = [places.get(passage_id, (_UNKNOWN, 0)) for passage_id in ids]
    return PassageList(
        id=tuple(ids),
        document_id=tuple(
            passages.document_id[i] or passage_id
            for passage_id, (passages, i) in zip(ids, found, strict=True)
        ),
        hash=tuple(passages.hash[i] for passages, i in found),
        score=tuple(passages.score[i] for passages, i in found),
        tokens=tuple(passages.tokens[i] for passages, i in found),
        source_version=tuple(passages.source_version[i] for passages, i in found),
        updated_at=tuple(passages.updated_at[i] for passages, i in found),
        acl=tuple(passages.acl[i] for passages, i in found),
        text=tuple(passages.text[i] for passages, i in found),
        metadata=tuple(passages.metadata[i] for passages, i in found),
    )


_UNKNOWN: Final = PassageList(
    id=("",),
    document_id=("",),
    hash=(NO_HASH,),
    score=(math.nan,),
    tokens=(UNKNOWN_TOKENS,),
    source_version=("",),
    updated_at=("",),
    acl=("",),
    text=(None,),
    metadata=(None,),
)
