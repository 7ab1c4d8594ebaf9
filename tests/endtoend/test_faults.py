"""The receiver without its owner: half a minute of nobody inserting is nobody's loss."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import pytest

from tests.endtoend.faults import account_of
from tests.endtoend.faults_senders import Senders
from tests.endtoend.serving import Service, serving, wait_until

OUTAGE_S = 30.0
ANSWERED_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A service and the applications that send to it."""

    service: Service
    senders: Senders

    @property
    def acknowledged(self) -> int:
        return len(self.senders.ledger.acknowledged)

    def is_answered(self) -> bool:
        return self.acknowledged > 20

    def owner(self) -> int:
        owner = self.service.owner_pid()
        assert owner is not None
        return owner


@contextmanager
def loaded(folder: Path) -> Iterator[Loaded]:
    folder.mkdir()
    with serving(f"embedded:{folder / 'data'}", folder / "serve.log") as service:
        senders = Senders(service, seed=1)
        try:
            yield Loaded(service=service, senders=senders)
        finally:
            senders.stop()


def keep_down(service: Service) -> None:
    owner = service.owner_pid()
    if owner is not None:
        service.kill(owner)


@pytest.mark.timeout(300)
def test_a_receiver_acknowledges_for_half_a_minute_without_an_owner_and_all_of_it_arrives(
    tmp_path: Path,
) -> None:
    with ExitStack() as stack:
        stopped = stack.enter_context(loaded(tmp_path / "stopped"))
        killed = stack.enter_context(loaded(tmp_path / "killed"))
        services = (stopped, killed)
        for each in services:
            wait_until(each.is_answered, "the first answers")

        frozen = stopped.owner()
        os.kill(frozen, signal.SIGSTOP)
        # A process that is stopped ends with SIGKILL alone: it must not outlive a failing test.
        stack.callback(os.kill, frozen, signal.SIGCONT)
        until = monotonic() + OUTAGE_S
        before = [each.acknowledged for each in services]
        while monotonic() < until:
            keep_down(killed.service)
            now = [each.acknowledged for each in services]

            def all_answered(now: list[int] = now) -> bool:
                keep_down(killed.service)
                return all(e.acknowledged > n for e, n in zip(services, now, strict=True))

            wait_until(all_answered, "an answer from both receivers", ANSWERED_WITHIN_S)
        during = [e.acknowledged - n for e, n in zip(services, before, strict=True)]
        os.kill(frozen, signal.SIGCONT)

        for each, count in zip(services, during, strict=True):
            assert count > 100, "the receiver answered all the time"
            each.senders.stop()
            account = account_of(each.service, each.senders.ledger)
            assert account.nothing_lost
            assert account.stored_once == account.acknowledged == each.acknowledged
