"""OTLP over gRPC: `TraceService/Export`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import grpc
import grpc.aio

from retrospan_collector.otlp.intake import TraceIntake
from retrospan_collector.otlp.refusals import Refusal, retry_info
from retrospan_collector.ports import port_taken

SERVICE = "opentelemetry.proto.collector.trace.v1.TraceService"

_OPENING_BYTES = 64 * 2**10
"""Counted for a call before its message is here, so that idle calls are bounded as well."""

_CODES = {code.value[0]: code for code in grpc.StatusCode}

_Context = grpc.aio.ServicerContext[bytes, bytes]


class TraceService:
    """Answers export calls from an intake.

    The call is declared as a stream of requests, which is the same on the wire as the one request
    it has: the handler then starts before the message is here and can give it a deadline.
    Messages stay bytes, because the spool wants the sender's own.
    """

    def __init__(self, intake: TraceIntake) -> None:
        self._intake = intake

    async def export(self, messages: AsyncIterator[bytes], context: _Context) -> bytes:
        """The serialized response to the call's one message."""
        limits = self._intake.limits
        try:
            with self._intake.in_flight.reserve() as reservation:
                reservation.grow(_OPENING_BYTES)
                try:
                    async with asyncio.timeout(limits.body_s):
                        payload = await anext(messages, b"")
                except TimeoutError:
                    await context.abort(
                        grpc.StatusCode.DEADLINE_EXCEEDED,
                        f"the request did not arrive within {limits.body_s:g} s",
                    )
                reservation.grow(len(payload))
                return await self._intake.take(payload)
        except Refusal as refusal:
            self._intake.refused(refusal)
            # The Python exporter reads the delay from a trailer of its own, others from details.
            trailers = [("grpc-status-details-bin", refusal.status().SerializeToString())]
            if refusal.retryable:
                trailers.append(("google.rpc.retryinfo-bin", retry_info().SerializeToString()))
            await context.abort(_CODES[refusal.code], str(refusal), tuple(trailers))


async def start_grpc_server(
    intake: TraceIntake, host: str, port: int
) -> tuple[grpc.aio.Server, int]:
    """A running server and the port it listens on."""
    options = [
        # grpcio's own default is 4 MiB: one long passage would lose its whole batch.
        ("grpc.max_receive_message_length", intake.limits.request_bytes),
        # Otherwise a second server on the port would silently get half of the connections.
        ("grpc.so_reuseport", 0),
    ]
    server = grpc.aio.server(options=options)
    handler = grpc.stream_unary_rpc_method_handler(TraceService(intake).export)
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(SERVICE, {"Export": handler}),)
    )
    try:
        bound = server.add_insecure_port(f"{host}:{port}")
    except RuntimeError as error:
        # It does not say why; whoever asked found the port free a moment ago.
        raise port_taken("otlp-grpc", port) from error
    await server.start()
    return server, bound
