"""The SDK's exporter for gRPC, given what was encoded faster."""

from collections.abc import Sequence

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan

from retrospan._wire import encoded


class GrpcExporter(OTLPSpanExporter):
    """Encodes by `_wire`; a version of the SDK that does not ask for it encodes by itself."""

    def _translate_data(self, data: Sequence[ReadableSpan]) -> ExportTraceServiceRequest:
        try:
            return ExportTraceServiceRequest.FromString(encoded(data))
        except Exception:  # what ours cannot write, the SDK's encoder may
            return super()._translate_data(data)
