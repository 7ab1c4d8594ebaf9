"""Which candidates somebody else's assembly chose, told by ids, passages or documents."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, cast, get_args

from retrospan._adapters import passages_of
from retrospan._assembly import Assembly, BudgetRule, DroppedReason, Placement, token_count
from retrospan._encoding import clean_text
from retrospan._guard import note_once
from retrospan._passages import Passage

_REASONS: Final = get_args(DroppedReason)


class Choice:
    """The candidates, each with its place in the prompt or the reason for having none."""

    __slots__ = ("_candidates", "_places", "_reasons")

    def __init__(self, candidates: Iterable[object]) -> None:
        self._candidates = [_passage(item) for item in candidates]
        self._places: dict[int, int] = {}
        self._reasons: dict[int, DroppedReason] = {}

    def keep(self, kept: Iterable[object]) -> None:
        """Take what entered the prompt, in its order; what is no candidate becomes one."""
        for place, item in enumerate(kept, start=1):
            self._places[self._index(item)] = place

    def drop(self, dropped: Mapping[str, str] | Iterable[tuple[object, str]]) -> None:
        """Take the reasons that are known."""
        pairs = dropped.items() if isinstance(dropped, Mapping) else dropped
        for item, reason in pairs:
            index = self._index(item)
            if reason in _REASONS:
                self._reasons[index] = cast(DroppedReason, reason)
            else:
                note_once(
                    "record_context: reason",
                    f"a reason for leaving out a passage must be one of {', '.join(_REASONS)};"
                    f" {clean_text(reason)!r} is recorded as an unknown one",
                )

    def assembly(
        self, top_k: int | None, token_budget: int | None, rule: BudgetRule | None
    ) -> Assembly:
        """Return the choice as an assembly."""
        placements = tuple(
            Placement(
                passage=passage,
                position=index + 1,
                tokens=token_count(passage, None),
                prompt_position=self._places.get(index, 0),
                dropped_reason=None if index in self._places else self._reasons.get(index),
            )
            for index, passage in enumerate(self._candidates)
        )
        kept = sorted(
            (item for item in placements if item.prompt_position),
            key=lambda item: item.prompt_position,
        )
        tokens = [item.tokens for item in kept if item.tokens is not None]
        return Assembly(
            placements=placements,
            context=tuple(item.passage for item in kept),
            context_tokens=sum(tokens) if kept and len(tokens) == len(kept) else None,
            top_k=top_k,
            token_budget=token_budget,
            rule=rule,
        )

    def _index(self, item: object) -> int:
        """Return the candidate an item means: the same, of the same id, or of the same text."""
        passage = _passage(item)
        free = [n for n in range(len(self._candidates)) if n not in self._places]
        for same in (_is_same, _has_same_id, _has_same_text):
            for index in free:
                if same(self._candidates[index], passage):
                    return index
        self._candidates.append(passage)
        return len(self._candidates) - 1


def _passage(item: object) -> Passage:
    if isinstance(item, Passage):
        return item
    if isinstance(item, str):
        return Passage(item)
    found: Sequence[Passage] = passages_of([item]) or ()
    return found[0] if len(found) == 1 else Passage(clean_text(item))


def _is_same(one: Passage, other: Passage) -> bool:
    return one is other


def _has_same_id(one: Passage, other: Passage) -> bool:
    return bool(one.id) and clean_text(one.id) == clean_text(other.id)


def _has_same_text(one: Passage, other: Passage) -> bool:
    nameless = not one.id or not other.id
    return nameless and bool(one.text) and clean_text(one.text) == clean_text(other.text)
