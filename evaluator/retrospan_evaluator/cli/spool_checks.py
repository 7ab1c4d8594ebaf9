"""What `retrospan doctor` says of the spool, and of what keeps failing behind it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path

from retrospan_collector.folders import OTHER_FOLDER, hindrance, unusable
from retrospan_collector.service import running_service, spool_path
from retrospan_collector.store_url import EmbeddedStore, parse_store_url
from retrospan_collector.troubles import Trouble, Troubles
from retrospan_evaluator.cli.check import Check, things

_FAILING = {
    "owner": "the store's owner ends again and again",
    "writer": "received traces are not stored",
    "assembler": "spans are stored and not assembled into requests",
}
"""What it means that a part of the service fails."""


def spool_checks(url: str) -> Iterator[Check]:
    """The spool of a store, and each part of the service that keeps failing."""
    spool = spool_path(url)
    if not spool.exists() and not isinstance(parse_store_url(url), EmbeddedStore):
        return
    troubles = {trouble.part: trouble for trouble in Troubles(spool).current()}
    yield _spool(spool, troubles.pop("inserts", None))
    if running_service(url) is not None:
        for trouble in troubles.values():
            found = f"{_FAILING[trouble.part]}: it failed {_history(trouble)}"
            advice = "put that right; the running service tries again by itself"
            yield Check(name=trouble.part, status="problem", found=found, advice=advice)


def _spool(spool: Path, refused: Trouble | None) -> Check:
    waiting, aside = _count(spool / "sealed"), _count(spool / "quarantine")
    queue = f"{things(waiting, 'received segment')} {'waits' if waiting == 1 else 'wait'}"
    obstacle = hindrance(spool) if spool.exists() else None
    if obstacle is not None:
        sentence = unusable(spool, "received traces", OTHER_FOLDER, obstacle)
        return Check(name="spool", status="problem", found=str(sentence))
    if aside:
        found = f"{things(aside, 'segment')} could not be read, {queue} to be stored"
        advice = f"look at {spool / 'quarantine'}: what lies there is not in the store"
        return Check(name="spool", status="problem", found=found, advice=advice)
    if waiting and refused is not None:
        found = f"{queue} to be stored and inserting failed {_history(refused)}"
        advice = "put that right; a running `retrospan serve` tries again by itself"
        return Check(name="spool", status="problem", found=found, advice=advice)
    if waiting:
        advice = "a running `retrospan serve` stores them; start it if none runs"
        return Check(name="spool", status="note", found=f"{queue} to be stored", advice=advice)
    return Check(name="spool", status="ok", found="nothing waits to be stored")


def _history(trouble: Trouble) -> str:
    times = "once" if trouble.failures == 1 else f"{trouble.failures} times"
    since = f"{trouble.since.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return f"{times} since {since}, last with: {trouble.message}"


def _count(folder: Path) -> int:
    try:
        return len(os.listdir(folder))
    except OSError:
        return 0
