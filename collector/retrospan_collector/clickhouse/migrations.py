"""Bring a store's tables to this version's schema: numbered .sql files, applied in order."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from string import Template
from typing import TYPE_CHECKING

from retrospan_collector.errors import SchemaTooNew

if TYPE_CHECKING:
    from retrospan_collector.clickhouse.connection import Store


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered file of statements; each must do no harm when it is run again."""

    version: int
    name: str
    statements: tuple[str, ...]


def migrations() -> list[Migration]:
    """Every migration this version knows, oldest first."""
    found = []
    for file in _folder().iterdir():
        number, _, rest = file.name.partition("_")
        if number.isdigit() and rest.endswith(".sql"):
            text = file.read_text(encoding="utf-8")
            found.append(Migration(int(number), file.name, split_statements(text)))
    return sorted(found, key=lambda migration: migration.version)


def split_statements(text: str) -> tuple[str, ...]:
    """The statements of a file: each ends with a semicolon at the end of a line.

    SQL has no names for types, so a line `-- define NAME = TEXT` gives one to the lines after
    it, which use it as `${NAME}`.
    """
    names: dict[str, str] = {}
    lines = []
    for line in text.splitlines():
        expanded = Template(line).safe_substitute(names)
        if expanded.startswith("-- define "):
            name, _, meaning = expanded.removeprefix("-- define ").partition(" = ")
            names[name] = meaning
        elif not expanded.lstrip().startswith("--"):
            lines.append(expanded)
    pieces = "\n".join([*lines, ""]).split(";\n")
    return tuple(piece.strip() for piece in pieces if piece.strip())


def schema_version(store: Store) -> int:
    """The number of the newest migration a store has seen; 0 for an empty one."""
    if not store.query("EXISTS TABLE schema_version")[0]["result"]:
        return 0
    return int(store.query("SELECT max(Version) AS version FROM schema_version")[0]["version"])


def _folder() -> Traversable:
    return resources.files("retrospan_collector.clickhouse") / "schema"


def migrate(store: Store) -> int:
    """Apply what is missing and return the version reached; SchemaTooNew if it is ahead of us."""
    known = migrations()
    newest = known[-1].version
    present = schema_version(store)
    if present > newest:
        raise SchemaTooNew(
            f"expected a store of schema {newest} or older and {store.address} has {present}: "
            "use the newer retrospan that made it"
        )
    if present == 0:
        store.command((_folder() / "schema_version.sql").read_text(encoding="utf-8"))
    for migration in known:
        if migration.version > present:
            for statement in migration.statements:
                store.command(statement)
            store.command(
                "INSERT INTO schema_version (Version, Name) "
                "VALUES ({version:UInt32}, {name:String})",
                {"version": migration.version, "name": migration.name},
            )
    return newest
