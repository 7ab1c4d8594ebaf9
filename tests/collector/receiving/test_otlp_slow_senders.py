"""A sender that is slow on purpose cannot keep the receiver's connections."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterator

import httpx
import pytest

from retrospan_collector.otlp.limits import Limits
from retrospan_collector.receiver import Receiver
from retrospan_collector.spool import SpoolDirectory

LIMITS = Limits(header_s=0.5, body_s=0.5)


@pytest.fixture
def connection(spool: SpoolDirectory) -> Iterator[socket.socket]:
    with Receiver(spool, limits=LIMITS) as receiver:
        with socket.create_connection(("127.0.0.1", receiver.ports.http), timeout=10) as opened:
            yield opened


def _drip(connection: socket.socket, text: bytes) -> tuple[bytes, float]:
    """Send a byte every tenth of a second until the other side answers or closes."""
    started = time.monotonic()
    for byte in text:
        connection.sendall(bytes([byte]))
        readable, _, _ = select.select([connection], [], [], 0.1)
        if readable:
            break
    answer = b""
    try:
        while part := connection.recv(4096):
            answer += part
    except ConnectionResetError:
        pass
    return answer, time.monotonic() - started


def test_a_head_that_drips_is_cut_off_in_time(connection: socket.socket) -> None:
    head = b"POST /v1/traces HTTP/1.1\r\nhost: localhost\r\n" + b"x-filler: " + b"x" * 1000
    answer, took_s = _drip(connection, head)
    assert answer == b""
    assert took_s < 5


def test_a_connection_that_says_nothing_is_closed(connection: socket.socket) -> None:
    assert connection.recv(1) == b""


def test_an_http2_connection_that_says_nothing_is_closed(connection: socket.socket) -> None:
    connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    while connection.recv(4096):
        pass


def test_a_body_that_drips_is_answered_with_a_timeout(connection: socket.socket) -> None:
    connection.sendall(
        b"POST /v1/traces HTTP/1.1\r\nhost: localhost\r\n"
        b"content-type: application/x-protobuf\r\ncontent-length: 1000\r\n\r\n"
    )
    answer, took_s = _drip(connection, b"x" * 1000)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert took_s < 5


def test_slow_senders_leave_the_others_undisturbed(spool: SpoolDirectory) -> None:
    with Receiver(spool, limits=LIMITS) as receiver:
        slow = [socket.create_connection(("127.0.0.1", receiver.ports.http)) for _ in range(100)]
        for connection in slow:
            connection.sendall(b"POST /v1/traces HTTP/1.1\r\n")
        url = f"http://127.0.0.1:{receiver.ports.http}/v1/traces"
        headers = {"content-type": "application/x-protobuf"}
        assert httpx.post(url, content=b"", headers=headers, timeout=5).status_code == 200
        for connection in slow:
            connection.close()
