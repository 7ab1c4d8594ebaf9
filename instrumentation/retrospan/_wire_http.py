"""The SDK's exporter for HTTP, given what was encoded faster."""

import os
from collections.abc import Sequence

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult

from retrospan._wire import encoded

_OWN_METRICS = "OTEL_PYTHON_SDK_INTERNAL_METRICS_ENABLED"


class HttpExporter(OTLPSpanExporter):
    """Encodes by `_wire` where the SDK has a place for it.

    It has none by name: versions around the floor call `_serialize_spans`, the newest ones hand
    bytes to `_client.export`, those between encode within one method. A version with neither
    encodes by itself, as does one that is to measure its exports.
    """

    def _serialize_spans(self, spans: Sequence[ReadableSpan]) -> bytes:
        return encoded(spans)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send the spans."""
        if os.environ.get(_OWN_METRICS):
            return super().export(spans)
        try:
            stopped, send, body = self._shutdown, self._client.export, encoded(spans)
            sent = None if stopped else send(body).success
        except Exception:  # another version's private parts: sent twice is better than not at all
            sent = None
        if sent is None:
            return super().export(spans)
        return SpanExportResult.SUCCESS if sent else SpanExportResult.FAILURE
