"""The request that this code runs in."""

from typing import NamedTuple

from opentelemetry import context
from opentelemetry.context import Context
from opentelemetry.trace import Span

from retrospan._capture import Capture
from retrospan._memory import RequestMemory

_KEY = context.create_key("retrospan-request")


class OpenRequest(NamedTuple):
    """A request that has begun: its span, what may be recorded in it, and what it saw."""

    span: Span
    capture: Capture
    memory: RequestMemory


def with_open_request(inside: Context, request: OpenRequest) -> Context:
    """Return a context in which this request is the current one."""
    return context.set_value(_KEY, request, inside)


def open_request(inside: Context | None = None) -> OpenRequest | None:
    """Return the request of a context, else of the current one; None outside of any."""
    request = context.get_value(_KEY, inside)
    return request if isinstance(request, OpenRequest) else None
