"""Metrics of the answer: does it contain the expected text, do its citations lead anywhere."""

from __future__ import annotations

import unicodedata

from retrospan_evaluator.metrics.request import ScoredRequest
from retrospan_evaluator.metrics.score import Score

# Marks that a reader does not see, or sees as mere decoration of the same word: soft hyphen,
# Arabic stretching, zero-width space, direction marks and isolates, byte order mark.
_UNSEEN = dict.fromkeys(
    [0x00AD, 0x0640, 0x061C, 0x200B, 0x2060, 0xFEFF]
    + [*range(0x200E, 0x2010), *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
)
_SEPARATORS = {"٫": ".", "٬": ","}


def contains(answer: str, expected: str) -> bool:
    """Whether the expected text stands in the answer, for a reader of any script.

    Both are compared after NFKC and case folding, with every script's digits as 0–9, runs of
    blanks as one, and invisible marks removed. A number must stand whole: `14` is not in `114`,
    nor in `14.5`.
    """
    text, wanted = comparable(answer), comparable(expected)
    if not wanted:
        return False
    start = text.find(wanted)
    while start >= 0:
        if not _cuts_a_number(text, start, start + len(wanted)):
            return True
        start = text.find(wanted, start + 1)
    return False


def comparable(text: str) -> str:
    """A text in the form in which `contains` compares."""
    folded = unicodedata.normalize("NFKC", text.translate(_UNSEEN)).casefold()
    # Folding can undo the normal form, so it is made once more.
    normal = unicodedata.normalize("NFKC", folded)
    return " ".join("".join(_plain(character) for character in normal).split())


def answer_correct(request: ScoredRequest) -> Score:
    """`contains` against the case's expected answer."""
    name = "answer_correct"
    expected = request.case.expected_answer
    if expected is None:
        return Score.undefined(name, "the case expects no particular answer")
    if request.answer is None:
        return Score.failed(name, request.answer_missing)
    return Score.verdict(name, contains(request.answer, expected))


def citations_valid(request: ScoredRequest) -> Score:
    """Whether every citation points at a passage that stood in the prompt."""
    name = "citations_valid"
    if request.answer is None:
        return Score.failed(name, request.answer_missing)
    if not request.citations:
        return Score.undefined(name, "the answer carries no citation")
    dangling = ", ".join(request.dangling_citations)
    return Score.verdict(name, not dangling, f"not in the prompt: {dangling}" if dangling else "")


def _plain(character: str) -> str:
    digit = unicodedata.decimal(character, None)
    return _SEPARATORS.get(character, character) if digit is None else str(digit)


def _cuts_a_number(text: str, start: int, end: int) -> bool:
    """Whether the stretch begins or ends inside a longer number."""
    return _joined(text[:start][::-1], text[start]) or _joined(text[end:], text[end - 1])


def _joined(outside: str, edge: str) -> bool:
    """Whether a digit at the edge goes on outside, directly or over a separator."""
    if not edge.isdecimal() or not outside:
        return False
    return outside[0].isdecimal() or (
        outside[0] in ".," and len(outside) > 1 and outside[1].isdecimal()
    )
