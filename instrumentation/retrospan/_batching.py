"""Divide what is exported by its size, so that one large request never costs its neighbours.

The SDK counts spans: 512 of them in one export, of any size. A receiver counts bytes, and refuses
the whole export for one span too many.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from retrospan._guard import note_once

MAX_BATCH_BYTES: Final = 3_500_000
"""Below the 4 MiB that gRPC servers take; a larger span is sent alone."""

_SPAN_BYTES: Final = 160
"""Ids, times and message headers of one span."""

_VALUE_BYTES: Final = 12
"""A number, or the headers of a text."""


class SizedExporter(SpanExporter):
    """Hands an exporter its spans in parts of a bounded size."""

    def __init__(self, exporter: SpanExporter, max_batch_bytes: int = MAX_BATCH_BYTES) -> None:
        self._exporter = exporter
        self._max_batch_bytes = max_batch_bytes

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Export every part, whatever becomes of the others."""
        results = [self._part(part) for part in divided(spans, self._max_batch_bytes)]
        failed = any(result is not SpanExportResult.SUCCESS for result in results)
        return SpanExportResult.FAILURE if failed else SpanExportResult.SUCCESS

    def _part(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        try:
            return self._exporter.export(spans)
        except (TypeError, ValueError) as error:
            # One span that cannot be encoded, such as one of the application's with half a
            # character in its name: the others are not to go with it.
            if len(spans) == 1:
                note_once(
                    f"encode a span: {type(error).__name__}",
                    f"a span could not be encoded and is lost ({type(error).__name__}); the spans"
                    " beside it are sent",
                )
                return SpanExportResult.FAILURE
            middle = len(spans) // 2
            results = [self._part(spans[:middle]), self._part(spans[middle:])]
            failed = any(result is not SpanExportResult.SUCCESS for result in results)
            return SpanExportResult.FAILURE if failed else SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Stop the exporter."""
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Have the exporter send what it holds."""
        return self._exporter.force_flush(timeout_millis)


def divided(spans: Sequence[ReadableSpan], max_bytes: int) -> Iterator[Sequence[ReadableSpan]]:
    """Yield the spans in parts, in their order; a span above the limit is a part of its own."""
    part: list[ReadableSpan] = []
    filled = 0
    for span in spans:
        size = span_bytes(span)
        if part and filled + size > max_bytes:
            yield part
            part, filled = [], 0
        part.append(span)
        filled += size
    if part:
        yield part


def span_bytes(span: ReadableSpan) -> int:
    """Return about how many bytes a span has on the wire."""
    size = _SPAN_BYTES + _text_bytes(span.name) + _mapping_bytes(span.attributes)
    size += _text_bytes(span.status.description or "")
    for event in span.events:
        size += _VALUE_BYTES + _text_bytes(event.name) + _mapping_bytes(event.attributes)
    for link in span.links:
        size += _SPAN_BYTES + _mapping_bytes(link.attributes)
    return size


def _mapping_bytes(attributes: Mapping[str, object] | None) -> int:
    if not attributes:
        return 0
    return sum(_VALUE_BYTES + len(name) + _value_bytes(value) for name, value in attributes.items())


def _value_bytes(value: object) -> int:
    if isinstance(value, str):
        return _text_bytes(value)
    if isinstance(value, bytes):
        return len(value)
    if isinstance(value, Mapping):
        return _mapping_bytes(value)
    if isinstance(value, Sequence):
        return _array_bytes(value)
    return _VALUE_BYTES


def _array_bytes(values: Sequence[object]) -> int:
    headers = _VALUE_BYTES * len(values)
    kinds = set(map(type, values))
    if kinds <= {int, float, bool}:
        return headers
    if kinds == {str}:
        return headers + _text_bytes("".join(values))  # type: ignore[arg-type]  # as just checked
    return headers + sum(map(_value_bytes, values))


def _text_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
