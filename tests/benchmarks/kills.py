"""What 200 kills -9 of receiver, owner and both lose of what was acknowledged: nothing.

Four applications send all the time while processes are killed at random moments, as
`tests/endtoend/faults_kills.py` describes. The view `spans` must hold each acknowledged span
once. Beside the longest silence after a kill of the receiver stands the start of a service that
has nothing to recover.
"""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path
from typing import Final

from tests.benchmarks.measurement import Beside, Measurement, Say, WrongAnswer, percentile
from tests.endtoend.faults_kills import KillReport, kill_again_and_again

KILLS: Final = 200
QUICK_KILLS: Final = 3
SEED: Final = 1


def run(*, quick: bool, say: Say) -> list[Measurement]:
    """Kill, let everything arrive, and compare with what was acknowledged."""
    # The exporters report every failed export, which is what is being made to happen here.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder:
        report = kill_again_and_again(Path(folder), QUICK_KILLS if quick else KILLS, SEED, say)
    for line in report.lines():
        say(line)
    if not report.account.nothing_lost:
        raise WrongAnswer(f"not stored once: {report.lines()}")
    return _figures(report)


def _figures(report: KillReport) -> list[Measurement]:
    account = report.account
    start = Beside(name="a start with nothing to recover", value=report.first_start_s)
    return [
        Measurement(
            name=f"acknowledged spans stored once after {report.kills.total()} kills",
            value=account.stored_once,
            unit="spans",
            at_least=account.acknowledged,
            beside=(Beside(name="acknowledged", value=account.acknowledged),),
        ),
        Measurement(
            name="silence after a kill of the receiver, median",
            value=percentile(report.silences_s, 50),
            unit="s",
            beside=(start,),
        ),
        Measurement(
            name="the same, longest",
            value=max(report.silences_s),
            unit="s",
            beside=(start,),
        ),
    ]
