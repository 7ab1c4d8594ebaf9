"""Packed request bodies: clients pack what they insert unless they are told not to."""

from __future__ import annotations

import importlib
import zlib
from typing import Any, Protocol

from retrospan_collector.face.refusals import BodyRefused

MAX_BODY_BYTES = 256 * 2**20
"""Of one request, before and after unpacking."""


class _Decompressor(Protocol):
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def unpack(body: bytes, encoding: str) -> bytes:
    """A body as it was before packing; BodyRefused if it is too large or packed otherwise."""
    if encoding in ("", "identity"):
        return body
    unpacked = _decompressor(encoding).decompress(body, MAX_BODY_BYTES + 1)
    if len(unpacked) > MAX_BODY_BYTES:
        raise BodyRefused(
            f"expected at most {MAX_BODY_BYTES} bytes and got more: send less at once"
        )
    return unpacked


def _decompressor(encoding: str) -> _Decompressor:
    if encoding == "gzip":
        return zlib.decompressobj(zlib.MAX_WBITS | 16)
    if encoding == "deflate":
        return zlib.decompressobj()
    if encoding == "zstd" and (module := _module("compression.zstd", "backports.zstd")):
        return module.ZstdDecompressor()  # type: ignore[no-any-return]  # found by name
    if encoding == "lz4" and (module := _module("lz4.frame")):
        return module.LZ4FrameDecompressor()  # type: ignore[no-any-return]  # found by name
    raise BodyRefused(f"a body packed as {encoding!r} cannot be read here: send it unpacked")


def _module(*names: str) -> Any:
    """The first of these that is installed; each packing is as optional as the client's."""
    for name in names:
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None
