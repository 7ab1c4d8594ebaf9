"""What a request has seen so far, for the steps that come later in it."""

from collections.abc import Callable, Sequence

from retrospan._assembly import token_count
from retrospan._capture import Capture
from retrospan._guard import guarded
from retrospan._passages import Passage, RecordedPassage, describe


class TokenCounter:
    """Asks a system's `count_tokens` once for a passage, however often the count is needed."""

    __slots__ = ("_count", "_counts")

    def __init__(self, count: Callable[[Passage], int]) -> None:
        self._count = count
        # By identity: a passage with metadata has no hash. The passage is kept with its count,
        # so that its identity is not given to another one meanwhile.
        self._counts: dict[int, tuple[Passage, int]] = {}

    def __call__(self, passage: Passage) -> int:
        known = self._counts.get(id(passage))
        if known is None:
            known = self._counts[id(passage)] = (passage, self._count(passage))
        return known[1]

    def or_unknown(self, passage: Passage) -> int:
        """Return the count, or -1 when counting fails and nothing but the record needs it."""
        with guarded("count a passage's tokens"):
            return self(passage)
        return -1


class RequestMemory:
    """The passages of one request, each described once; shared by the request's threads."""

    __slots__ = ("_capture", "_described", "candidates", "context")

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._described: dict[int, RecordedPassage] = {}
        self.candidates: Sequence[Passage] = ()
        """What the last retrieval or rerank gave."""

        self.context: Sequence[Passage] | None = None
        """What the last assembly kept; None before there was one."""

    def recorded(
        self, passages: Sequence[Passage], counter: TokenCounter | None = None
    ) -> list[RecordedPassage]:
        """Return the passages as they are recorded.

        Args:
            counter: counts the passages that do not know their tokens.
        """
        known = self._described
        count = None if counter is None else counter.or_unknown
        found: list[RecordedPassage] = []
        for passage in passages:
            recorded = known.get(id(passage))
            if recorded is None:
                recorded = describe(passage, self._capture, token_count(passage, count))
                known[id(passage)] = recorded
            found.append(recorded)
        return found
