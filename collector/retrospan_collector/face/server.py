"""The face on a port: a thread of the owner that serves until it is stopped."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading

from hypercorn.asyncio import serve
from hypercorn.config import Config

from retrospan_collector.face.application import FaceApplication
from retrospan_collector.face.engine import FaceEngine
from retrospan_collector.ports import LOOPBACK

logger = logging.getLogger(__name__)

IDLE_S = 60
"""A connection without a complete request head is closed after this."""


class FaceServer:
    """Serves an engine on a listening socket from a thread of its own."""

    def __init__(self, engine: FaceEngine, token: str, listening: socket.socket) -> None:
        self.address = f"{LOOPBACK}:{listening.getsockname()[1]}"
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(engine, token, listening)),
            name="face",
            daemon=True,
        )
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether it still answers."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Finish what runs and stop listening."""
        self._stop.set()
        self._thread.join()

    async def _serve(self, engine: FaceEngine, token: str, listening: socket.socket) -> None:
        # An answer leaves in two writes, head and body: Nagle's algorithm would hold the second
        # back for the reader's delayed acknowledgement, 40 ms. Accepted sockets inherit this.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        config = Config()
        config.bind = [f"fd://{listening.detach()}"]
        config.accesslog = None
        config.errorlog = logger
        config.keep_alive_timeout = IDLE_S
        config.keep_alive_max_requests = 1_000_000
        config.graceful_timeout = 5
        config.include_server_header = False
        application = FaceApplication(engine, token).application
        await serve(application, config, shutdown_trigger=self._stopped, mode="asgi")  # type: ignore[arg-type]

    async def _stopped(self) -> None:
        await asyncio.to_thread(self._stop.wait)
