"""What keeps failing in a service, written down for whoever asks how the store is.

A service says it on its stderr too, which `retrospan doctor` cannot read.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, get_args

import orjson

Part = Literal["owner", "inserts", "writer", "assembler"]
"""owner: its process does not stay; inserts: segments are refused; the others: rounds fail."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """What one part last failed with."""

    part: Part
    message: str
    """One sentence."""
    since: datetime
    """When it began to fail; aware, in UTC."""
    failures: int
    """How often it failed since then."""


class Troubles:
    """One file a part in a spool's folder, there for as long as the part fails."""

    def __init__(self, spool: Path) -> None:
        self._folder = spool
        self._known: dict[Part, Trouble] = {}
        self._well: set[Part] = set()

    def failed(self, part: Part, message: str) -> None:
        """A part failed, perhaps once more."""
        self._well.discard(part)
        before = self._known.get(part)
        self._known[part] = trouble = Trouble(
            part=part,
            message=message,
            since=before.since if before else datetime.now(UTC),
            failures=before.failures + 1 if before else 1,
        )
        draft = self._path(part).with_suffix(f".{os.getpid()}.tmp")
        with suppress(OSError):  # a full disk may be the trouble itself; the log says it as well
            draft.write_bytes(orjson.dumps(asdict(trouble)))
            draft.replace(self._path(part))

    def worked(self, part: Part) -> None:
        """A part works, for all that was before; also what an earlier process left is gone."""
        if part in self._well:
            return
        self._known.pop(part, None)
        with suppress(OSError):
            self._path(part).unlink(missing_ok=True)
            self._well.add(part)

    def current(self) -> list[Trouble]:
        """What is written down, by whatever process."""
        found = []
        for part in get_args(Part):
            with suppress(OSError, ValueError, TypeError, KeyError):
                stored = orjson.loads(self._path(part).read_bytes())
                since = datetime.fromisoformat(stored["since"])
                found.append(Trouble(**{**stored, "since": since}))
        return found

    def _path(self, part: Part) -> Path:
        return self._folder / f"failing-{part}.json"
