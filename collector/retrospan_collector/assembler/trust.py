"""How far a request's record can be trusted: what is missing, and what a replay may rest on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from retrospan_collector.assembler.candidates import Candidates
from retrospan_collector.assembler.record import PassageList, RequestRecord, RetrievalStep
from retrospan_collector.assembler.tree import SpanGroup
from retrospan_collector.clickhouse.request_row import (
    NO_HASH,
    Completeness,
    ReplayClass,
    RetrievalStatus,
)

_YEAR_2000_NS: Final = 946_684_800 * 10**9
_YEAR_2100_NS: Final = 4_102_444_800 * 10**9
_CLOCK_TOLERANCE_NS: Final = 1_000_000

_LOST: Final = (
    Completeness.ATTRIBUTES_DROPPED | Completeness.TRUNCATED | Completeness.UNREADABLE
).value
"""Flags under which a list that is not there may have been there."""

_NOT_REPLAYABLE: Final = _LOST | Completeness.ROOT_MISSING.value | Completeness.REDACTED.value


def completeness_of(
    group: SpanGroup, record: RequestRecord, candidates: Candidates | None, *, late: bool
) -> int:
    """The bits of `Completeness` for a request."""
    bits = record.completeness
    if group.root is None:
        bits |= Completeness.ROOT_MISSING.value
    if late:
        bits |= Completeness.LATE_REWRITE.value
    if candidates is not None and not candidates.complete:
        bits |= Completeness.TRUNCATED.value
    if _has_clock_skew(group):
        bits |= Completeness.CLOCK_SKEW.value
    return bits


def _has_clock_skew(group: SpanGroup) -> bool:
    """Whether a span ends before it starts, starts before the request, or in another century."""
    earliest = _YEAR_2000_NS
    if group.root is not None:
        earliest = max(earliest, group.root.start_ns - _CLOCK_TOLERANCE_NS)
    return any(
        span.has_impossible_duration or not earliest <= span.start_ns < _YEAR_2100_NS
        for span in group.spans
    )


def retrieval_status_of(
    candidates: Candidates | None, retrievals: Sequence[RetrievalStep], completeness: int
) -> RetrievalStatus:
    """Whether a list of passages was recorded, and if not, why."""
    if candidates is not None:
        return "recorded"
    if any(not step.error_type for step in retrievals):
        return "unreadable" if completeness & _LOST else "not_recorded"
    return "failed" if retrievals else "not_recorded"


def replay_class_of(
    candidates: Candidates | None,
    *,
    completeness: int,
    settings_known: bool,
    tokens_known: bool,
    lists: Sequence[PassageList],
) -> ReplayClass:
    """What a replay can rest on.

    `full`: order, texts, tokens, budget; `text`: order and texts; `ids`: order and ids, texts
    have to be found elsewhere; `none`: not even that, or something was lost on the way.

    Args:
        lists: every list of the request, for the texts it was recorded with.
    """
    if candidates is None or completeness & _NOT_REPLAYABLE:
        return "none"
    passages = candidates.passages
    if not _have_texts(lists, passages):
        named = map(any, zip(passages.id, map(any, passages.hash), strict=True))
        return "ids" if all(named) else "none"
    known = settings_known and tokens_known and candidates.assembly_recorded
    return "full" if known else "text"


def _have_texts(lists: Sequence[PassageList], passages: PassageList) -> bool:
    """Whether every passage's text was recorded with some list, under a hash that finds it."""
    missing = set(passages.hash)
    if NO_HASH in missing:
        return False
    for known in lists:
        if None in known.text:
            pairs = zip(known.hash, known.text, strict=True)
            missing.difference_update([known_as for known_as, text in pairs if text is not None])
        else:
            missing.difference_update(known.hash)
    return not missing
