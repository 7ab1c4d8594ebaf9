"""Where a setting comes from: its flag, then the environment, then the default."""

from __future__ import annotations

import os
from collections.abc import Mapping

STORE_VARIABLE = "RETROSPAN_STORE"
"""Names the store where `--store` does not."""

DEBUG_VARIABLE = "RETROSPAN_DEBUG"
"""Set to anything but `0`: errors come with their traceback, as with `--debug`."""

DEFAULT_STORE = "embedded:./retrospan-data"
"""Used where neither the flag nor the environment names a store."""


def debug_wanted(flag: bool, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether errors are shown with their traceback."""
    return flag or environment.get(DEBUG_VARIABLE, "0") not in ("", "0")
