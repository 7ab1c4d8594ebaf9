"""What a command cost: its wall time by part, and the processor time of each process.

The collector's share is defined two ways, because neither tells the whole. Of the processor time,
it is what receiver and owner used of all that the command and they used (queries of the command
that the owner answered included). Of the wall time, it is an upper bound: everything between the
system's answers and after the last one, so that sending, storing, assembling, reading back,
scoring and storing the scores are all counted.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from retrospan_collector.clickhouse.connection import open_store
from tests.endtoend.serving import Service, cpu_s

_TIMES = """
SELECT
    count() AS requests,
    toFloat64(min(Timestamp)) AS first,
    toFloat64(max(Timestamp)) + argMax(DurationNs, Timestamp) / 1e9 AS last,
    sum(DurationNs) / 1e9 AS answering,
    toFloat64(max(AssembledAt)) AS assembling
FROM requests FINAL
WHERE {where}
"""
_OF_A_RUN = "RunId = {id:String}"
_OF_A_DIAGNOSIS = """RunId IN (
    SELECT concat('replay:', ReplayId) FROM diagnoses WHERE DiagnosisId = {id:String}
)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """One command's cost; all times in seconds."""

    requests: int
    wall: float
    """The command from start to end."""
    starting: float
    """From the command's start to its first request."""
    answering: float
    """Inside the system's own calls, recording included."""
    between: float
    """Between the system's calls: mostly sending."""
    until_assembly: float
    """From the last answer to the start of the last assembly round."""
    after: float
    """From the last answer to the command's end."""
    command_cpu: float
    receiver_cpu: float
    owner_cpu: float

    @property
    def collector_cpu_share(self) -> float:
        """Receiver and owner over all processes."""
        collector = self.receiver_cpu + self.owner_cpu
        return collector / (collector + self.command_cpu)

    @property
    def waited_share(self) -> float:
        """Wall time in which no answer was being made, start-up aside: an upper bound."""
        return (self.between + self.after) / self.wall

    def lines(self) -> list[str]:
        """The figures for people."""
        return [
            f"wall {self.wall:.1f} s for {self.requests} requests: start-up {self.starting:.1f}, "
            f"in the system {self.answering:.1f}, between its calls {self.between:.1f}, "
            f"after the last answer {self.after:.1f} "
            f"(the last assembly round began {self.until_assembly:.1f} s after it)",
            f"processor {self.command_cpu:.1f} s command, {self.receiver_cpu:.1f} s receiver, "
            f"{self.owner_cpu:.1f} s owner",
            f"the collector's share: {self.collector_cpu_share:.0%} of the processor time, at most "
            f"{self.waited_share:.0%} of the wall time",
        ]


def cost_of_run(service: Service, command: Callable[[], dict[str, Any]]) -> tuple[Any, Cost]:
    """What `retrospan run --json` printed, and what it cost."""
    return _measured(service, command, "run_id", _OF_A_RUN)


def cost_of_diagnosis(service: Service, command: Callable[[], dict[str, Any]]) -> tuple[Any, Cost]:
    """What `retrospan diagnose --json` printed, and what it cost."""
    return _measured(service, command, "diagnosis_id", _OF_A_DIAGNOSIS)


def _measured(
    service: Service, command: Callable[[], dict[str, Any]], key: str, where: str
) -> tuple[Any, Cost]:
    owner = service.owner_pid()
    assert owner is not None, "the service has no owner"
    before = (_children_cpu_s(), cpu_s(service.receiver_pid), cpu_s(owner))
    started = time.time()
    printed = command()
    ended = time.time()
    after = (_children_cpu_s(), cpu_s(service.receiver_pid), cpu_s(owner))
    used = [late - early for early, late in zip(before, after, strict=True)]
    with open_store(service.store) as store:
        (times,) = store.query(_TIMES.replace("{where}", where), {"id": printed[key]})
    return printed, Cost(
        requests=times["requests"],
        wall=ended - started,
        starting=times["first"] - started,
        answering=times["answering"],
        between=times["last"] - times["first"] - times["answering"],
        until_assembly=times["assembling"] - times["last"],
        after=ended - times["last"],
        command_cpu=used[0],
        receiver_cpu=used[1],
        owner_cpu=used[2],
    )


def _children_cpu_s() -> float:
    """Of children that have ended: the commands, and not yet the service."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
