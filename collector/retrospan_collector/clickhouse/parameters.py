"""Bound parameters: the few Python values the driver would bind in the wrong zone or form."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any


def bound(parameters: Mapping[str, object] | None) -> dict[str, Any] | None:
    """Parameters as the engine reads them, in a session whose zone is UTC.

    The driver writes a time in the zone of the server, which on the embedded engine is the
    machine's and not the session's.
    """
    if parameters is None:
        return None
    return {name: _bound_value(value) for name, value in parameters.items()}


def _bound_value(value: object) -> object:
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
    if isinstance(value, tuple | set | frozenset):
        return [_bound_value(item) for item in value]
    if isinstance(value, list):
        return [_bound_value(item) for item in value]
    return value
