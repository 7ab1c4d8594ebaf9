"""Record functions that retrieve or generate, wherever they stand."""

from collections.abc import Callable
from typing import Any, overload

from retrospan._calls import Decorator, F, recorded
from retrospan._generating import Generating
from retrospan._passages import Passage
from retrospan._retrieving import IndexVersion, Retrieving


@overload
def retrieve(function: F, /) -> F: ...
@overload
def retrieve(
    *,
    passages: Callable[[Any], object] | None = None,
    index_version: IndexVersion | Callable[..., IndexVersion | None] | None = None,
    depth: int | str | None = None,
    query: str | Callable[..., object] | None = None,
    score_kind: str | None = None,
    data_source_id: str | None = None,
    embedding_model: str | None = None,
    tokenizer: str | None = None,
    count_tokens: Callable[[Passage], int] | None = None,
    filter: object = None,
) -> Decorator: ...
def retrieve(
    function: F | None = None,
    /,
    *,
    passages: Callable[[Any], object] | None = None,
    index_version: IndexVersion | Callable[..., IndexVersion | None] | None = None,
    depth: int | str | None = None,
    query: str | Callable[..., object] | None = None,
    score_kind: str | None = None,
    data_source_id: str | None = None,
    embedding_model: str | None = None,
    tokenizer: str | None = None,
    count_tokens: Callable[[Passage], int] | None = None,
    filter: object = None,
) -> F | Decorator:
    """Record each call of a function as a retrieval: what was asked, and what was found.

    For any function: plain, async, a generator, a method. Used bare, or with any of the
    arguments. The function itself is not changed in any way.

    Args:
        passages: turns what the function returns into passages; not needed for a `Retrieval`,
            lists of `Passage`, of LangChain, LlamaIndex or Haystack documents, of mappings,
            tuples or texts.
        index_version: version of the index: a text, a mapping of its parts, or a function that
            gives one of these at each call, with the call's arguments or without any.
        depth: how many passages are asked for: a number, or the name of the parameter that
            says so; found by its name when not given.
        query: the name of the parameter that holds the query, or a function that takes the
            call's arguments and returns it; found by its name when not given.
        score_kind: what a score measures, such as `similarity` or `distance`.
        data_source_id: the index or collection searched.
        embedding_model: the model that embeds queries.
        tokenizer: name of the tokenizer that counts.
        count_tokens: counts a passage that does not know its tokens; for the record only.
        filter: what the search is restricted by: a value, the name of the parameter that holds
            it, or a function that takes the call's arguments and returns it.

    Raises:
        ConfigurationError: an argument cannot work, or this is not a function.
    """
    declared = Retrieving(
        passages=passages,
        index_version=index_version,
        depth=depth,
        query=query,
        score_kind=score_kind,
        data_source_id=data_source_id,
        embedding_model=embedding_model,
        tokenizer=tokenizer,
        count_tokens=count_tokens,
        filter=filter,
    )

    def decorate(decorated: Any, /) -> Any:
        return recorded(decorated, "retrieve", declared.opening)

    if function is None:
        return decorate
    return recorded(function, "retrieve", declared.opening)


@overload
def generate(function: F, /) -> F: ...
@overload
def generate(
    *,
    name: str | None = None,
    answer: str | Callable[[Any], object] = "answer",
    citations: str | Callable[[Any], object] = "citations",
    model: str | None = None,
    prompt_name: str | None = None,
    prompt_version: str | None = None,
) -> Decorator: ...
def generate(
    function: F | None = None,
    /,
    *,
    name: str | None = None,
    answer: str | Callable[[Any], object] = "answer",
    citations: str | Callable[[Any], object] = "citations",
    model: str | None = None,
    prompt_name: str | None = None,
    prompt_version: str | None = None,
) -> F | Decorator:
    """Record each call of a function as a generation: the answer, its citations, what it took.

    For any function: plain, async, a generator, a method. A stream it yields or returns is
    followed to its end. Used bare, or with any of the arguments. The function itself is not
    changed in any way.

    Args:
        name: the span's name; `chat MODEL` or the function's name when not given.
        answer: where the answer stands in a mapping that the function returns, or a function
            that takes what it returned and gives the answer. Of a stream it takes the whole
            text, or the list of the items where these are not texts.
        citations: where the citations stand, or a function that gives them, likewise.
        model: the model asked.
        prompt_name: name of the prompt.
        prompt_version: version of the prompt.

    Raises:
        ConfigurationError: an argument cannot work, or this is not a function.
    """
    declared = Generating(
        name=name,
        answer=answer,
        citations=citations,
        model=model,
        prompt_name=prompt_name,
        prompt_version=prompt_version,
    )

    def decorate(decorated: Any, /) -> Any:
        return recorded(decorated, "generate", declared.opening)

    if function is None:
        return decorate
    return recorded(function, "generate", declared.opening)
