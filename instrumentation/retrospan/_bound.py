"""A system seen from outside: ask it, change its settings, or run it on given passages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from retrospan._assembly import BudgetRule, DroppedReason
from retrospan._decorators import settings_of
from retrospan._passages import Passage
from retrospan._request import Outcome, question, serve_whole
from retrospan._settings import SystemSettings
from retrospan._stages import Ask, RagSystem


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundSystem:
    """One instance of a decorated class, with settings of its own."""

    system: RagSystem
    settings: SystemSettings

    def with_settings(self, **changes: object) -> "BoundSystem":
        """Return the same system under other settings.

        Args:
            changes: any of depth, top_k, token_budget and budget_rule.

        Raises:
            ConfigurationError: a name is none of these, or a value cannot work.
        """
        return BoundSystem(system=self.system, settings=self.settings.changed(changes))

    def answer(self, input: object) -> Outcome:
        """Return the outcome of one request: retrieve, assemble, generate, as one trace.

        An async system runs on an event loop of the library, and a stream is read to its end.
        """
        return serve_whole(question(self.system, self.settings, input))

    def replay(
        self,
        input: object,
        passages: Sequence[Passage],
        *,
        top_k: int | None,
        token_budget: int | None,
        budget_rule: BudgetRule,
        ineligible: Mapping[int, DroppedReason] | None = None,
    ) -> Outcome:
        """Return the outcome of a request on these passages; `retrieve` is never called.

        Args:
            input: the input of the request.
            passages: the candidates, in the order they were recorded.
            top_k: positions to consider; None for all.
            token_budget: tokens the context may hold; None for no limit.
            budget_rule: what happens at a passage that does not fit.
            ineligible: 1-based positions that were out for a reason of their own.

        Raises:
            TypeError: there is a budget, and a passage has no token count.
        """
        return serve_whole(
            Ask(
                system=self.system,
                settings=self.settings,
                input=input,
                passages=tuple(passages),
                top_k=top_k,
                token_budget=token_budget,
                rule=budget_rule,
                ineligible=ineligible,
            )
        )


def bind(system: object) -> BoundSystem:
    """Return a system to ask and to replay, from an instance of a decorated class.

    Raises:
        TypeError: it is not one.
    """
    settings = settings_of(system)
    return BoundSystem(system=cast(RagSystem, system), settings=settings)
