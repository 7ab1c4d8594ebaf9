"""Understand what a retriever of any framework returned, without importing the framework."""

from collections.abc import Callable

from retrospan._passages import Passage, Retrieval


def passages_of(
    value: object, convert: Callable[..., object] | None = None
) -> tuple[Passage, ...] | None:
    """Return the passages in what a retriever returned; None when it is not understood.

    Args:
        convert: turns the value into passages, or into something that is understood.
    """
    found = value if convert is None else convert(value)
    if isinstance(found, Retrieval):
        found = found.candidates
    if isinstance(found, list | tuple) and all(isinstance(item, Passage) for item in found):
        return tuple(found)
    return None
