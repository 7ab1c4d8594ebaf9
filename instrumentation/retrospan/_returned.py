"""Recognise a stream that a function returned, and follow it without changing what it is."""

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from retrospan._guard import guarded
from retrospan._streams import AsyncStream, RecordedCall, Stream

_WHOLE: Final = frozenset({str, bytes, int, float, bool, type(None), dict, list, tuple, set})
"""Types that are looked at no further."""

_HOLDERS: Final = ("body_iterator", "response_gen")
"""Attributes in which a response object keeps its stream: of web frameworks, and of LlamaIndex."""

_FORWARDED: Final = (
    "__enter__",
    "__exit__",
    "__aenter__",
    "__aexit__",
    "__len__",
    "__length_hint__",
    "__bool__",
    "__getitem__",
    "__contains__",
    "__str__",
    "__repr__",
    "__eq__",
    "__hash__",
)


@dataclass(frozen=True, slots=True)
class Replaced:
    """What the host gets instead of a stream."""

    value: Any


def is_stream(output: Any) -> bool:
    """Return whether a function returned something that is read piece by piece."""
    kind = type(output)
    return kind not in _WHOLE and (hasattr(kind, "__next__") or hasattr(kind, "__aiter__"))


def is_async_stream(output: Any) -> bool:
    """Return whether a function returned something to be read by `async for`."""
    return hasattr(type(output), "__aiter__")


def with_stream_replaced(output: Any, call: RecordedCall) -> Replaced | None:
    """Return the followed stream, or the object that now holds it; None where there is none."""
    if type(output) in _WHOLE:
        return None
    held: dict[str, Any] = getattr(output, "__dict__", {})
    for name in _HOLDERS:
        followed = _followed(held.get(name), call)
        if followed is not None:
            setattr(output, name, followed)
            return Replaced(output)
    if hasattr(type(output), "add_done_callback"):
        output.add_done_callback(functools.partial(_settled, call))
        return Replaced(output)
    followed = _followed(output, call)
    return None if followed is None else Replaced(followed)


def _settled(call: RecordedCall, future: Any) -> None:
    """End the record of a call that returned a future: of asyncio, or of an executor."""
    from concurrent.futures import CancelledError, Future  # loaded by whoever has a future

    with guarded("record what a future came to"):
        call.step.stop_clock()
        if future.cancelled():
            call.failed(CancelledError())
            return
        # Asking an asyncio future for its exception would keep the loop from reporting one
        # that the application never asks for.
        asked = isinstance(future, Future)
        error = future.exception() if asked else getattr(future, "_exception", None)
        if error is not None:
            call.failed(error)
        else:
            call.returned(future.result())


def _followed(stream: Any, call: RecordedCall) -> Any:
    kind: Any = type(stream)
    if kind in _WHOLE:
        return None
    if hasattr(kind, "__aiter__"):
        return _proxy_class(_AsyncProxy, kind)(stream, call)
    if hasattr(kind, "__next__"):
        return _proxy_class(_IteratorProxy, kind)(stream, call)
    return None


class _Proxy:
    """Passes for the object inside: its class, its attributes, and the methods of its type."""

    __slots__ = ("__weakref__", "_retrospan_inner", "_retrospan_stream")

    _retrospan_inner: Any
    _retrospan_stream: Any

    @property  # type: ignore[misc]  # what isinstance asks
    def __class__(self) -> type:
        return type(self._retrospan_inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._retrospan_inner, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._retrospan_inner, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._retrospan_inner, name)


class _IteratorProxy(_Proxy):
    __slots__ = ()

    def __init__(self, inner: Any, call: RecordedCall) -> None:
        object.__setattr__(self, "_retrospan_inner", inner)
        object.__setattr__(self, "_retrospan_stream", Stream(inner, call))

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self._retrospan_stream.__next__()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._retrospan_inner, name)
        return self._retrospan_stream.close if name == "close" else found


class _AsyncProxy(_Proxy):
    __slots__ = ()

    def __init__(self, inner: Any, call: RecordedCall) -> None:
        object.__setattr__(self, "_retrospan_inner", inner)
        object.__setattr__(self, "_retrospan_stream", AsyncStream(inner, call))

    def __aiter__(self) -> AsyncIterator[Any]:
        inner = self._retrospan_inner
        if hasattr(type(inner), "__anext__"):
            return self
        return _Iteration(inner.__aiter__(), self._retrospan_stream)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._retrospan_inner, name)
        if name in ("close", "aclose"):
            return functools.partial(_closed, found, self._retrospan_stream)
        return found


class _Iteration(AsyncIterator[Any]):
    """One pass over an async iterable."""

    def __init__(self, inner: AsyncIterator[Any], stream: AsyncStream) -> None:
        self._inner = inner
        self._stream = stream

    async def __anext__(self) -> Any:
        return await self._stream.step(self._inner.__anext__())


async def _closed(close: Callable[..., Any], stream: AsyncStream, *args: Any) -> Any:
    return await stream.closing(close(*args))


async def _anext(proxy: _AsyncProxy) -> Any:
    return await proxy._retrospan_stream.step(proxy._retrospan_inner.__anext__())


@functools.lru_cache(maxsize=256)
def _proxy_class(base: type[_Proxy], kind: type) -> Callable[[Any, RecordedCall], Any]:
    """Return the proxy class for a type: with those special methods that the type has."""
    methods: dict[str, Any] = {"__slots__": ()}
    for name in _FORWARDED:
        if getattr(kind, name, None) is not None:
            methods[name] = _forward(name)
    if base is _AsyncProxy and hasattr(kind, "__anext__"):
        methods["__anext__"] = _anext
    return type(kind.__name__, (base,), methods)


def _forward(name: str) -> Callable[..., Any]:
    entering = name in ("__enter__", "__aenter__")

    def method(self: _Proxy, *args: Any) -> Any:
        inner = self._retrospan_inner
        result = getattr(inner, name)(*args)
        return self if entering and result is inner else result

    async def async_method(self: _Proxy, *args: Any) -> Any:
        inner = self._retrospan_inner
        result = await getattr(inner, name)(*args)
        return self if entering and result is inner else result

    return async_method if name in ("__aenter__", "__aexit__") else method
