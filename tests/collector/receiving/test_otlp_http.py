"""OTLP over HTTP, request by request, to the letter of the specification."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import httpx
import pytest
from google.rpc import code_pb2, error_details_pb2  # type: ignore[import-untyped]  # ships none
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # ships none
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from retrospan_collector.otlp.limits import Limits
from retrospan_collector.receiver import Receiver
from retrospan_collector.spool import SpoolDirectory

ReadSpool = Callable[[], list[ExportTraceServiceRequest]]
MakeRequest = Callable[..., ExportTraceServiceRequest]

PROTOBUF = {"content-type": "application/x-protobuf"}


@pytest.fixture
def client(receiver: Receiver) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"http://127.0.0.1:{receiver.ports.http}", timeout=20) as opened:
        yield opened


def _status(response: httpx.Response) -> Status:
    assert response.headers["content-type"] == "application/x-protobuf"
    return Status.FromString(response.content)


@dataclass(frozen=True)
class Accepted:
    id: str
    encode: Callable[[bytes], bytes] = lambda body: body
    headers: dict[str, str] = field(default_factory=dict)


ACCEPTED = [
    Accepted("plain"),
    Accepted("identity", headers={"content-encoding": "identity"}),
    Accepted("gzip", gzip.compress, {"content-encoding": "gzip"}),
    Accepted("gzip in capitals", gzip.compress, {"content-encoding": "GZIP"}),
    Accepted("deflate", zlib.compress, {"content-encoding": "deflate"}),
    Accepted(
        "gzip of two members",
        lambda body: gzip.compress(body[:10]) + gzip.compress(body[10:]),
        {"content-encoding": "gzip"},
    ),
    Accepted(
        "gzip with padding",
        lambda body: gzip.compress(body) + bytes(512),
        {"content-encoding": "gzip"},
    ),
    Accepted(
        "a content type with a parameter",
        headers={"content-type": "application/x-protobuf; charset=utf-8"},
    ),
]


@pytest.mark.parametrize("case", ACCEPTED, ids=lambda case: case.id)
def test_an_accepted_request_is_answered_with_an_empty_message_and_stored(
    case: Accepted, spool: SpoolDirectory, sealed_requests: ReadSpool, make_request: MakeRequest
) -> None:
    request = make_request(spans=2, text="كيف ألغي الاشتراك؟")
    with Receiver(spool) as receiver:
        response = httpx.post(
            f"http://127.0.0.1:{receiver.ports.http}/v1/traces",
            content=case.encode(request.SerializeToString()),
            headers=PROTOBUF | case.headers,
        )
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/x-protobuf"
    assert response.content == b""
    assert sealed_requests() == [request]


@dataclass(frozen=True)
class Refused:
    id: str
    http_status: int
    code: int
    says: str
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)


REFUSED = [
    Refused("not protobuf", 400, code_pb2.INVALID_ARGUMENT, "ExportTraceServiceRequest", b"\xff"),
    Refused(
        "not gzip",
        400,
        code_pb2.INVALID_ARGUMENT,
        "not valid gzip",
        b"plain",
        {"content-encoding": "gzip"},
    ),
    Refused(
        "gzip cut short",
        400,
        code_pb2.INVALID_ARGUMENT,
        "ends too early",
        gzip.compress(b"x" * 1000)[:-10],
        {"content-encoding": "gzip"},
    ),
    Refused(
        "an unknown encoding",
        415,
        code_pb2.INVALID_ARGUMENT,
        "'br'",
        b"x",
        {"content-encoding": "br"},
    ),
    Refused(
        "fifty kilobytes that inflate to more than the limit",
        413,
        code_pb2.RESOURCE_EXHAUSTED,
        "inflates to more than",
        gzip.compress(bytes(65 * 2**20)),
        {"content-encoding": "gzip"},
    ),
    Refused(
        "a body over the limit", 413, code_pb2.RESOURCE_EXHAUSTED, "send less", bytes(65 << 20)
    ),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
def test_a_refusal_carries_a_status_that_says_why(case: Refused, client: httpx.Client) -> None:
    response = client.post("/v1/traces", content=case.body, headers=PROTOBUF | case.headers)
    assert response.status_code == case.http_status
    status = _status(response)
    assert status.code == case.code
    assert case.says in status.message
    # The receiver goes on answering on the same connection.
    assert client.get("/healthz").status_code == 200


def test_an_undecodable_request_carries_bad_request_details(client: httpx.Client) -> None:
    response = client.post("/v1/traces", content=b"\xff", headers=PROTOBUF)
    details = error_details_pb2.BadRequest()
    assert _status(response).details[0].Unpack(details)
    assert "could not decode" in details.field_violations[0].description


def test_a_body_over_the_limit_without_an_announced_length_is_refused(
    spool: SpoolDirectory,
) -> None:
    with Receiver(spool, limits=Limits(request_bytes=10_000)) as receiver:
        response = httpx.post(
            f"http://127.0.0.1:{receiver.ports.http}/v1/traces",
            content=(b"x" * 1000 for _ in range(15)),
            headers=PROTOBUF,
        )
    assert response.status_code == 413


def test_json_is_refused_in_json_with_what_to_do(client: httpx.Client) -> None:
    response = client.post("/v1/traces", json={"resourceSpans": []})
    assert response.status_code == 415
    assert response.json() == {
        "code": code_pb2.INVALID_ARGUMENT,
        "message": "expected the Content-Type application/x-protobuf and got 'application/json': "
        "set the exporter's protocol to http/protobuf",
    }


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [("POST", "/v1/profiles", 404), ("GET", "/v1/traces", 405), ("POST", "/healthz", 405)],
)
def test_what_is_not_served_says_what_is(
    method: str, path: str, expected: int, client: httpx.Client
) -> None:
    response = client.request(method, path, headers=PROTOBUF)
    assert response.status_code == expected
    assert _status(response).message == f"expected POST /v1/traces and got {method} {path}"


def test_an_empty_request_succeeds_and_is_not_stored(
    spool: SpoolDirectory, sealed_requests: ReadSpool
) -> None:
    with Receiver(spool) as receiver:
        url = f"http://127.0.0.1:{receiver.ports.http}/v1/traces"
        response = httpx.post(url, content=b"", headers=PROTOBUF)
    assert (response.status_code, response.content) == (200, b"")
    assert sealed_requests() == []


def test_spans_with_broken_ids_are_rejected_alone(
    spool: SpoolDirectory, sealed_requests: ReadSpool, make_request: MakeRequest
) -> None:
    request = make_request(spans=3)
    request.resource_spans[0].scope_spans[0].spans[1].trace_id = bytes(16)
    with Receiver(spool) as receiver:
        response = httpx.post(
            f"http://127.0.0.1:{receiver.ports.http}/v1/traces",
            content=request.SerializeToString(),
            headers=PROTOBUF,
        )
    assert response.status_code == 200
    answer = ExportTraceServiceResponse.FromString(response.content)
    assert answer.partial_success.rejected_spans == 1
    assert "a trace id is 16 bytes and not all zero" in answer.partial_success.error_message
    (stored,) = sealed_requests()
    names = [span.name for span in stored.resource_spans[0].scope_spans[0].spans]
    assert names == ["span 1", "span 3"]


def test_logs_sent_to_the_address_for_traces_are_refused_with_a_hint(client: httpx.Client) -> None:
    logs = ExportLogsServiceRequest()
    record = logs.resource_logs.add().scope_logs.add().log_records.add(severity_text="INFO")
    record.body.string_value = "hello"
    response = client.post("/v1/traces", content=logs.SerializeToString(), headers=PROTOBUF)
    assert response.status_code == 400
    assert "are these logs" in _status(response).message


def test_a_full_receiver_asks_to_send_the_request_again(
    spool: SpoolDirectory, make_request: MakeRequest
) -> None:
    body = make_request(text="x" * 5000).SerializeToString()
    with Receiver(spool, limits=Limits(in_flight_bytes=4000)) as receiver:
        url = f"http://127.0.0.1:{receiver.ports.http}/v1/traces"
        response = httpx.post(url, content=body, headers=PROTOBUF)
        small = make_request().SerializeToString()
        assert httpx.post(url, content=small, headers=PROTOBUF).status_code == 200
    assert response.status_code == 503
    assert response.headers["retry-after"] == "1"
    assert _status(response).code == code_pb2.UNAVAILABLE


def test_a_disk_that_refuses_asks_to_send_the_request_again(
    spool: SpoolDirectory, make_request: MakeRequest
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with Receiver(spool, sync=full) as receiver:
        response = httpx.post(
            f"http://127.0.0.1:{receiver.ports.http}/v1/traces",
            content=make_request().SerializeToString(),
            headers=PROTOBUF,
        )
    assert response.status_code == 503
    assert "No space left on device" in _status(response).message


def test_health_and_readiness_are_answered(client: httpx.Client) -> None:
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready"}
