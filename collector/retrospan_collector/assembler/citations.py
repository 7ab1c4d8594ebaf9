"""What an answer's citations refer to: ids, or numbers of passages as the prompt showed them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retrospan_collector.assembler.candidates import Candidates


@dataclass(frozen=True, slots=True)
class ResolvedCitations:
    """An answer's citations, and the passages they mean."""

    as_given: tuple[str, ...] = ()
    positions: tuple[int, ...] = ()
    """Positions in the recorded list, each once, in the order of citing."""
    dangling: tuple[str, ...] = ()
    """Citations of nothing that was in the prompt."""


def resolve_citations(
    citations: Sequence[str | int], candidates: Candidates | None
) -> ResolvedCitations:
    """Find the passage behind each citation: by passage id, then document id, or by number.

    Where the prompt was not recorded an id is looked for among all candidates, and a number,
    which counts passages as shown, is neither resolved nor called dangling.
    """
    if not citations:
        return ResolvedCitations()
    shown = _shown(candidates) if candidates else []
    numbered = candidates is not None and candidates.assembly_recorded
    names = _names(candidates, shown) if candidates else {}
    positions: dict[int, None] = {}
    dangling: dict[str, None] = {}
    for citation in citations:
        if isinstance(citation, str):
            index = names.get(citation)
        elif not numbered:
            continue
        else:
            index = shown[citation - 1] if 0 < citation <= len(shown) else None
        if index is not None:
            positions[index + 1] = None
        elif candidates is not None:
            dangling[str(citation)] = None
    return ResolvedCitations(tuple(map(str, citations)), tuple(positions), tuple(dangling))


def _shown(candidates: Candidates) -> list[int]:
    """Indices of the passages in the prompt, in its order; of all where that is not known."""
    if not candidates.assembly_recorded:
        return list(range(len(candidates.passages)))
    kept = [(place, index) for index, place in enumerate(candidates.prompt_position) if place]
    return [index for _, index in sorted(kept)]


def _names(candidates: Candidates, shown: Sequence[int]) -> dict[str, int]:
    names: dict[str, int] = {}
    for column in (candidates.passages.id, candidates.passages.document_id):
        for index in shown:
            names.setdefault(column[index], index)
    names.pop("", None)
    return names
