"""Read the answer and the citations out of what `generate` returned."""

import operator
from collections.abc import Mapping
from typing import Final

from retrospan._encoding import clean_text, plain, to_json

Citation = str | int
"""A passage or document id, or a 1-based place in the prompt as the generator was shown it."""

_MISSING: Final = object()


def answer_of(output: object, path: str) -> str | None:
    """Return the answer as text; None when the output holds none."""
    answer = output if isinstance(output, str) else _value_at(output, path)
    if answer is _MISSING or answer is None:
        return None
    if isinstance(answer, str):
        return answer
    described = plain(answer)
    return described if isinstance(described, str) else to_json(described)


def citations_of(output: object, path: str) -> tuple[Citation, ...] | None:
    """Return the citations as given; None when the output has no place for any."""
    value = _value_at(output, path)
    if value is _MISSING or value is None:
        return None
    if isinstance(value, str) or not isinstance(value, list | tuple):
        return (_citation(value),)
    return tuple(_citation(item) for item in value)


def _citation(value: object) -> Citation:
    if isinstance(value, str):
        return value
    try:
        return clean_text(value) if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]  # numpy integers have an index
    except Exception:  # a host's object may raise anything
        return clean_text(value)


def _value_at(output: object, path: str) -> object:
    """Return what stands at a dotted path in nested mappings, else `_MISSING`."""
    value = output
    for name in path.split("."):
        if not isinstance(value, Mapping):
            return _MISSING
        try:
            value = value[name]
        except Exception:  # KeyError, or whatever a host's mapping raises
            return _MISSING
    return value
