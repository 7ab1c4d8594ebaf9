"""Kill -9 again and again under load, and count what was acknowledged and is not stored.

    uv run python -m tests.endtoend.faults_kills [--kills 20] [--seed 1]

Four applications send all the time. At random moments the owner is killed between answer and
insert (a segment is sealed, or its insert has begun), the receiver between sync and answer (an
export is under way), or both; whatever has died is started again. The moments are drawn from a
seed; what the machine does in them is its own.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal

import orjson

if not __package__:
    # Started as a file: the root of the checkout, where `tests` lies, is not searched then.
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.endtoend.faults import Account, account_of, spool_of, waiting_segments
from tests.endtoend.faults_senders import Senders
from tests.endtoend.serving import Service, wait_until

Victim = Literal["owner", "receiver", "both"]
STARTED_WITHIN_S = 60.0
"""How long a service may fail to start after a kill: its orphaned owner is ending meanwhile."""

VICTIMS: tuple[Victim, ...] = ("owner", "receiver", "both")


@dataclass(frozen=True, slots=True, kw_only=True)
class KillReport:
    """What was killed, when, and what came of it."""

    kills: Counter[Victim]
    before_insert: int
    """Kills of the owner while an answered segment was sealed and not yet inserted."""
    within_insert: int
    """Kills of the owner while an insert was under way."""
    before_answer: int
    """Kills of the receiver while an export waited for its answer."""
    starts: int
    """Starts of the service after its receiver died, failed ones included."""
    sent_again: int
    """Spans that were handed over again after a failed export."""
    first_start_s: float
    """From the first start of the service to its listening, with nothing to recover."""
    silences_s: tuple[float, ...]
    """From each kill of the receiver to the next service that listens."""
    account: Account

    def lines(self) -> list[str]:
        """The report for people."""
        account = self.account
        lost = f"{len(account.missing)} missing, {len(account.twice)} twice"
        return [
            f"{self.kills.total()} kills: "
            + ", ".join(f"{count} {victim}" for victim, count in sorted(self.kills.items())),
            f"of the owner with a sealed segment waiting {self.before_insert}, "
            f"in mid-insert {self.within_insert}; "
            f"of the receiver with an export under way {self.before_answer}",
            f"{account.acknowledged} spans acknowledged, {account.stored_once} of them stored "
            f"once and whole; {lost}, {len(account.altered)} altered",
            f"{self.sent_again} sent again, {account.rows_hidden} second rows hidden by the view; "
            f"{account.stored_unacknowledged} stored whose answer was never seen",
            f"{self.starts} starts; silent for at most {max(self.silences_s, default=0):.1f} s",
        ]


class Killings:
    """A service under load, its processes killed one after the other."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._random = Random(seed)
        self._victims = self._drawn_victims()
        self._store = f"embedded:{folder / 'data'}"
        started_at = time.monotonic()
        self._service = Service(self._store, folder / "serve.log")
        self._service.address("otlp-http")
        self._first_start_s = time.monotonic() - started_at
        self._service.address("ready")
        self._senders = Senders(self._service, seed)
        self._kills: Counter[Victim] = Counter()
        self._before_insert = self._within_insert = self._before_answer = self._starts = 0
        self._silences_s: list[float] = []

    def kill_one(self) -> Victim:
        """Kill at the next random moment, and see to it that there is a receiver again."""
        victim = next(self._victims)
        time.sleep(self._random.uniform(0, 1.5))
        if victim == "owner":
            self._kill_owner()
        else:
            self._kill_receiver(with_owner=victim == "both")
        self._kills[victim] += 1
        return victim

    def report(self) -> KillReport:
        """Let everything arrive and compare."""
        self._senders.stop()
        deadline = time.monotonic() + STARTED_WITHIN_S
        while not self._service.announces("ready"):
            assert time.monotonic() < deadline, f"no owner starts: see {self._service.log}"
            self._start_again()
        return KillReport(
            kills=self._kills,
            before_insert=self._before_insert,
            within_insert=self._within_insert,
            before_answer=self._before_answer,
            starts=self._starts,
            sent_again=self._senders.ledger.sent_again,
            first_start_s=self._first_start_s,
            silences_s=tuple(self._silences_s),
            account=account_of(self._service, self._senders.ledger),
        )

    def close(self) -> None:
        """End what is still there."""
        self._senders.stop()
        if self._service.alive:
            self._service.stop()

    def _drawn_victims(self) -> Iterator[Victim]:
        """Each as often as the others, in a random order."""
        while True:
            yield from self._random.sample(VICTIMS, len(VICTIMS))

    def _kill_owner(self) -> None:
        wait_until(self._owner_has_work, "a sealed segment and an owner")
        time.sleep(self._random.uniform(0, 0.25))
        owner = self._service.owner_pid()
        if owner is None:
            return
        self._service.kill(owner)
        self._note_insert()

    def _owner_has_work(self) -> bool:
        if not self._service.alive:
            # An owner that is killed before it was ever ready takes the service with it.
            self._start_again()
        return bool(waiting_segments(self._store, "sealed")) and (
            self._service.owner_pid() is not None
        )

    def _kill_receiver(self, *, with_owner: bool) -> None:
        wait_until(lambda: self._senders.ledger.in_flight, "an export under way")
        time.sleep(self._random.uniform(0, 0.005))
        owner = self._service.owner_pid() if with_owner else None
        pids = [self._service.receiver_pid, *([owner] if owner else [])]
        self._random.shuffle(pids)
        self._before_answer += self._senders.ledger.in_flight > 0
        killed_at = time.monotonic()
        self._service.kill(*pids)
        if owner:
            self._note_insert()
        self._start_again()
        self._silences_s.append(time.monotonic() - killed_at)

    def _start_again(self) -> None:
        """As a process manager does: until one listens."""
        deadline = time.monotonic() + STARTED_WITHIN_S
        while True:
            self._starts += 1
            self._service = self._service.again()
            if self._service.announces("otlp-http"):
                return
            assert time.monotonic() < deadline, f"no service starts: see {self._service.log}"

    def _note_insert(self) -> None:
        self._before_insert += bool(waiting_segments(self._store, "sealed"))
        self._within_insert += self._insert_was_under_way()

    def _insert_was_under_way(self) -> bool:
        try:
            return bool(orjson.loads((spool_of(self._store) / "attempts.json").read_bytes()))
        except (OSError, ValueError):
            # There is none yet, or the kill met the writing of it, before or after an insert.
            return False


def kill_again_and_again(
    folder: Path, kills: int, seed: int, say: Callable[[str], None] = lambda line: None
) -> KillReport:
    """Kill that often under load, on a store in the folder."""
    killings = Killings(folder, seed)
    try:
        for number in range(1, kills + 1):
            say(f"kill {number} of {kills}: {killings.kill_one()}")
        return killings.report()
    finally:
        killings.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    # The exporters report every failed export, which is what is being made to happen here.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder:
        report = kill_again_and_again(Path(folder), options.kills, options.seed, print)
    print(*report.lines(), sep="\n")


if __name__ == "__main__":
    main()
