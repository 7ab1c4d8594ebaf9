"""OTLP over gRPC, call by call."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import grpc
import pytest
from google.rpc import error_details_pb2  # type: ignore[import-untyped]  # ships none
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # ships none
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from retrospan_collector.otlp.limits import Limits
from retrospan_collector.receiver import Receiver
from retrospan_collector.spool import SpoolDirectory

ReadSpool = Callable[[], list[ExportTraceServiceRequest]]
MakeRequest = Callable[..., ExportTraceServiceRequest]
Export = Callable[..., bytes]

METHOD = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


@pytest.fixture
def channel(receiver: Receiver) -> Iterator[grpc.Channel]:
    # The sender's own limits are lifted: the receiver's are what is looked at.
    options = [("grpc.max_send_message_length", -1)]
    with grpc.insecure_channel(f"127.0.0.1:{receiver.ports.grpc}", options) as opened:
        yield opened


def _export(channel: grpc.Channel, payload: bytes) -> bytes:
    return bytes(channel.unary_unary(METHOD, bytes, bytes)(payload, timeout=20))


def _refusal(
    channel: grpc.Channel, payload: bytes, compression: grpc.Compression | None = None
) -> grpc.Call:
    future = channel.unary_unary(METHOD, bytes, bytes).future(
        payload, timeout=20, compression=compression
    )
    return _as_call(future.exception())


def _as_call(error: object) -> grpc.Call:
    # A failed call's error is the call as well; the two classes cannot be declared as one.
    assert isinstance(error, grpc.Call)
    return error


def test_an_accepted_request_is_answered_with_an_empty_message_and_stored(
    spool: SpoolDirectory, sealed_requests: ReadSpool, make_request: MakeRequest
) -> None:
    request = make_request(spans=3)
    with Receiver(spool) as receiver:
        with grpc.insecure_channel(f"127.0.0.1:{receiver.ports.grpc}") as channel:
            assert _export(channel, request.SerializeToString()) == b""
    assert sealed_requests() == [request]


def test_an_empty_request_succeeds(channel: grpc.Channel) -> None:
    assert _export(channel, b"") == b""


def test_spans_with_broken_ids_are_rejected_alone(
    channel: grpc.Channel, make_request: MakeRequest
) -> None:
    request = make_request(spans=3)
    request.resource_spans[0].scope_spans[0].spans[0].span_id = b"short"
    answer = _export(channel, request.SerializeToString())
    assert ExportTraceServiceResponse.FromString(answer).partial_success.rejected_spans == 1


def test_an_undecodable_request_is_an_invalid_argument_with_details(channel: grpc.Channel) -> None:
    call = _refusal(channel, b"\xff")
    assert call.code() is grpc.StatusCode.INVALID_ARGUMENT
    trailers = dict(call.trailing_metadata() or ())
    status = Status.FromString(trailers["grpc-status-details-bin"])
    assert status.details[0].Unpack(error_details_pb2.BadRequest())
    assert "google.rpc.retryinfo-bin" not in trailers


@pytest.mark.parametrize("compression", [grpc.Compression.NoCompression, grpc.Compression.Gzip])
def test_a_message_over_the_limit_is_refused_before_and_after_inflating(
    compression: grpc.Compression, channel: grpc.Channel
) -> None:
    call = _refusal(channel, bytes(65 * 2**20), compression=compression)
    assert call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert _export(channel, b"") == b""


def test_a_full_receiver_asks_to_send_the_request_again(
    spool: SpoolDirectory, make_request: MakeRequest
) -> None:
    body = make_request(text="x" * 200_000).SerializeToString()
    with Receiver(spool, limits=Limits(in_flight_bytes=100_000)) as receiver:
        with grpc.insecure_channel(f"127.0.0.1:{receiver.ports.grpc}") as channel:
            call = _refusal(channel, body)
            assert _export(channel, b"") == b""
    assert call.code() is grpc.StatusCode.UNAVAILABLE
    trailers = dict(call.trailing_metadata() or ())
    retry = error_details_pb2.RetryInfo.FromString(trailers["google.rpc.retryinfo-bin"])
    assert retry.retry_delay.seconds == 1
    assert Status.FromString(trailers["grpc-status-details-bin"]).details[0].Unpack(retry)


def _stalled(let_go: threading.Event) -> Iterator[bytes]:
    """A message that does not come."""
    let_go.wait(20)
    yield from ()


def test_a_sender_that_stalls_is_let_go(spool: SpoolDirectory) -> None:
    with Receiver(spool, limits=Limits(body_s=0.2)) as receiver:
        with grpc.insecure_channel(f"127.0.0.1:{receiver.ports.grpc}") as channel:
            let_go = threading.Event()
            stream = channel.stream_unary(METHOD, bytes, bytes)
            error = _as_call(stream.future(_stalled(let_go), timeout=20).exception())
            let_go.set()
    assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    assert "did not arrive within 0.2 s" in str(error.details())


def test_another_service_is_unimplemented(channel: grpc.Channel) -> None:
    method = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
    other = channel.unary_unary(method, bytes, bytes)
    error = _as_call(other.future(b"", timeout=20).exception())
    assert error.code() is grpc.StatusCode.UNIMPLEMENTED
