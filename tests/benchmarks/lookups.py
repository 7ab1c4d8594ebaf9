"""Times of `trace` and `traces` at ten million stored requests, in process, without start-up.

The look-ups alternate with what stands beside them, so that a disturbance meets all alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from time import perf_counter
from typing import Final

from retrospan_collector.clickhouse.connection import Store
from retrospan_evaluator.traces.reader import TraceReader
from retrospan_evaluator.traces.statements import statement
from tests.benchmarks.measurement import Beside, Measurement, Say, WrongAnswer, percentile
from tests.benchmarks.store import (
    TEN_MILLION,
    Contents,
    StoredRequests,
    stored_requests,
    trace_id_of,
)

QUICK: Final = Contents(requests=2_000, traced=50, passages=500, window=timedelta(days=28))
NEWEST: Final = 25
WEEK: Final = timedelta(days=7)
"""How far back `traces` looks when it is not told."""

_ROUNDS: Final = 40
_NO_WINDOW_EVERY: Final = 20
"""Rounds from one list without a window to the next: it takes seconds."""

_LOOK_UPS_A_ROUND: Final = 10
_WITHOUT_KEY: Final = """
SELECT * FROM requests PREWHERE TraceId = {trace_id:String} ORDER BY Version DESC LIMIT 1
"""
_WITHOUT_WINDOW: Final = """
SELECT TraceId, RootSpanId, ServiceName, Timestamp, Question, Answer
FROM requests FINAL ORDER BY Timestamp DESC LIMIT {rows:UInt32}
"""
_FIXED_SCAN: Final = "SELECT sum(sipHash64(number)) AS total FROM numbers(5000000)"


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds that each kind of look-up took."""

    trace: list[float] = field(default_factory=list)
    trace_without_key: list[float] = field(default_factory=list)
    newest: list[float] = field(default_factory=list)
    newest_without_window: list[float] = field(default_factory=list)
    scan: list[float] = field(default_factory=list)


def run(*, quick: bool, say: Say) -> list[Measurement]:
    """Look up random requests by trace id, and list the newest."""
    with stored_requests(QUICK if quick else TEN_MILLION, say) as stored:
        _measure(stored, Random(0), rounds=1)  # loads indexes and the driver
        times = _measure(stored, Random(1), rounds=2 if quick else _ROUNDS)
    scan = Beside(name="fixed engine scan, p50", value=_ms(times.scan, 50))
    return [
        *_figures("trace", times.trace, 100, "without SampleKey", times.trace_without_key, scan),
        *_figures(
            f"newest {NEWEST}",
            times.newest,
            300,
            "texts and no window",
            times.newest_without_window,
            scan,
        ),
    ]


def _measure(stored: StoredRequests, random: Random, rounds: int) -> Times:
    reader, store = TraceReader(stored.store), stored.store
    times = Times()
    for number in range(rounds):
        for _ in range(_LOOK_UPS_A_ROUND):
            times.trace.append(_look_up(reader, _any_trace(stored, random)))
        times.trace_without_key.append(_look_up_without_key(store, _any_trace(stored, random)))
        # Never the same moment twice: the engine remembers which granules a condition matched.
        since = stored.newest - WEEK - timedelta(microseconds=random.randrange(1_000_000))
        times.newest.append(_list(reader, since))
        if number % _NO_WINDOW_EVERY == 0:
            times.newest_without_window.append(_query(store, _WITHOUT_WINDOW, {"rows": NEWEST}))
        times.scan.append(_query(store, _FIXED_SCAN, {}))
    return times


def _any_trace(stored: StoredRequests, random: Random) -> str:
    return trace_id_of(random.randrange(stored.contents.requests))


def _look_up(reader: TraceReader, trace_id: str) -> float:
    began = perf_counter()
    request = reader.request(trace_id)
    took = perf_counter() - began
    if not request.passages or any(passage.text is None for passage in request.passages):
        raise WrongAnswer(f"trace {trace_id} came back without the texts of its passages")
    return took


def _look_up_without_key(store: Store, trace_id: str) -> float:
    """The rows and texts of a trace that is looked for by its id alone."""
    began = perf_counter()
    (row,) = store.query(_WITHOUT_KEY, {"trace_id": trace_id})
    hashes = sorted({digest.hex() for digest in row["PassageHash"]})
    store.query(statement("texts_by_hash"), {"hashes": hashes})
    return perf_counter() - began


def _list(reader: TraceReader, since: datetime) -> float:
    began = perf_counter()
    found = reader.latest(NEWEST, since)
    took = perf_counter() - began
    expected = {trace_id_of(number) for number in range(NEWEST)}
    if {summary.trace_id for summary in found} != expected:
        raise WrongAnswer(f"the list of {len(found)} requests is not that of the newest {NEWEST}")
    return took


def _query(store: Store, statement: str, parameters: Mapping[str, object]) -> float:
    began = perf_counter()
    rows = store.query(statement, parameters)
    took = perf_counter() - began
    if not rows:
        raise WrongAnswer(f"no row from {statement}")
    return took


def _figures(
    name: str,
    took: Sequence[float],
    bar_ms: float,
    other: str,
    other_took: Sequence[float],
    scan: Beside,
) -> list[Measurement]:
    beside = (Beside(name=f"{other}, p50", value=_ms(other_took, 50)), scan)
    at_95 = (Beside(name=f"{other}, p95", value=_ms(other_took, 95)), scan)
    return [
        Measurement(name=f"{name}, p50", value=_ms(took, 50), unit="ms", beside=beside),
        Measurement(
            name=f"{name}, p95", value=_ms(took, 95), unit="ms", at_most=bar_ms, beside=at_95
        ),
    ]


def _ms(seconds: Sequence[float], percent: float) -> float:
    return percentile(seconds, percent) * 1000
