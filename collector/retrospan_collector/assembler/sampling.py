"""How many requests one recorded request stands for, where the application sampled its traces."""

from __future__ import annotations

import math
import re
from typing import Final

from retrospan_collector.assembler.span import Span

_THRESHOLD: Final = re.compile(r"(?:^|,)\s*ot=(?:[^,]*;)?th:([0-9a-f]{1,14})(?:[;,]|$)")
_SAMPLE_RATE: Final = "SampleRate"


def adjusted_count(span: Span) -> float:
    """1/p for the probability p with which the span's trace was kept; 1 when none is stated.

    OpenTelemetry's trace state states the rejection threshold T of 2^56 (`ot=th:…`, trailing
    zeros cut), so p = 1 − T/2^56; the attribute `SampleRate` states 1/p itself.
    """
    if span.trace_state and (match := _THRESHOLD.search(span.trace_state)):
        threshold = int(match[1].ljust(14, "0"), 16)
        return 2**56 / (2**56 - threshold)
    rate = span.attributes.get(_SAMPLE_RATE)
    if rate is None:
        return 1.0
    try:
        count = float(rate)
    except ValueError:
        return 1.0
    return count if math.isfinite(count) and count >= 1 else 1.0
