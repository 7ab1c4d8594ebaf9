"""Why a request was not taken, and how each transport says so.

Refusal
├── Undecodable     what came is no export request; sending it again cannot help
├── TooLarge        over a limit, before or after decompression
├── Unsupported     a content type or encoding that is not read here (HTTP only)
├── TooSlow         the sender did not finish in time (HTTP only)
└── NotStored       nothing is wrong with the request: it can be sent again shortly
"""

from __future__ import annotations

from typing import ClassVar

from google.protobuf.duration_pb2 import Duration
from google.rpc import code_pb2, error_details_pb2  # type: ignore[import-untyped]  # ships none
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # ships none

RETRY_AFTER_S = 1
"""Below the Python exporter's whole deadline: a longer wait makes it drop its batch at once."""


class Refusal(Exception):
    """The request as a whole is not taken; the message is for the sender's developer."""

    http_status: ClassVar[int]
    code: ClassVar[int]
    """A `google.rpc.Code`, which is also gRPC's status number."""
    retryable: ClassVar[bool] = False

    def status(self) -> Status:
        """The body OTLP prescribes for every refusal."""
        status = Status(code=self.code, message=str(self))
        if isinstance(self, Undecodable):
            violation = error_details_pb2.BadRequest.FieldViolation(description=str(self))
            status.details.add().Pack(error_details_pb2.BadRequest(field_violations=[violation]))
        if self.retryable:
            status.details.add().Pack(retry_info())
        return status


class Undecodable(Refusal):
    """What came is no export request."""

    http_status = 400
    code = code_pb2.INVALID_ARGUMENT


class TooLarge(Refusal):
    """The request exceeds a limit and has to be sent in smaller parts."""

    http_status = 413
    code = code_pb2.RESOURCE_EXHAUSTED


class Unsupported(Refusal):
    """The content type or encoding is not one this receiver reads."""

    http_status = 415
    code = code_pb2.INVALID_ARGUMENT


class TooSlow(Refusal):
    """The body did not arrive within its time."""

    http_status = 408
    code = code_pb2.DEADLINE_EXCEEDED


class NotStored(Refusal):
    """The receiver is full, its disk is, or it is stopping: send the same request again."""

    http_status = 503
    code = code_pb2.UNAVAILABLE
    retryable = True


def retry_info() -> error_details_pb2.RetryInfo:
    """When to send a request again that was not stored."""
    return error_details_pb2.RetryInfo(retry_delay=Duration(seconds=RETRY_AFTER_S))
