"""Record what a retrieval-augmented system retrieved, kept and dropped.

Decorate a class that has `retrieve` and `generate` with `rag_system`; its `answer(input)` is
then one OpenTelemetry trace, with the passages found, the ones that entered the prompt, and
the reason for each that did not.
"""

from retrospan._assembly import Assembly, BudgetRule, DroppedReason, Placement
from retrospan._bound import BoundSystem, bind
from retrospan._capture import CaptureMode
from retrospan._carry import carry
from retrospan._context_record import assemble, record_context
from retrospan._decorators import rag_system
from retrospan._details import record_caller, record_generation
from retrospan._errors import ConfigurationError
from retrospan._feedback import RequestReference, current_request, feedback
from retrospan._functions import generate, retrieve
from retrospan._otlp import configure
from retrospan._passages import Passage, Retrieval
from retrospan._request import Outcome
from retrospan._request_scope import request
from retrospan._run_scope import run_scope
from retrospan._settings import SystemSettings

__all__ = [
    "Assembly",
    "BoundSystem",
    "BudgetRule",
    "CaptureMode",
    "ConfigurationError",
    "DroppedReason",
    "Outcome",
    "Passage",
    "Placement",
    "RequestReference",
    "Retrieval",
    "SystemSettings",
    "assemble",
    "bind",
    "carry",
    "configure",
    "current_request",
    "feedback",
    "generate",
    "rag_system",
    "record_caller",
    "record_context",
    "record_generation",
    "request",
    "retrieve",
    "run_scope",
]
