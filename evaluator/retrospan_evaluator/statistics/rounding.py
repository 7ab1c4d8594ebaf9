"""Printing figures so that rounding never makes them look better than they are."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

_TENTH = Decimal("0.1")
# The limits carry the noise of floating point: 0.1 + 0.2 must not round up to 30.1 %.
_NOISE = Decimal("1e-9")


def percent(value: float) -> str:
    """A share as a percentage with one decimal: 9/13 as `69.2 %`."""
    return f"{_points(value).quantize(_TENTH, ROUND_HALF_EVEN)} %"


def percent_interval(lower: float, upper: float) -> str:
    """Limits as percentages, rounded outward: the lower down, the upper up."""
    down = max(_points(lower) + _NOISE, Decimal(0)).quantize(_TENTH, ROUND_FLOOR)
    up = min(_points(upper) - _NOISE, Decimal(100)).quantize(_TENTH, ROUND_CEILING)
    return f"[{_trimmed(down)} %, {_trimmed(up)} %]"


def _points(value: float) -> Decimal:
    return Decimal(value) * 100


def _trimmed(points: Decimal) -> str:
    """`0` and `100` are exact and carry no decimal."""
    return str(int(points)) if points in (0, 100) else str(points)
