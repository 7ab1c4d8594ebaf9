"""Row dataclasses and table columns: one rule between the two, in both directions.

A field `trace_id` is the column `TraceId`. The dataclass is the only place a table's column
list is written in Python; a test compares each with DESCRIBE TABLE.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Row = TypeVar("Row", bound="DataclassInstance")


def column_name(field_name: str) -> str:
    """The column that holds a field."""
    return "".join(part[:1].upper() + part[1:] for part in field_name.split("_"))


@cache
def _names(row_type: type[Any]) -> tuple[tuple[str, str], ...]:
    return tuple((field.name, column_name(field.name)) for field in fields(row_type))


def columns(row_type: type[DataclassInstance]) -> tuple[str, ...]:
    """A row type's columns in the order of its fields."""
    return tuple(column for _, column in _names(row_type))


def to_row(row: DataclassInstance) -> list[Any]:
    """A row's values in the order of `columns`."""
    return [getattr(row, name) for name, _ in _names(type(row))]


def from_row(row_type: type[Row], values: Mapping[str, Any]) -> Row:
    """The row whose columns stand in `values`, as a query returns them; arrays become tuples.

    Other keys are ignored, so that a table may have columns the row type leaves to defaults.
    """
    taken = {}
    for name, column in _names(row_type):
        value = values[column]
        taken[name] = tuple(value) if isinstance(value, list) else value
    return row_type(**taken)
