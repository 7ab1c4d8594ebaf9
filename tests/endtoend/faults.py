"""What the store has of what was acknowledged."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from retrospan_collector.clickhouse.connection import open_store
from tests.endtoend.faults_senders import Ledger, SpanKey
from tests.endtoend.serving import Service, wait_until

_STORED = """
SELECT TraceId, SpanId, count() AS Times, max(lengthUTF8(SpanAttributes['text'])) AS TextSize
FROM spans
GROUP BY TraceId, SpanId
"""

STORED_WITHIN_S = 120.0
"""How long the last acknowledged span may take into the store, on a busy machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The ledger beside the view `spans`."""

    acknowledged: int
    stored_once: int
    """Acknowledged spans that stand in the view once, with the text they were sent with."""
    missing: tuple[SpanKey, ...]
    """Acknowledged and not stored."""
    twice: tuple[SpanKey, ...]
    """Stored more than once, acknowledged or not."""
    altered: tuple[SpanKey, ...]
    """Stored with another text."""
    stored_unacknowledged: int
    """Stored although their senders never got an answer: the receiver died after its sync."""
    rows_hidden: int
    """Second rows of a span that was stored twice, which the view leaves out."""

    @property
    def nothing_lost(self) -> bool:
        """Whether the promise was kept."""
        return not self.missing and not self.twice and not self.altered


def spool_of(store: str) -> Path:
    """The spool of an embedded store."""
    return Path(store.removeprefix("embedded:")) / "spool"


def waiting_segments(store: str, folder: str) -> list[Path]:
    """The segments in a folder of the spool."""
    return list((spool_of(store) / folder).glob("*.traces"))


def account_of(service: Service, ledger: Ledger) -> Account:
    """Wait until the spool is empty, and compare; the senders must have ended."""
    service.address("ready")

    def spool_is_empty() -> bool:
        return not any(waiting_segments(service.store, folder) for folder in ("open", "sealed"))

    wait_until(spool_is_empty, "the spool to be inserted", STORED_WITHIN_S)
    with open_store(service.store) as store:
        rows = store.query(_STORED)
        (raw,) = store.query("SELECT count() AS Rows FROM otel_traces")
    stored = {(row["TraceId"], row["SpanId"]): row for row in rows}
    acknowledged = ledger.acknowledged
    return Account(
        acknowledged=len(acknowledged),
        stored_once=sum(
            key in stored and stored[key]["Times"] == 1 and stored[key]["TextSize"] == size
            for key, size in acknowledged.items()
        ),
        missing=tuple(key for key in acknowledged if key not in stored),
        twice=tuple(key for key, row in stored.items() if row["Times"] > 1),
        altered=tuple(
            key
            for key, size in acknowledged.items()
            if key in stored and stored[key]["TextSize"] != size
        ),
        stored_unacknowledged=sum(key not in acknowledged for key in stored),
        rows_hidden=raw["Rows"] - sum(row["Times"] for row in rows),
    )
