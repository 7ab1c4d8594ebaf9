"""OTLP over HTTP: POST /v1/traces in protobuf, GET /healthz and /readyz."""

from __future__ import annotations

import asyncio
import logging
import math
import socket
from collections.abc import AsyncIterator, Awaitable, Callable

from google.protobuf.json_format import MessageToDict
from google.rpc import code_pb2  # type: ignore[import-untyped]  # ships none
from google.rpc.status_pb2 import Status  # type: ignore[import-untyped]  # ships none
from hypercorn.asyncio import serve
from hypercorn.config import Config
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from retrospan_collector.otlp.compression import inflate
from retrospan_collector.otlp.in_flight import Reservation
from retrospan_collector.otlp.intake import TraceIntake
from retrospan_collector.otlp.limits import Limits
from retrospan_collector.otlp.refusals import (
    RETRY_AFTER_S,
    Refusal,
    TooLarge,
    TooSlow,
    Unsupported,
)

logger = logging.getLogger(__name__)

PROTOBUF = "application/x-protobuf"


class HttpReceiver:
    """The HTTP side of a receiver, as a Starlette application."""

    def __init__(self, intake: TraceIntake) -> None:
        self._intake = intake
        self._limits = intake.limits
        self.application = Starlette(
            routes=[
                Route("/v1/traces", self.traces, methods=["POST"]),
                Route("/healthz", self.health, methods=["GET"]),
                Route("/readyz", self.readiness, methods=["GET"]),
            ],
            exception_handlers={HTTPException: _no_such_route},
        )

    async def traces(self, request: Request) -> Response:
        """Take one export request and answer when it is on the disk."""
        body = request.stream()
        try:
            async with asyncio.timeout(self._limits.body_s) as deadline:
                with self._intake.in_flight.reserve() as reservation:
                    payload = await self._payload(request, body, reservation)
                    deadline.reschedule(None)
                    answer = await self._intake.take(payload)
            return Response(answer, media_type=PROTOBUF)
        except ClientDisconnect:
            return Response(status_code=400)
        except TimeoutError:
            refusal: Refusal = TooSlow(f"the body did not arrive within {self._limits.body_s:g} s")
        except Refusal as error:
            refusal = error
            await _discard(body, self._limits)
        self._intake.refused(refusal)
        return _refuse(request, refusal)

    async def health(self, request: Request) -> Response:
        """The process answers."""
        return JSONResponse({"status": "ok"})

    async def readiness(self, request: Request) -> Response:
        """A request sent now would be stored."""
        if self._intake.ready:
            return JSONResponse({"status": "ready"})
        return JSONResponse({"status": "the spool takes no requests"}, status_code=503)

    async def _payload(
        self, request: Request, body: AsyncIterator[bytes], reservation: Reservation
    ) -> bytes:
        if _content_type(request) != PROTOBUF:
            raise Unsupported(
                f"expected the Content-Type {PROTOBUF} and got "
                f"{request.headers.get('content-type', '')!r}: set the exporter's protocol to "
                "http/protobuf"
            )
        # A length that is announced is refused before it is read.
        limit = self._limits.request_bytes
        if int(request.headers.get("content-length", 0)) > limit:
            raise _too_large(limit)
        received = bytearray()
        async for chunk in body:
            reservation.grow(len(chunk))
            received += chunk
            if len(received) > limit:
                raise _too_large(limit)
        encoding = request.headers.get("content-encoding", "").strip().lower()
        return await asyncio.to_thread(inflate, bytes(received), encoding, limit, reservation.grow)


async def serve_http(
    intake: TraceIntake, listening: socket.socket, stop: Callable[[], Awaitable[object]]
) -> None:
    """Serve on a listening socket until `stop` returns, then finish what has begun."""
    config = Config()
    config.bind = [f"fd://{listening.detach()}"]
    config.accesslog = None
    config.errorlog = logger
    # Hypercorn counts a connection as idle until a request's head is complete, so this is its
    # header timeout as well as its keep-alive.
    config.keep_alive_timeout = intake.limits.header_s
    # An HTTP/2 connection counts as busy from its preface on, so silence needs a bound of its own;
    # above the other two, which answer before they close.
    config.read_timeout = math.ceil(intake.limits.header_s + intake.limits.body_s)
    config.keep_alive_max_requests = 1_000_000
    config.graceful_timeout = 5
    config.include_server_header = False
    await serve(HttpReceiver(intake).application, config, shutdown_trigger=stop, mode="asgi")  # type: ignore[arg-type]


def _too_large(limit: int) -> TooLarge:
    return TooLarge(f"expected at most {limit} bytes in a request: send less at a time")


async def _discard(body: AsyncIterator[bytes], limits: Limits) -> None:
    """Read on to the end of a refused body.

    A sender that is still writing sees a broken connection instead of the answer, and retries
    what it should not.
    """
    size = 0
    try:
        async with asyncio.timeout(limits.body_s):
            async for chunk in body:
                size += len(chunk)
                if size > 2 * limits.request_bytes:
                    return
    except (ClientDisconnect, TimeoutError):
        return


def _content_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _refuse(request: Request, refusal: Refusal) -> Response:
    headers = {"Retry-After": str(RETRY_AFTER_S)} if refusal.retryable else {}
    return _status_response(request, refusal.http_status, refusal.status(), headers)


async def _no_such_route(request: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    code = code_pb2.NOT_FOUND if error.status_code == 404 else code_pb2.UNIMPLEMENTED
    status = Status(
        code=code,
        message=f"expected POST /v1/traces and got {request.method} {request.url.path}",
    )
    return _status_response(request, error.status_code, status, dict(error.headers or {}))


def _status_response(
    request: Request, http_status: int, status: Status, headers: dict[str, str]
) -> Response:
    """In protobuf for a protobuf request; in JSON for the rest, which a person can read."""
    if _content_type(request) == PROTOBUF:
        body = status.SerializeToString()
        return Response(body, http_status, headers, media_type=PROTOBUF)
    return JSONResponse(MessageToDict(status), http_status, headers)
