"""Run one statement on the embedded engine and give back the bytes of its result."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retrospan_collector.clickhouse.connection import DEFAULT_SETTINGS
from retrospan_collector.clickhouse.embedded import DATABASE, open_connection
from retrospan_collector.face.statements import Statement, refused_names

_LIMITS: Mapping[str, object] = {
    # A result is held in memory, here and at its reader.
    "max_result_bytes": 512 * 2**20,
    "max_execution_time": 300,
}


@dataclass(frozen=True, slots=True)
class Result:
    """What a statement gave."""

    body: bytes
    rows_read: int
    bytes_read: int
    elapsed_ns: int


class FaceEngine:
    """Every statement gets a connection of its own: they cost a tenth of a millisecond, and no
    setting of one request reaches the next."""

    def __init__(self, engine_path: Path) -> None:
        self._path = engine_path
        names = self.run(
            Statement("SELECT name FROM system.table_functions", True), {}, {}, "TabSeparated"
        )
        self.refused_functions = refused_names(names.body.decode().split())
        """What a statement must not call."""

    def run(
        self,
        statement: Statement,
        settings: Mapping[str, str],
        parameters: Mapping[str, str],
        default_format: str,
    ) -> Result:
        """The result; the engine's error comes as RuntimeError with its message."""
        connection = open_connection(self._path)
        try:
            connection.query(f"USE {DATABASE}")
            connection.query(_set({**DEFAULT_SETTINGS, **_LIMITS, **settings}))
            if statement.data is not None:
                return _insert(connection, statement, statement.data, dict(parameters))
            return _result(connection.query(statement.text, default_format, dict(parameters)))
        finally:
            connection.close()


def _insert(
    connection: Any, statement: Statement, data: bytes, parameters: dict[str, str]
) -> Result:
    descriptor, name = tempfile.mkstemp(prefix="retrospan-insert-")
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        return _result(
            connection.query(
                f"{statement.text} FROM INFILE {_quoted(name)} {statement.settings} "
                f"FORMAT {statement.data_format}",
                "TabSeparated",
                parameters,
            )
        )
    finally:
        os.unlink(name)


def _result(result: Any) -> Result:
    return Result(
        body=result.bytes() or b"",
        rows_read=result.rows_read(),
        bytes_read=result.bytes_read(),
        elapsed_ns=int(result.elapsed() * 1e9),
    )


def _set(settings: Mapping[str, object]) -> str:
    return "SET " + ", ".join(f"{name} = {_quoted(str(value))}" for name, value in settings.items())


def _quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
