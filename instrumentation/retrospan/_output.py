"""Read the answer and the citations out of what `generate` returned."""

import operator
from collections.abc import Mapping
from typing import Final

from retrospan._encoding import clean_text, plain, to_json

Citation = str | int
"""A passage or document id, or a 1-based place in the prompt as the generator was shown it."""

_MISSING: Final = object()


def answer_of(output: object, path: str) -> str | None:
    """Return the answer as text; None when the output holds none.

    It is the output itself where that is a text, else what stands at the path, else the text in
    a response of a model's provider or of a framework.
    """
    if isinstance(output, str):
        return output
    if isinstance(output, bytes | bytearray):
        return clean_text(output)
    answer = _value_at(output, path)
    if answer is _MISSING or answer is None:
        return None if output is None else _provided_text(output)
    if isinstance(answer, str):
        return answer
    described = plain(answer)
    return described if isinstance(described, str) else to_json(described)


def _provided_text(output: object) -> str | None:
    """Return the text of a completion, a message, or a framework's response."""
    first = _first(_part(output, "choices"))
    if first is not None:
        return text_in(_part(_part(first, "message"), "content")) or text_in(_part(first, "text"))
    reply = _first(_part(output, "replies"))
    if reply is not None:
        return text_in(reply) or text_in(_part(reply, "text"))
    for name in ("output_text", "content", "response"):
        text = text_in(_part(output, name))
        if text is not None:
            return text
    return None


def text_in(value: object) -> str | None:
    """Return a text, or the texts of a message's blocks as one."""
    if isinstance(value, str):
        return value
    if not isinstance(value, list | tuple):
        return None
    texts = [item if isinstance(item, str) else _part(item, "text") for item in value]
    known = [text for text in texts if isinstance(text, str)]
    return "".join(known) if known else None


def _first(items: object) -> object:
    return items[0] if isinstance(items, list | tuple) and items else None


def _part(place: object, name: str) -> object:
    """Return a part of a mapping or an object by its name; None where there is none."""
    try:
        found = place[name] if isinstance(place, Mapping) else getattr(place, name, None)
    except Exception:  # KeyError, or whatever a host's object raises
        return None
    return None if callable(found) else found


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
    """Return what stands at a dotted path in nested mappings and objects, else `_MISSING`."""
    value = output
    for name in path.split("."):
        value = _part(value, name)
        if value is None:
            return _MISSING
    return value
