"""What the read side refuses."""

from __future__ import annotations

from collections.abc import Sequence

from retrospan_evaluator.errors import RefusedError
from retrospan_evaluator.traces.request import RequestSummary


class UnknownTrace(RefusedError):
    """No request is stored under the trace id that was asked for."""


class SeveralRequests(RefusedError):
    """A trace holds several requests and none was named by its root span."""

    def __init__(self, trace_id: str, roots: Sequence[RequestSummary]) -> None:
        spans = ", ".join(root.root_span_id for root in roots)
        super().__init__(
            f"trace {trace_id} holds {len(roots)} requests: "
            f"name one by its root span with --root, one of {spans}"
        )
        self.roots = tuple(roots)
        """The requests of the trace, first started first."""
