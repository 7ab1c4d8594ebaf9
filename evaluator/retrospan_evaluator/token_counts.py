"""Whether a token budget can be applied at all, asked before a whole dataset is sent."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from opentelemetry.trace import NoOpTracerProvider

from retrospan import BoundSystem, Passage, Retrieval, run_scope
from retrospan_evaluator.errors import UsageError


def check_budget_can_count(system: BoundSystem, input: object) -> None:
    """Refuse a token budget that every request would fail on, for want of token counts.

    A system with a `count_tokens` method is not asked. Of another one the passages must carry
    their counts, and whether they do is seen by retrieving once, unrecorded. Where that fails
    nothing is refused here: the run shows what went wrong, case by case.

    Raises:
        UsageError: there is a budget, and a passage it would be applied to has no count.
    """
    settings = system.settings
    if settings.token_budget is None or settings.has_token_counter:
        return
    try:
        candidates = _candidates(system, input)
    except Exception:  # the system's own code may raise anything
        return
    for position, passage in enumerate(candidates[: settings.top_k], start=1):
        if isinstance(passage, Passage) and passage.tokens is None:
            raise UsageError(
                f"a token budget of {settings.token_budget} needs token counts, and neither the "
                f"system {settings.name!r} nor the passage at position {position} "
                f"(id {passage.id!r}) has one: set Passage.tokens, give the system a "
                "count_tokens method, or run with --set token_budget=none"
            )


def _candidates(system: BoundSystem, input: object) -> Sequence[object]:
    """What assembly would be given; nothing where the stages have to be awaited."""
    with run_scope(run_id="token-counts", tracer_provider=NoOpTracerProvider()):
        found: object = system.system.retrieve(input, system.settings.depth)
        if inspect.iscoroutine(found):
            found.close()
        if not isinstance(found, Retrieval):
            return ()
        rerank = getattr(system.system, "rerank", None)
        reranked: object = found.candidates if rerank is None else rerank(input, found.candidates)
        if inspect.iscoroutine(reranked):
            reranked.close()
    return reranked if isinstance(reranked, list | tuple) else ()
