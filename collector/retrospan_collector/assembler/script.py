"""Which writing system a question is in."""

from __future__ import annotations

import re
from typing import Final

from retrospan_collector.clickhouse.request_row import Script

_ARABIC: Final = re.compile(
    "[\u0620-\u064a\u066e-\u06d3\u06fa-\u06ff\u0750-\u077f\u08a0-\u08c9\ufb50-\ufdff\ufe70-\ufefc]"
)
_LATIN: Final = re.compile("[A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff]")
_LETTER: Final = re.compile(r"[^\W\d_]")
_MINORITY: Final = 0.2
"""A product name inside a sentence does not make it mixed; a fifth of its letters does."""


def script_of(text: str) -> Script:
    """The writing system of a text's letters; empty for a text without any."""
    if text.isascii():
        return "latin" if _LATIN.search(text) else ""
    letters = len(_LETTER.findall(text))
    if letters == 0:
        return ""
    arabic = len(_ARABIC.findall(text)) / letters
    latin = len(_LATIN.findall(text)) / letters
    if arabic >= _MINORITY and latin >= _MINORITY:
        return "mixed"
    if max(arabic, latin) <= 0.5:
        return "other"
    return "arabic" if arabic > latin else "latin"
