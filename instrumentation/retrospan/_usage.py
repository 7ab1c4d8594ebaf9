"""Read tokens, model and finish reason out of what a model's provider answered.

Responses of OpenAI's and Anthropic's shape are understood, as objects and as dicts, whole or as
the chunks of a stream, and LangChain's messages; no provider's package is imported. A count the
provider did not give is not recorded: a stream asked without usage has none.
"""

import operator
from collections.abc import Iterator, Mapping
from typing import Final

from opentelemetry.util.types import AttributeValue

from retrospan import attributes
from retrospan._encoding import clean_text
from retrospan._guard import guarded

Attributes = dict[str, AttributeValue]

_HOLDERS: Final = ("response", "raw_response", "raw", "completion", "message")
"""Where an output of the application's own, or a wrapper's, keeps the provider's response."""

_TELLING: Final = frozenset(
    {
        *_HOLDERS,
        "choices",
        "delta",
        "incomplete_details",
        "object",
        "response_metadata",
        "stop_reason",
        "usage",
        "usage_metadata",
    }
)
"""A dict without any of these says nothing about a generation, as most of an application's own."""

_LARGEST: Final = 2**63 - 1


def generation_facts(output: object) -> Attributes:
    """Return what a provider's response, or a chunk of one, says about the generation.

    Facts of chunks add up by `|`: what a later chunk says again is the newer truth.
    """
    if output is None or isinstance(output, str | bytes | int | float):
        return {}
    if type(output) is dict and _TELLING.isdisjoint(output):
        return {}
    with guarded("read a provider's response"):
        for response in _responses(output):
            facts = _facts(response)
            if facts:
                return facts
    return {}


def _responses(output: object) -> Iterator[object]:
    yield output
    for name in _HOLDERS:
        inner = _part(output, name)
        if inner is not None and not isinstance(inner, str):
            yield inner


def _facts(response: object) -> Attributes:
    usage = _part(response, "usage")
    if usage is None:
        usage = _part(response, "usage_metadata")
    recorded = {} if usage is None else _usage(usage)
    reasons = _finish_reasons(response)
    if reasons:
        recorded[attributes.FINISH_REASONS] = reasons
    if not recorded and not _is_response(response):
        return {}
    details = _part(response, "response_metadata")
    for attribute, names in (
        (attributes.RESPONSE_MODEL, ("model", "model_name")),
        (attributes.RESPONSE_ID, ("id",)),
    ):
        text = next(_texts(response, details, names), None)
        if text is not None:
            recorded[attribute] = text
    return recorded


def _is_response(response: object) -> bool:
    """Whether a thing without usage and finish reason is a response all the same.

    A `model` alone does not make one: an application's own mapping may well have it.
    """
    return isinstance(_part(response, "choices"), list | tuple) or _part(response, "object") in (
        "response",
        "chat.completion",
        "chat.completion.chunk",
    )


def _texts(response: object, details: object, names: tuple[str, ...]) -> Iterator[str]:
    for place in (details, response):
        for name in names:
            value = _part(place, name)
            if isinstance(value, str) and value:
                yield clean_text(value)


def _usage(usage: object) -> Attributes:
    read = _count(usage, "cache_read_input_tokens")
    written = _count(usage, "cache_creation_input_tokens")
    given = _first_count(usage, "input_tokens", "prompt_tokens")
    if given is not None and (read is not None or written is not None):
        given += (read or 0) + (written or 0)  # Anthropic counts cached tokens apart
    into = _first_part(usage, "input_tokens_details", "prompt_tokens_details")
    into = into if into is not None else _part(usage, "input_token_details")
    out_of = _first_part(usage, "output_tokens_details", "completion_tokens_details")
    out_of = out_of if out_of is not None else _part(usage, "output_token_details")
    counts = {
        attributes.INPUT_TOKENS: given,
        attributes.OUTPUT_TOKENS: _first_count(usage, "output_tokens", "completion_tokens"),
        attributes.CACHE_READ_TOKENS: (
            read if read is not None else _first_count(into, "cached_tokens", "cache_read")
        ),
        attributes.CACHE_WRITE_TOKENS: (
            written if written is not None else _count(into, "cache_creation")
        ),
        attributes.REASONING_TOKENS: _first_count(out_of, "reasoning_tokens", "reasoning"),
    }
    return {name: count for name, count in counts.items() if count is not None}


def _finish_reasons(response: object) -> list[str]:
    choices = _part(response, "choices")
    if isinstance(choices, list | tuple):
        found = [_part(choice, "finish_reason") for choice in choices]
    else:
        details = _part(response, "response_metadata")
        found = [
            _part(response, "stop_reason"),
            _part(_part(response, "delta"), "stop_reason"),
            _part(details, "finish_reason"),
            _part(details, "stop_reason"),
            _part(_part(response, "incomplete_details"), "reason"),
        ]
        if not any(found) and _part(response, "object") == "response":
            found = [_part(response, "status")]
    return [clean_text(reason) for reason in found if isinstance(reason, str) and reason]


def _first_count(place: object, *names: str) -> int | None:
    return next((count for name in names if (count := _count(place, name)) is not None), None)


def _first_part(place: object, *names: str) -> object:
    return next((part for name in names if (part := _part(place, name)) is not None), None)


def _count(place: object, name: str) -> int | None:
    value = _part(place, name)
    if value is None or isinstance(value, bool):
        return None
    try:
        count = operator.index(value)  # type: ignore[arg-type]  # numpy integers have an index
    except TypeError:
        return None
    return count if 0 <= count <= _LARGEST else None


def _part(place: object, name: str) -> object:
    """Return a part of a dict or an object by its name; None where there is none."""
    if place is None:
        return None
    if isinstance(place, Mapping):
        return place.get(name)
    try:
        part: object = getattr(place, name, None)
    except Exception:  # a host's property may raise anything
        return None
    return part
