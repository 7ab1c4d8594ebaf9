"""`python -m retrospan_evaluator` is the command `retrospan`."""

from __future__ import annotations

from retrospan_evaluator.cli.app import main

if __name__ == "__main__":
    main()
