"""Turn a class with `retrieve` and `generate` into a system whose requests are recorded."""

import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final, TypeVar, cast

from retrospan._assembly import BudgetRule
from retrospan._capture import CaptureMode, CaptureSettings, Redact
from retrospan._errors import ConfigurationError
from retrospan._guard import note_once
from retrospan._request import Kind, kind_of, question, serve
from retrospan._settings import SystemSettings, index_version_text
from retrospan._stages import RagSystem, settled

SETTINGS_NAME: Final = "__retrospan_settings__"
"""The class attribute that holds a decorated class's settings."""

S = TypeVar("S")

_METHODS: Final = (
    ("retrieve", ("input", "depth"), True),
    ("generate", ("input", "context"), True),
    ("count_tokens", ("passage",), False),
    ("rerank", ("input", "passages"), False),
)


def rag_system(
    *,
    name: str,
    version: str,
    depth: int,
    top_k: int,
    token_budget: int | None = None,
    budget_rule: BudgetRule = "stop",
    index_version: str | Mapping[str, str] | None = None,
    prompt_version: str | None = None,
    deterministic: bool = False,
    answer_path: str = "answer",
    citations_path: str = "citations",
    tokenizer: str | None = None,
    capture: CaptureMode | None = None,
    redact: Redact | None = None,
    hash_key: bytes | str | None = None,
    max_text_length: int | None = None,
    max_metadata_length: int | None = None,
) -> Callable[[type[S]], type[S]]:
    """Return a class decorator that adds `answer(input)`, recorded as one trace.

    The class has `retrieve(self, input, depth) -> Retrieval` and
    `generate(self, input, context)`, where `context` is a tuple of `Passage` in prompt order;
    `count_tokens(self, passage) -> int` and `rerank(self, input, passages)` are optional.
    `retrieve`, `rerank` and `generate` may be async; `generate` may also be a generator of
    either kind, or return a stream. `answer(input)` is called as `generate` is, and async when
    any of them is; it returns or yields what `generate` did.

    Args:
        name: the system's name, on every request.
        version: the version of its code.
        depth: how many candidates are asked of the retriever.
        top_k: how many of them may enter the prompt.
        token_budget: tokens the context may hold; None for no limit.
        budget_rule: `stop` at the first passage that does not fit, or `skip` it.
        index_version: what the index was built from: a text, or a mapping of its parts.
        prompt_version: version of the prompt.
        deterministic: declares that `generate` gives the same answer twice.
        answer_path: where the answer stands in a mapping that `generate` returns.
        citations_path: where the citations stand in it.
        tokenizer: name of what counts the tokens.
        capture: how much of the content is recorded: `full`, `passages-hashed`, `hashed` or
            `none`; None for what `configure` says, else `full`.
        redact: returns what may be recorded of a text.
        hash_key: makes every hash an HMAC with this key.
        max_text_length: characters recorded of one text.
        max_metadata_length: characters recorded of one passage's metadata.

    Raises:
        ConfigurationError: a setting, or the class, cannot work.
    """
    settings = SystemSettings(
        name=name,
        version=version,
        depth=depth,
        top_k=top_k,
        token_budget=token_budget,
        budget_rule=budget_rule,
        index_version=index_version_text(index_version),
        prompt_version=prompt_version,
        deterministic=deterministic,
        answer_path=answer_path,
        citations_path=citations_path,
        tokenizer=tokenizer,
        capture=CaptureSettings(
            capture=capture,
            redact=redact,
            hash_key=hash_key,
            max_text_length=max_text_length,
            max_metadata_length=max_metadata_length,
        ),
    )
    return partial(_decorate, settings)


def _decorate(settings: SystemSettings, cls: type[S]) -> type[S]:
    _check_class(cls)
    counts = getattr(cls, "count_tokens", None) is not None
    setattr(cls, SETTINGS_NAME, replace(settings, has_token_counter=counts))
    method = answer_async if kind_of(cls) is Kind.COROUTINE else answer
    cls.answer = method  # type: ignore[attr-defined]  # the method this decorator is for
    if settings.index_version is None:
        note_once(
            f"index_version: {settings.name}",
            f"the system {settings.name!r} declares no index_version: answers recorded before and"
            " after an index was rebuilt cannot be told apart",
            logging.WARNING,
        )
    return cls


def answer(self: object, input: Any) -> Any:
    """Answer one input: retrieve, assemble, generate; return what `generate` returned."""
    return serve(question(cast(RagSystem, self), settings_of(self), input))


async def answer_async(self: object, input: Any) -> Any:
    """Answer one input: retrieve, assemble, generate; return what `generate` returned."""
    return await settled(serve(question(cast(RagSystem, self), settings_of(self), input)))


def settings_of(system: object) -> SystemSettings:
    """Return the settings of a decorated class's instance.

    Raises:
        TypeError: it is not one.
    """
    settings = getattr(type(system), SETTINGS_NAME, None)
    if not isinstance(settings, SystemSettings):
        given = f"the class {system.__qualname__}" if isinstance(system, type) else repr(system)
        raise TypeError(
            f"expected an instance of a class decorated with retrospan.rag_system; got {given}"
        )
    return settings


def _check_class(cls: object) -> None:
    if not isinstance(cls, type):
        raise ConfigurationError(f"rag_system decorates a class; it was given {cls!r}")
    existing = getattr(cls, "answer", None)
    if existing is not None and existing not in (answer, answer_async):
        raise ConfigurationError(
            f"{cls.__qualname__} already has an answer, which rag_system would hide: rename it"
        )
    for method, parameters, required in _METHODS:
        _check_method(cls, method, parameters, required)


def _check_method(cls: type, name: str, parameters: tuple[str, ...], required: bool) -> None:
    shape = f"{cls.__qualname__}.{name}(self, {', '.join(parameters)})"
    method = getattr(cls, name, None)
    if method is None and not required:
        return
    if not callable(method):
        raise ConfigurationError(f"a rag_system needs a method {shape}")
    if name == "count_tokens" and inspect.iscoroutinefunction(method):
        raise ConfigurationError(f"{shape} must be a plain function; it is an async one")
    if name != "generate" and (
        inspect.isgeneratorfunction(method) or inspect.isasyncgenfunction(method)
    ):
        raise ConfigurationError(f"{shape} must return its result whole; it is a generator")
    given = parameters
    if not isinstance(inspect.getattr_static(cls, name), staticmethod | classmethod):
        given = ("self", *parameters)
    try:
        inspect.signature(method).bind(*given)
    except TypeError as error:
        raise ConfigurationError(f"a rag_system calls {shape}: {error}") from error
    except ValueError:
        return  # built-in callables may have no signature to look at
