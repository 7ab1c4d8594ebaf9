"""Wrap a function of any kind so that each call is one step, and nothing else changes.

A plain function stays plain, a coroutine function one, a generator function one; what they
return, raise, yield and accept is what they did before.
"""

import functools
import inspect
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any, Protocol, TypeVar

from retrospan._errors import ConfigurationError
from retrospan._guard import guarded, note_fault
from retrospan._returned import with_stream_replaced
from retrospan._streams import AsyncStream, RecordedCall, Stream, first_step

F = TypeVar("F", bound="Callable[..., Any] | classmethod[Any, Any, Any] | staticmethod[Any, Any]")

Opening = Callable[[tuple[object, ...], Mapping[str, object]], RecordedCall | None]
"""Starts the record of a call from its arguments; None where nothing would come of it."""


class Decorator(Protocol):
    """A decorator that leaves the type of what it decorates alone."""

    def __call__(self, function: F, /) -> F:
        """Return the function, recorded."""


def recorded(function: F, name: str, opening: Callable[[Callable[..., Any]], Opening]) -> F:
    """Return the function with each call recorded.

    Args:
        function: a function of any kind, or a static or class method.
        name: the decorator, for the message about something that cannot be decorated.
        opening: makes the record's start for the plain function inside.
    """
    if isinstance(function, staticmethod | classmethod):
        inner = recorded(function.__func__, name, opening)
        return type(function)(inner)
    if isinstance(function, type) or not callable(function):
        raise ConfigurationError(f"{name} decorates a function; it was given {function!r}")
    start = _silent(opening(function))
    if inspect.iscoroutinefunction(function):
        return _coroutine_function(function, start)  # type: ignore[return-value]  # as F is
    if inspect.isasyncgenfunction(function):
        return _async_generator_function(function, start)  # type: ignore[return-value]  # as F is
    if inspect.isgeneratorfunction(function):
        return _generator_function(function, start)  # type: ignore[return-value]  # as F is
    return _plain_function(function, start)  # type: ignore[return-value]  # as F is


def _silent(start: Opening) -> Opening:
    def silent(args: tuple[object, ...], kwargs: Mapping[str, object]) -> RecordedCall | None:
        try:
            return start(args, kwargs)
        except Exception as error:
            note_fault("start the record of a call", error)
            return None

    return silent


def _plain_function(function: Callable[..., Any], start: Opening) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        call = start(args, kwargs)
        if call is None:
            return function(*args, **kwargs)
        try:
            with call.step.attached():
                output = function(*args, **kwargs)
        except BaseException as error:
            call.failed(error)
            raise
        return given_back(output, call)

    return wrapper


def _coroutine_function(function: Callable[..., Any], start: Opening) -> Callable[..., Any]:
    @functools.wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        # First of all, so that a call with wrong arguments is none.
        coroutine = function(*args, **kwargs)
        call = start(args, kwargs)
        return await (coroutine if call is None else _awaited(coroutine, call))

    return wrapper


async def _awaited(awaitable: Any, call: RecordedCall) -> Any:
    try:
        with call.step.attached():
            output = await awaitable
    except BaseException as error:
        call.failed(error)
        raise
    return given_back(output, call)


def _generator_function(function: Callable[..., Any], start: Opening) -> Callable[..., Any]:
    def opened(*args: Any, **kwargs: Any) -> Any:
        inner = function(*args, **kwargs)
        call = start(args, kwargs)
        return inner if call is None else Stream(inner, call)

    return functools.wraps(function)(_passing_on(opened))


def _passing_on(open_stream: Callable[..., Any]) -> Callable[..., Generator[Any, Any, Any]]:
    """Return a generator function that passes everything on to the stream it opens.

    Not by `yield from`: that would close the inner generator on a GeneratorExit and raise it
    again, whatever the inner one makes of it.
    """

    def wrapper(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        stream = open_stream(*args, **kwargs)
        step = stream.__next__
        while True:
            try:
                item = step()
            except StopIteration as stop:
                return stop.value
            try:
                sent = yield item
            except BaseException as error:
                step = functools.partial(stream.throw, error)
            else:
                step = stream.__next__ if sent is None else functools.partial(stream.send, sent)

    return wrapper


def _async_generator_function(function: Callable[..., Any], start: Opening) -> Callable[..., Any]:
    def opened(*args: Any, **kwargs: Any) -> Any:
        inner = function(*args, **kwargs)
        call = start(args, kwargs)
        return inner if call is None else AsyncStream(inner, call)

    return functools.wraps(function)(forwarding(opened))


def forwarding(open_stream: Callable[..., Any]) -> Callable[..., AsyncGenerator[Any, Any]]:
    """Return an async generator function that passes everything on to the stream it opens.

    Args:
        open_stream: gives an `AsyncStream` or an async generator, at once or after a while.
    """

    async def wrapper(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        stream = open_stream(*args, **kwargs)
        if isinstance(stream, CoroutineType):
            stream = await stream
        step = first_step(stream)
        while True:
            try:
                item = await step
            except StopAsyncIteration:
                return
            try:
                sent = yield item
            except BaseException as error:
                step = stream.athrow(error)
            else:
                step = stream.asend(sent)

    return wrapper


def given_back(output: Any, call: RecordedCall) -> Any:
    """Return what the host gets: the output, or the same stream with the record following it."""
    call.step.stop_clock()
    if isinstance(output, GeneratorType):
        stream = Stream(output, call)
        return _passing_on(lambda: stream)()
    if isinstance(output, AsyncGeneratorType):
        async_stream = AsyncStream(output, call)
        return forwarding(lambda: async_stream)()
    if isinstance(output, CoroutineType):
        return _awaited(output, call)
    replaced = None
    with guarded("follow a returned stream"):
        replaced = with_stream_replaced(output, call)
    if replaced is not None:
        return replaced.value
    call.returned(output)
    return output
