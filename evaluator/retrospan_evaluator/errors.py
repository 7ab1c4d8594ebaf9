"""Every error the evaluator raises on purpose, with the exit code its command ends with.

EvaluatorError
├── UsageError              exit 2: what was typed or written is wrong
│   ├── MalformedCase       a line of a dataset cannot be read as a case
│   └── SystemNotImportable `module:name` does not lead to a decorated system
└── RefusedError            exit 1: the request is understood and cannot be met now
    ├── UnknownTrace        nothing is stored under the trace id (traces/errors.py)
    └── SeveralRequests     the trace holds several requests (traces/errors.py)

A message is one sentence: what was expected, what came, what to do.
"""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar


class EvaluatorError(Exception):
    """Something the user can act on; the command line prints it without a traceback."""

    exit_code: ClassVar[int] = 1


class UsageError(EvaluatorError):
    """What was typed or written is wrong: an option, a dataset, the name of a system."""

    exit_code: ClassVar[int] = 2


class MalformedCase(UsageError):
    """A dataset's line that cannot be read as a case, with the place and the remedy."""

    def __init__(self, path: Path, line: int, field: str, problem: str, remedy: str) -> None:
        self.path = path
        self.line = line
        self.field = field
        place = f"{path}, line {line}" + (f", field {field}" if field else "")
        super().__init__(f"{place}: {problem}; {remedy}")


class SystemNotImportable(UsageError):
    """The text after `--system` does not lead to a class or factory of a decorated system."""


class RefusedError(EvaluatorError):
    """The request is understood and cannot be met now: no such trace, nothing recorded yet."""

    exit_code: ClassVar[int] = 1
