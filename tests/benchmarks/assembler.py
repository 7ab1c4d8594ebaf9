"""How fast an hour's backlog of a busy service becomes requests: spans in our own dialect.

A busy service is taken to answer 100 requests a second (360,000 an hour, 8.6 million a day),
each of four spans and 10 to 20 passages with their texts. The assembler starts on a store that
holds the hour and has assembled nothing of it; its look-backs go on meanwhile as they do in life.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from time import perf_counter
from typing import Final

import orjson

from retrospan_collector.assembler.loop import Assembler
from retrospan_collector.clickhouse.connection import Store
from tests.benchmarks.measurement import Beside, Measurement, Say, Spent, Stopwatch, WrongAnswer
from tests.benchmarks.store import Contents, StoredRequests, stored_requests

HOUR: Final = timedelta(hours=1)
BACKLOG: Final = Contents(requests=0, traced=360_000, passages=100_000, window=HOUR)
QUICK: Final = Contents(requests=0, traced=300, passages=200, window=HOUR)

_TRACES_PER_READ: Final = 1_000
_READ_ALONE: Final = 10_000
"""Traces whose spans are only read and parsed, once before and once after the backlog."""

_FORGET: Final = tuple(
    f"TRUNCATE TABLE {table}"
    for table in ("requests", "assembled", "assembler_progress", "passage_texts", "touched")
)
_TOUCH: Final = """
INSERT INTO touched (Bucket, SampleKey, TraceId, At)
SELECT toStartOfMinute(now('UTC')), SampleKey, TraceId, max(IngestedAt)
FROM otel_traces GROUP BY SampleKey, TraceId
"""
_KEYS: Final = "SELECT SampleKey FROM touched ORDER BY SampleKey LIMIT {traces:UInt32}"
_SPANS: Final = """
SELECT TraceId, SpanAttributes FROM otel_traces WHERE SampleKey IN {sample_keys:Array(UInt64)}
"""


def run(*, quick: bool, say: Say) -> list[Measurement]:
    """Assemble the backlog; read and parse some of the same spans, and nothing else, beside it."""
    with stored_requests(QUICK if quick else BACKLOG, say) as stored:
        for statement in (*_FORGET, _TOUCH):
            stored.store.command(statement)
        before = _read_alone(stored.store)
        watch = Stopwatch()
        requests = _assemble(stored, say)
        assembled = watch.spent()
        if requests != stored.contents.traced:
            raise WrongAnswer(f"{requests} of {stored.contents.traced} were assembled")
        read = before + _read_alone(stored.store)
    return _figures(requests, assembled, 2 * min(_READ_ALONE, requests), read)


def _figures(requests: int, assembled: Spent, requests_read: int, read: Spent) -> list[Measurement]:
    def rate(name: str, value: float, beside: float, bar: float | None = None) -> Measurement:
        alone = Beside(name="reading and parsing alone", value=beside)
        return Measurement(name=name, value=value, unit="/s", at_least=bar, beside=(alone,))

    backlog_s = HOUR.total_seconds()
    return [
        rate(
            "requests a second of the thread",
            requests / assembled.thread_s,
            requests_read / read.thread_s,
            bar=2000,
        ),
        rate(
            "requests a second of all threads",
            requests / assembled.process_s,
            requests_read / read.process_s,
        ),
        rate(
            "requests a second by the clock",
            requests / assembled.wall_s,
            requests_read / read.wall_s,
        ),
        Measurement(
            name="backlog of an hour, times real time",
            value=backlog_s / assembled.wall_s,
            unit="×",
            at_least=5,
        ),
    ]


def _assemble(stored: StoredRequests, say: Say) -> int:
    """Rounds until nothing waits, as one that starts six minutes after the last request."""
    assembler = Assembler(stored.store)
    began, requests = perf_counter(), 0
    while True:
        elapsed = timedelta(seconds=perf_counter() - began)
        report = assembler.round(stored.newest + timedelta(minutes=6) + elapsed)
        requests += report.requests
        say(f"assembled {requests} of {stored.contents.traced} in {elapsed.seconds} s")
        if not report.behind:
            return requests


def _read_alone(store: Store) -> Spent:
    """Read spans in the batches and the order the assembler reads them in, and parse their JSON."""
    keys = [row["SampleKey"] for row in store.query(_KEYS, {"traces": _READ_ALONE})]
    watch = Stopwatch()
    for start in range(0, len(keys), _TRACES_PER_READ):
        rows = store.query(_SPANS, {"sample_keys": keys[start : start + _TRACES_PER_READ]})
        _parse([text for row in rows for text in row["SpanAttributes"].values()])
    return watch.spent()


def _parse(texts: Sequence[str]) -> None:
    for text in texts:
        if text.startswith(("[", "{")):
            orjson.loads(text)
