"""ClickHouse's HTTP interface: what its clients send, and the answers they expect."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.parser import BytesParser
from email.policy import HTTP

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from retrospan_collector.clickhouse.embedded import DATABASE
from retrospan_collector.face.engine import FaceEngine, Result
from retrospan_collector.face.packing import MAX_BODY_BYTES, unpack
from retrospan_collector.face.refusals import (
    BodyRefused,
    FaceRefusal,
    NotAuthenticated,
    StatementRefused,
    UnknownDatabase,
)
from retrospan_collector.face.settings import TRANSPORT_PARAMETERS, check_setting
from retrospan_collector.face.statements import read_statement

logger = logging.getLogger(__name__)

MAX_STATEMENTS = 8
"""Statements that run at once; more wait their turn."""

MAX_BODY_S = 60.0
"""For a request's body to arrive."""

_LOCAL_HOSTS = frozenset({"127.0.0.1", "localhost"})

_ENGINE_CODE = re.compile(r"Code: (\d+)\.")

_LOGICAL_ERROR = "49"


@dataclass(frozen=True, slots=True)
class Call:
    """One request, taken apart."""

    statement: bytes
    settings: Mapping[str, str]
    parameters: Mapping[str, str]
    default_format: str


class FaceApplication:
    """The interface of one engine, for whoever has the token."""

    def __init__(self, engine: FaceEngine, token: str) -> None:
        self._engine = engine
        self._token = token
        self._turns = asyncio.Semaphore(MAX_STATEMENTS)
        self.application = Starlette(
            routes=[
                Route("/ping", self.ping, methods=["GET"]),
                Route("/", self.statement, methods=["GET", "POST"]),
            ]
        )

    async def ping(self, request: Request) -> Response:
        """That it answers, for whoever may ask."""
        return PlainTextResponse("Ok.\n")

    async def statement(self, request: Request) -> Response:
        """Run one statement; every failure is answered as ClickHouse answers it."""
        try:
            self._admit(request)
            call = await _read_call(request)
            return await self._run(request, call)
        except FaceRefusal as refusal:
            logger.warning("refused a statement: %s", refusal)
            message = f"Code: {refusal.code}. DB::Exception: {refusal}"
            return _failure(refusal.http_status, str(refusal.code), message)
        except (ClientDisconnect, TimeoutError):
            return PlainTextResponse("the body did not arrive", 408)

    async def _run(self, request: Request, call: Call) -> Response:
        statement = read_statement(call.statement, self._engine.refused_functions)
        if request.method == "GET" and not statement.reads:
            raise StatementRefused("expected POST for a statement that changes something")
        try:
            async with self._turns:
                result = await asyncio.to_thread(
                    self._engine.run,
                    statement,
                    call.settings,
                    call.parameters,
                    call.default_format,
                )
        except RuntimeError as error:
            code = _ENGINE_CODE.search(str(error))
            return _failure(500, code[1] if code else _LOGICAL_ERROR, str(error))
        headers = {"X-ClickHouse-Summary": _summary(result), "X-ClickHouse-Timezone": "UTC"}
        if statement.reads:
            headers["X-ClickHouse-Format"] = statement.data_format or call.default_format
        return Response(result.body, headers=headers, media_type="application/octet-stream")

    def _admit(self, request: Request) -> None:
        host = request.headers.get("host", "").rpartition(":")[0] or request.headers.get("host", "")
        # A page in the user's browser can reach this port under a name it made up, and cannot
        # leave Origin out; a client of ClickHouse sends none.
        if host not in _LOCAL_HOSTS or "origin" in request.headers:
            raise NotAuthenticated("expected a request to 127.0.0.1 from a program on this machine")
        given = _given_token(request)
        if not hmac.compare_digest(given.encode(), self._token.encode()):
            raise NotAuthenticated(
                "expected the owner's token as the password in a header: retrospan finds it beside "
                "the data, in owner.json"
            )


def _given_token(request: Request) -> str:
    key = request.headers.get("x-clickhouse-key")
    if key is not None:
        return key
    scheme, _, value = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value, validate=True).decode().partition(":")[2]
        except (binascii.Error, UnicodeDecodeError):
            return ""
    return value if scheme.lower() == "bearer" else ""


async def _read_call(request: Request) -> Call:
    values = dict(request.query_params)
    body = await _body(request)
    content_type = request.headers.get("content-type", "")
    if content_type.startswith("multipart/form-data"):
        # Bound parameters too long for a URL come as the fields of a form.
        values |= _form(content_type, body)
        body = b""
    if values.get("database", DATABASE) not in (DATABASE, "default", ""):
        raise UnknownDatabase(f"expected the database {DATABASE} and got {values['database']!r}")
    settings = {}
    for name, value in values.items():
        if not name.startswith("param_") and name not in TRANSPORT_PARAMETERS:
            check_setting(name, value)
            settings[name] = value
    query = values.get("query", "").encode()
    return Call(
        statement=query + b"\n" + body if query and body else query or body,
        settings=settings,
        parameters={
            k.removeprefix("param_"): v for k, v in values.items() if k.startswith("param_")
        },
        default_format=values.get("default_format")
        or request.headers.get("x-clickhouse-format")
        or "TabSeparated",
    )


async def _body(request: Request) -> bytes:
    received = bytearray()
    async with asyncio.timeout(MAX_BODY_S):
        async for chunk in request.stream():
            received += chunk
            if len(received) > MAX_BODY_BYTES:
                raise BodyRefused(
                    f"expected at most {MAX_BODY_BYTES} bytes and got more: send less at once"
                )
    encoding = request.headers.get("content-encoding", "").strip().lower()
    return await asyncio.to_thread(unpack, bytes(received), encoding)


def _form(content_type: str, body: bytes) -> dict[str, str]:
    head = f"Content-Type: {content_type}\r\n\r\n".encode("latin-1")
    message = BytesParser(policy=HTTP).parsebytes(head + body)
    fields = {}
    for part in message.iter_parts():
        name = part.get_param("name", header="content-disposition")
        payload = part.get_payload(decode=True)
        if isinstance(name, str) and isinstance(payload, bytes):
            fields[name] = payload.decode()
    return fields


def _failure(http_status: int, code: str, message: str) -> Response:
    headers = {"X-ClickHouse-Exception-Code": code}
    return PlainTextResponse(message + "\n", http_status, headers)


def _summary(result: Result) -> str:
    return json.dumps(
        {
            "read_rows": str(result.rows_read),
            "read_bytes": str(result.bytes_read),
            "elapsed_ns": str(result.elapsed_ns),
        }
    )
