"""Decompression that stops at a limit instead of at the end of memory."""

from __future__ import annotations

import zlib
from collections.abc import Callable

from retrospan_collector.otlp.refusals import TooLarge, Undecodable, Unsupported

_STEP_BYTES = 2**20
_WINDOW_BITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}


def inflate(body: bytes, encoding: str, limit: int, grow: Callable[[int], None]) -> bytes:
    """The body without its Content-Encoding; `grow` is told of every step before it is kept.

    A gzip body may have several members, and all of them are read: a decompressor that stops
    after the first loses the rest in silence.
    """
    if encoding in ("", "identity"):
        return body
    if encoding not in _WINDOW_BITS:
        raise Unsupported(
            f"expected the Content-Encoding gzip, deflate or none and got {encoding!r}"
        )
    parts: list[bytes] = []
    size, rest = 0, body
    while rest:
        member = zlib.decompressobj(_WINDOW_BITS[encoding])
        while not member.eof:
            part = _step(member, rest, encoding)
            rest = member.unconsumed_tail
            size += len(part)
            if size > limit:
                raise TooLarge(f"the request inflates to more than {limit} bytes: send less")
            grow(len(part))
            parts.append(part)
        # Zeros after the last member are padding, which gzip allows.
        rest = member.unused_data.lstrip(b"\0")
    return b"".join(parts)


def _step(member: zlib._Decompress, rest: bytes, encoding: str) -> bytes:
    try:
        part = member.decompress(rest, _STEP_BYTES)
    except zlib.error as error:
        raise Undecodable(f"the body is not valid {encoding}: {error}") from error
    if not part and not member.eof and not member.unconsumed_tail:
        raise Undecodable(f"the {encoding} body ends too early")
    return part
