"""Listening on a port, and saying which program holds one that is taken."""

from __future__ import annotations

import argparse
import errno
import os
import socket
from dataclasses import dataclass
from pathlib import Path

from retrospan_collector.errors import PortTaken

LOOPBACK = "127.0.0.1"

_LISTENING = "0A"
"""The state of a listening socket in /proc/net/tcp."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The program that listens on a port."""

    pid: int
    command: str

    def __str__(self) -> str:
        return f"process {self.pid} ({self.command})"


def port(text: str) -> int:
    """A port as it is typed, for argparse."""
    number = int(text)
    if not 0 <= number <= 65535:
        raise argparse.ArgumentTypeError(f"expected a port from 0 to 65535 and got {number}")
    return number


def listen(name: str, port: int) -> socket.socket:
    """A socket listening on a loopback port, 0 for a free one; PortTaken if another has it."""
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((LOOPBACK, port))
        listening.listen(128)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise port_taken(name, port) from error
        if error.errno == errno.EACCES:
            raise PortTaken(
                f"expected to listen for {name} on {LOOPBACK}:{port} and may not: "
                f"give --{name}-port a port above 1023"
            ) from error
        raise
    return listening


def port_taken(name: str, port: int) -> PortTaken:
    """The error for a port that another program holds."""
    holder = holder_of(port) or "another program, which this user may not see,"
    return PortTaken(
        f"expected to listen for {name} on {LOOPBACK}:{port} and {holder} holds that port: "
        f"stop it, or give --{name}-port another one (0 picks a free one)"
    )


def holder_of(port: int) -> Holder | None:
    """The program listening on a port, as far as /proc shows it to this user."""
    inodes = {
        inode
        for table in (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
        for inode in _listening_inodes(table, port)
    }
    if not inodes:
        return None
    targets = {f"socket:[{inode}]" for inode in inodes}
    for process in Path("/proc").glob("[0-9]*"):
        if targets & _open_files(process):
            return Holder(int(process.name), _command(process))
    return None


def _listening_inodes(table: Path, port: int) -> list[str]:
    try:
        lines = table.read_text(encoding="ascii").splitlines()[1:]
    except OSError:
        return []
    columns = [line.split() for line in lines]
    return [
        c[9] for c in columns if c[3] == _LISTENING and int(c[1].rpartition(":")[2], 16) == port
    ]


def _open_files(process: Path) -> set[str]:
    found = set()
    try:
        for descriptor in (process / "fd").iterdir():
            found.add(os.readlink(descriptor))
    except OSError:
        # Another user's process, or one that has just ended.
        pass
    return found


def _command(process: Path) -> str:
    try:
        words = (process / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return "unknown"
    text = " ".join(word.decode("utf-8", "replace") for word in words if word)
    # A command line is another program's text: nothing in it may reach the terminal as control.
    return "".join(c if c.isprintable() else "?" for c in text)[:120] or "unknown"
