"""Times of `trace` and `traces` at ten million stored requests, in process, without start-up.

The look-ups alternate with what stands beside them, so that a disturbance meets all alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Final

from retrospan_collector.clickhouse.connection import Store
from retrospan_evaluator.traces.reader import TraceReader
from retrospan_evaluator.traces.statements import statement
from tests.benchmarks.measurement import (
    Beside,
    Measurement,
    Say,
    Spent,
    Stopwatch,
    WrongAnswer,
    percentile,
)
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
    """How long each kind of look-up took."""

    trace: list[Spent] = field(default_factory=list)
    trace_without_key: list[Spent] = field(default_factory=list)
    newest: list[Spent] = field(default_factory=list)
    newest_without_window: list[Spent] = field(default_factory=list)
    scan: list[Spent] = field(default_factory=list)


def run(*, quick: bool, say: Say) -> list[Measurement]:
    """Look up random requests by trace id, and list the newest."""
    with stored_requests(QUICK if quick else TEN_MILLION, say) as stored:
        _measure(stored, Random(0), rounds=1)  # loads indexes and the driver
        times = _measure(stored, Random(1), rounds=2 if quick else _ROUNDS)
    return [
        *_figures("trace", times.trace, 100, "without SampleKey", times.trace_without_key, times),
        *_figures(
            f"newest {NEWEST}",
            times.newest,
            300,
            "texts and no window",
            times.newest_without_window,
            times,
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


def _look_up(reader: TraceReader, trace_id: str) -> Spent:
    watch = Stopwatch()
    request = reader.request(trace_id)
    took = watch.spent()
    if not request.passages or any(passage.text is None for passage in request.passages):
        raise WrongAnswer(f"trace {trace_id} came back without the texts of its passages")
    return took


def _look_up_without_key(store: Store, trace_id: str) -> Spent:
    """The rows and texts of a trace that is looked for by its id alone."""
    watch = Stopwatch()
    (row,) = store.query(_WITHOUT_KEY, {"trace_id": trace_id})
    hashes = sorted({digest.hex() for digest in row["PassageHash"]})
    store.query(statement("texts_by_hash"), {"hashes": hashes})
    return watch.spent()


def _list(reader: TraceReader, since: datetime) -> Spent:
    watch = Stopwatch()
    found = reader.latest(NEWEST, since)
    took = watch.spent()
    expected = {trace_id_of(number) for number in range(NEWEST)}
    if {summary.trace_id for summary in found} != expected:
        raise WrongAnswer(f"the list of {len(found)} requests is not that of the newest {NEWEST}")
    return took


def _query(store: Store, statement: str, parameters: Mapping[str, object]) -> Spent:
    watch = Stopwatch()
    rows = store.query(statement, parameters)
    took = watch.spent()
    if not rows:
        raise WrongAnswer(f"no row from {statement}")
    return took


def _figures(
    name: str,
    took: Sequence[Spent],
    bar_ms: float,
    other: str,
    other_took: Sequence[Spent],
    times: Times,
) -> list[Measurement]:
    def figure(what: str, ms: Callable[[Sequence[Spent]], float], bar: float | None) -> Measurement:
        return Measurement(
            name=f"{name}, {what}",
            value=ms(took),
            unit="ms",
            at_most=bar,
            beside=(
                Beside(name=other, value=ms(other_took)),
                Beside(name="fixed engine scan", value=ms(times.scan)),
            ),
        )

    return [
        figure("p50", lambda spent: _ms([one.wall_s for one in spent], 50), None),
        figure("p95", lambda spent: _ms([one.wall_s for one in spent], 95), bar_ms),
        figure("processor p50", lambda spent: _ms([one.process_s for one in spent], 50), None),
    ]


def _ms(seconds: Sequence[float], percent: float) -> float:
    return percentile(seconds, percent) * 1000
