"""Keeping the driver from importing pandas, which we never use."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def pandas_left_out() -> Iterator[None]:
    """Let the driver be given rows without importing pandas to ask whether they are a data frame.

    That import is a second of processor time and 70 MB in every process that inserts. Where
    somebody has imported pandas the question costs nothing and is let be; and afterwards the
    driver finds pandas as before, for a system of the user's that reads data frames with it.
    """
    from clickhouse_connect.driver import options

    known = vars(options)
    if "pd" in known or "pandas" in sys.modules:
        yield
        return
    known["pd"] = None
    try:
        yield
    finally:
        known.pop("pd", None)
