"""A request that is not a class: a block, or any function."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, overload

from retrospan._calls import F, recorded
from retrospan._capture import CaptureMode, CaptureSettings, Redact
from retrospan._current import open_request
from retrospan._encoding import clean_text
from retrospan._errors import ConfigurationError
from retrospan._facts import RequestFacts
from retrospan._feedback import RequestReference, current_request
from retrospan._guard import guarded
from retrospan._record import request_attributes
from retrospan._retrieving import check_text
from retrospan._run_scope import current_run
from retrospan._signatures import Parameters
from retrospan._steps import Step, open_step
from retrospan._streams import RecordedCall
from retrospan._tracing import current_tracer
from retrospan.attributes import Stage

_NOT_GIVEN: Final = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Declared:
    """What is known of a request before it begins."""

    name: str
    version: str | None
    input: object
    conversation_id: str | None
    user_id: object
    user_roles: Sequence[str]
    capture: CaptureSettings

    def begin(self, input: Callable[[], object]) -> Step | None:
        """Start the span of one request; None where nobody would know of it."""
        name = f"invoke_workflow {clean_text(self.name)}"
        step = open_step(current_tracer(), Stage.REQUEST, name, opens=self.capture)
        if step is None or step.request is None:
            return None
        request = step.request
        step.record(
            lambda: request_attributes(
                RequestFacts(
                    name=self.name,
                    version=self.version,
                    input=_read_input(input),
                    run=current_run(),
                    conversation_id=self.conversation_id,
                    user_id=self.user_id,
                    user_roles=self.user_roles,
                ),
                request.capture,
            )
        )
        return step


def _read_input(input: Callable[[], object]) -> object:
    with guarded("find the input of a request"):
        return input()
    return None


class RequestScope:
    """A request, to be entered as a block (`with` or `async with`) or to decorate a function.

    The block gives the reference by which feedback names the request later.
    As a decorator it may be used any number of times, and each call is a request.
    """

    __slots__ = ("_declared", "_open")

    def __init__(self, declared: _Declared) -> None:
        self._declared = declared
        self._open: list[Step | None] = []

    def __call__(self, function: F, /) -> F:
        """Return the function, with each call recorded as a request."""
        return recorded(function, "request", self._opening)

    def _opening(self, function: Callable[..., Any]) -> "_RequestOpening":
        return _RequestOpening(self._declared, Parameters(function))

    def __enter__(self) -> RequestReference | None:
        given = self._declared.input
        step: Step | None = None
        with guarded("start a request"):
            step = self._declared.begin(lambda: None if given is _NOT_GIVEN else given)
        self._open.append(step)
        if step is None:
            return None
        step.enter()
        return current_request()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with guarded("end a request"):
            step = self._ending()
            if step is not None:
                step.__exit__(kind, error, traceback)

    async def __aenter__(self) -> RequestReference | None:
        return self.__enter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.__exit__(kind, error, traceback)

    def _ending(self) -> Step | None:
        """Return the step that ends: this code's own, where several share this object."""
        current = open_request()
        if len(self._open) > 1 and current is not None:
            for step in reversed(self._open):
                if step is not None and step.request is current:
                    self._open.remove(step)
                    return step
        return self._open.pop()


class _RequestOpening:
    """Starts the record of each call of a decorated function."""

    __slots__ = ("_declared", "_parameters")

    def __init__(self, declared: _Declared, parameters: Parameters) -> None:
        self._declared = declared
        self._parameters = parameters

    def __call__(
        self, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> RecordedCall | None:
        step = self._declared.begin(lambda: self._input(args, kwargs))
        return None if step is None else RecordedCall(step)

    def _input(self, args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
        declared = self._declared.input
        if callable(declared):
            return declared(*args, **kwargs)
        if declared is not _NOT_GIVEN:
            return declared
        given = self._parameters.given(args, kwargs)
        return next(iter(given.values())) if len(given) == 1 else given


@overload
def request(function: F, /) -> F: ...
@overload
def request(
    *,
    name: str,
    input: object = ...,
    version: str | None = None,
    conversation_id: str | None = None,
    user_id: str | None = None,
    user_roles: Sequence[str] = (),
    capture: CaptureMode | None = None,
    redact: Redact | None = None,
    hash_key: bytes | str | None = None,
    max_text_length: int | None = None,
    max_metadata_length: int | None = None,
) -> RequestScope: ...
def request(
    function: F | None = None,
    /,
    *,
    name: str | None = None,
    input: object = _NOT_GIVEN,
    version: str | None = None,
    conversation_id: str | None = None,
    user_id: str | None = None,
    user_roles: Sequence[str] = (),
    capture: CaptureMode | None = None,
    redact: Redact | None = None,
    hash_key: bytes | str | None = None,
    max_text_length: int | None = None,
    max_metadata_length: int | None = None,
) -> F | RequestScope:
    """Return a request that encloses what is retrieved, assembled and generated in it.

    It is entered as a block, `with request(name=..., input=...):` or `async with`, or decorates
    a function of any kind; decorating bare, it takes the function's name. A stream that the
    function yields or returns is part of the request until it ends.

    Args:
        name: the system's name, on every request.
        input: what was asked. As a decorator: a function that takes the call's arguments and
            returns it; when not given, the only argument, or all of them by name.
        version: the version of the system's code.
        conversation_id: the conversation the request belongs to.
        user_id: the user's id, recorded only as an HMAC with `hash_key`.
        user_roles: what the caller may see.
        capture: how much of the content is recorded: `full`, `passages-hashed`, `hashed` or
            `none`; None for what `configure` says, else `full`.
        redact: returns what may be recorded of a text.
        hash_key: makes every hash an HMAC with this key.
        max_text_length: characters recorded of one text.
        max_metadata_length: characters recorded of one passage's metadata.

    Raises:
        ConfigurationError: an argument cannot work, or this is not a function.
    """
    if function is not None:
        name = clean_text(getattr(function, "__name__", type(function).__name__))
    check_text("request", "name", name)
    check_text("request", "version", version)
    if name is None:
        raise ConfigurationError("request needs a name: request(name='help-desk')")
    scope = RequestScope(
        _Declared(
            name=name,
            version=version,
            input=input,
            conversation_id=conversation_id,
            user_id=user_id,
            user_roles=user_roles,
            capture=CaptureSettings(
                capture=capture,
                redact=redact,
                hash_key=hash_key,
                max_text_length=max_text_length,
                max_metadata_length=max_metadata_length,
            ),
        )
    )
    return scope if function is None else scope(function)
