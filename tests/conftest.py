"""What every test shares: where the real collections are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of public collections; a test that needs it is skipped where it is missing."""
    root = Path(__file__).resolve().parent.parent
    folder = Path(os.environ.get("RETROSPAN_TEST_DATA", root / ".." / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no real collections at {folder}: set RETROSPAN_TEST_DATA")
    return folder
