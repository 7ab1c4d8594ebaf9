"""Putting right what ClickHouse's decoder cannot store as it stands.

Nothing here is an error of the sender's that would justify losing the span, so the value is
changed as little as possible, the change is counted, and the sender is told.
"""

from __future__ import annotations

import base64
import json
import math
from collections import Counter
from typing import Protocol

from google.protobuf.internal.containers import RepeatedCompositeFieldContainer
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from retrospan_collector.otlp.refusals import TooLarge

MAX_NESTING = 3
"""Lists and maps inside one another, as many as the schema of the insert describes."""

LATEST_NS = 2**63 - 1
"""2262-04-11, where a DateTime64(9) ends."""

MAX_ATTRIBUTES = 1_000_000
"""Attributes and nested values of one request, counted before they are walked."""

_LATE = "times beyond 2262-04-11 set to that day"
_DEEP = f"values nested deeper than {MAX_NESTING} stored as JSON text"
_DUPLICATE = "attributes dropped for a later one of the same key"
_ZERO_PARENT = "parent ids of zeros removed"
_BROKEN_LINK = "links with broken ids dropped"

_NO_SPAN_ID = bytes(8)

_Attributes = RepeatedCompositeFieldContainer[KeyValue]


class _Timed(Protocol):
    time_unix_nano: int


class Mender:
    """Mends the messages of one request in place and counts each kind of change."""

    def __init__(self) -> None:
        self.changes: Counter[str] = Counter()
        self._left = MAX_ATTRIBUTES

    def span(self, span: Span) -> None:
        """Everything in a span that can need mending."""
        if span.start_time_unix_nano > LATEST_NS:
            span.start_time_unix_nano = LATEST_NS
            self.changes[_LATE] += 1
        if span.end_time_unix_nano > LATEST_NS:
            span.end_time_unix_nano = LATEST_NS
            self.changes[_LATE] += 1
        if span.parent_span_id == _NO_SPAN_ID:
            span.parent_span_id = b""
            self.changes[_ZERO_PARENT] += 1
        self.attributes(span.attributes)
        for event in span.events:
            self._time(event)
            self.attributes(event.attributes)
        if span.links:
            self._links(span)

    def attributes(self, attributes: _Attributes) -> None:
        """Unique keys, the last value winning, and no value nested deeper than the schema."""
        self.count(len(attributes))
        keys = set()
        for attribute in attributes:
            keys.add(attribute.key)
            value = attribute.value
            kind = value.WhichOneof("value")
            if kind == "array_value" or kind == "kvlist_value":
                self._value(value, 1)
        if len(keys) < len(attributes):
            _duplicate_free(attributes, self.changes)

    def count(self, size: int) -> None:
        """Count values that are about to be walked; too many end the request."""
        self._left -= size
        if self._left < 0:
            raise TooLarge(
                f"the request holds more than {MAX_ATTRIBUTES} spans, attributes and nested "
                "values: send it in smaller batches"
            )

    def _value(self, value: AnyValue, level: int) -> None:
        if level > MAX_NESTING:
            text = json.dumps(_plain(value), ensure_ascii=False)
            value.Clear()
            value.string_value = text
            self.changes[_DEEP] += 1
        elif value.HasField("kvlist_value"):
            self._map(value.kvlist_value.values, level)
        elif value.HasField("array_value"):
            self.count(len(value.array_value.values))
            for item in value.array_value.values:
                if item.WhichOneof("value") in ("array_value", "kvlist_value"):
                    self._value(item, level + 1)

    def _map(self, entries: _Attributes, level: int) -> None:
        self.count(len(entries))
        keys = set()
        for entry in entries:
            keys.add(entry.key)
            if entry.value.WhichOneof("value") in ("array_value", "kvlist_value"):
                self._value(entry.value, level + 1)
        if len(keys) < len(entries):
            _duplicate_free(entries, self.changes)

    def _time(self, event: _Timed) -> None:
        if event.time_unix_nano > LATEST_NS:
            event.time_unix_nano = LATEST_NS
            self.changes[_LATE] += 1

    def _links(self, span: Span) -> None:
        self.count(len(span.links))
        kept = []
        for link in span.links:
            self.attributes(link.attributes)
            if len(link.trace_id) == 16 and len(link.span_id) == 8:
                kept.append(link)
        if len(kept) < len(span.links):
            self.changes[_BROKEN_LINK] += len(span.links) - len(kept)
            span.dropped_links_count += len(span.links) - len(kept)
            del span.links[:]
            span.links.extend(kept)


def _duplicate_free(attributes: _Attributes, changes: Counter[str]) -> None:
    last = {attribute.key: attribute for attribute in attributes}
    changes[_DUPLICATE] += len(attributes) - len(last)
    del attributes[:]
    attributes.extend(last.values())


def _plain(value: AnyValue) -> object:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_plain(item) for item in value.array_value.values]
    if kind == "kvlist_value":
        return {entry.key: _plain(entry.value) for entry in value.kvlist_value.values}
    if kind == "bytes_value":
        return base64.b64encode(value.bytes_value).decode("ascii")
    if kind == "double_value" and not math.isfinite(value.double_value):
        return str(value.double_value)
    return getattr(value, kind) if kind is not None else None
