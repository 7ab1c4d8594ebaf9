"""Record what a retrieval-augmented system retrieved, kept and dropped.

Decorate a class that has `retrieve` and `generate` with `rag_system`; its `answer(input)` is
then one OpenTelemetry trace, with the passages found, the ones that entered the prompt, and
the reason for each that did not.
"""

from retrospan._assembly import Assembly, BudgetRule, DroppedReason, Placement, assemble
from retrospan._bound import BoundSystem, bind
from retrospan._decorators import rag_system
from retrospan._errors import ConfigurationError
from retrospan._otlp import configure
from retrospan._passages import Passage, Retrieval
from retrospan._request import Outcome
from retrospan._run_scope import run_scope
from retrospan._settings import SystemSettings

__all__ = [
    "Assembly",
    "BoundSystem",
    "BudgetRule",
    "ConfigurationError",
    "DroppedReason",
    "Outcome",
    "Passage",
    "Placement",
    "Retrieval",
    "SystemSettings",
    "assemble",
    "bind",
    "configure",
    "rag_system",
    "run_scope",
]
