"""A taken port and a taken spool name the program that has them."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from retrospan_collector.errors import PortTaken, StoreInUse
from retrospan_collector.ports import Holder, holder_of, listen
from retrospan_collector.receiver import Receiver, SpoolLock
from retrospan_collector.spool import SpoolDirectory

_LISTENS = """
import socket
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
input()
"""


def test_the_error_for_a_taken_port_names_the_program_and_the_way_out() -> None:
    command = [sys.executable, "-c", _LISTENS]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None and other.stdin is not None
        port = int(other.stdout.readline())
        with pytest.raises(PortTaken) as caught:
            listen("otlp-http", port)
        other.stdin.write("\n")
        other.stdin.flush()
    message = str(caught.value)
    assert f"otlp-http on 127.0.0.1:{port}" in message
    assert f"process {other.pid} ({sys.executable} -c" in message
    assert "give --otlp-http-port another one (0 picks a free one)" in message
    assert message.isprintable()


def test_a_port_nobody_listens_on_has_no_holder() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        assert holder_of(bound.getsockname()[1]) is None


def test_a_listening_socket_holds_its_port() -> None:
    with listen("otlp-http", 0) as listening:
        holder = holder_of(listening.getsockname()[1])
        assert isinstance(holder, Holder)
        assert "python" in holder.command


@pytest.mark.parametrize("name", ["otlp-grpc", "otlp-http"])
def test_a_receiver_whose_port_is_taken_does_not_start_and_lets_its_spool_go(
    name: str, spool: SpoolDirectory
) -> None:
    with listen("another", 0) as taken:
        port = taken.getsockname()[1]
        ports = {"grpc_port": port} if name == "otlp-grpc" else {"http_port": port}
        with pytest.raises(PortTaken, match=name):
            with Receiver(spool, **ports):
                pass
    with Receiver(spool) as receiver:
        assert receiver.ports.grpc != receiver.ports.http


def test_a_second_receiver_on_a_spool_is_refused_by_name(
    receiver: Receiver, spool: SpoolDirectory
) -> None:
    assert SpoolLock.held(spool.path)
    with pytest.raises(StoreInUse, match=r"in use by process \d+: .* stop it to start another"):
        with Receiver(spool):
            pass


def test_a_stopped_receiver_lets_its_ports_and_spool_go(spool: SpoolDirectory) -> None:
    with Receiver(spool) as receiver:
        ports = receiver.ports
    assert not SpoolLock.held(spool.path)
    with Receiver(spool, grpc_port=ports.grpc, http_port=ports.http) as again:
        assert again.ports == ports


def test_the_receiver_loads_neither_the_engine_nor_a_client_of_it() -> None:
    program = (
        "import sys, retrospan_collector.service, retrospan_collector.receiver\n"
        "print([m for m in sys.modules if m.startswith(('chdb', 'clickhouse_connect'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def test_a_spool_that_was_never_used_is_not_held(tmp_path: Path) -> None:
    assert not SpoolLock.held(tmp_path / "nowhere")
