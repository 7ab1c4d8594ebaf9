"""The ladder: a request's candidates in order, where the prompt was cut, and why each went.

A pure function of a recorded request; what was not recorded is shown as unknown, never inferred.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.text import Text

from retrospan_evaluator.cli.layout import fold, pad, shorten, wrap
from retrospan_evaluator.traces.request import RecordedPassage, RecordedRequest

UNKNOWN = "?"
_GAP = "  "
_TITLES = ("pos", "passage", "score", "tokens", "total", "in the prompt?")
_ID = 1
_LEFT_ALIGNED = (_ID, 5)
_WIDEST_ID = 40
_DROPPED = {
    "top_k": "dropped: below top-k",
    "budget": "dropped: over budget",
    "duplicate": "dropped: duplicate",
    "score": "dropped: low score",
    "filter": "dropped: filtered out",
}


@dataclass(frozen=True, slots=True)
class Cut:
    """A line across the ladder."""

    after: int
    """The position it comes after; 0 = above the first passage."""
    label: str


def ladder(request: RecordedRequest, width: int, *, whole_texts: bool = False) -> list[Text]:
    """The lines of the ladder, none wider than `width`.

    Args:
        whole_texts: every passage in full instead of the beginning of it on one line.
    """
    decimals = _decimals(request.passages)
    rows = [_cells(passage, request, decimals) for passage in request.passages]
    widths = _widths(rows, width)
    lines = [Text(_line(_TITLES, widths), style="bold")]
    cuts = cuts_of(request)
    lines += _rules(cuts, 0, widths)
    for passage, row in zip(request.passages, rows, strict=True):
        style = _style(passage)
        lines += [Text(line, style=style) for line in _row_lines(row, widths)]
        lines += _text_lines(passage, width, whole_texts)
        lines += _rules(cuts, passage.position, widths)
    return lines


def cuts_of(request: RecordedRequest) -> tuple[Cut, ...]:
    """Where top-k and the token budget cut this request's candidates; none if not recorded."""
    if not request.assembly_recorded:
        return ()
    top_k, budget = request.settings.top_k, request.settings.token_budget
    after_budget = _budget_cut(request)
    after_top_k = top_k if top_k is not None and top_k < len(request.passages) else None
    if after_top_k is not None and after_top_k == after_budget:
        return (Cut(after_top_k, f"top-k {top_k} and token budget {budget} cut here"),)
    found = []
    if after_budget is not None:
        beyond = after_top_k is not None and after_budget > after_top_k
        skips = request.settings.budget_rule == "skip"
        verb = "would cut" if beyond else "first leaves one out" if skips else "cuts"
        found.append(Cut(after_budget, f"token budget {budget} {verb} here"))
    if after_top_k is not None:
        found.append(Cut(after_top_k, f"top-k {top_k} cuts here"))
    return tuple(found)


def _budget_cut(request: RecordedRequest) -> int | None:
    """The position after which the budget cuts: what was recorded, else the running totals."""
    for passage in request.passages:
        if passage.dropped_reason == "budget":
            return passage.position - 1
    budget = request.settings.token_budget
    if budget is None:
        return None
    for passage in request.passages:
        if passage.cumulative_tokens is None:
            return None
        if passage.cumulative_tokens > budget:
            return passage.position - 1
    return None


def fate(passage: RecordedPassage, request: RecordedRequest) -> str:
    """Whether a passage entered the prompt, and why not, in words."""
    if passage.prompt_position is None:
        return "not recorded"
    if passage.prompt_position > 0:
        return f"kept, {_ordinal(passage.prompt_position)} in prompt"
    reason = passage.dropped_reason
    if reason is None:
        return "dropped: no reason given"
    if reason == "budget" and request.settings.budget_rule == "skip":
        return "dropped: does not fit"
    return _DROPPED.get(reason, shorten(f"dropped: {reason}", 24))


def _cells(
    passage: RecordedPassage, request: RecordedRequest, decimals: int | None
) -> tuple[str, ...]:
    return (
        str(passage.position),
        passage.id,
        _score(passage.score, decimals),
        UNKNOWN if passage.tokens is None else str(passage.tokens),
        UNKNOWN if passage.cumulative_tokens is None else str(passage.cumulative_tokens),
        fate(passage, request),
    )


def _widths(rows: Sequence[tuple[str, ...]], width: int) -> list[int]:
    """Every column as wide as its widest cell; the ids take what is left, at most all they need."""
    widest = [max(map(cell_len, column)) for column in zip(_TITLES, *rows, strict=True)]
    others = sum(widest) - widest[_ID] + len(_GAP) * (len(_TITLES) - 1)
    widest[_ID] = max(len(_TITLES[_ID]), min(widest[_ID], _WIDEST_ID, width - others))
    return widest


def _row_lines(row: tuple[str, ...], widths: Sequence[int]) -> Iterator[str]:
    first, *more = fold(row[_ID], widths[_ID])
    yield _line((*row[:_ID], first, *row[_ID + 1 :]), widths)
    for piece in more:
        yield _line(("", piece, "", "", "", ""), widths)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [
        pad(cell, width, right=index not in _LEFT_ALIGNED)
        for index, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return _GAP.join(padded).rstrip()


def _text_lines(passage: RecordedPassage, width: int, whole: bool) -> Iterator[Text]:
    """The document, where it is not named like the passage, and the text beside or below it."""
    indent = " " * (len(_TITLES[0]) + len(_GAP))
    room = max(20, width - len(indent))
    document = "" if passage.document_id == passage.id else f"[{passage.document_id}]"
    if cell_len(document) > room // 3 or (document and not passage.text):
        yield from (Text(indent + line, style="dim") for line in fold(document, room))
        document = ""
    if not passage.text:
        return
    beside = f"{fold(document, room)[0]} " if document else ""
    room -= cell_len(beside)
    first, *more = wrap(passage.text, room) if whole else [shorten(passage.text, room)]
    yield Text(indent + beside + first, style="dim")
    yield from (Text(indent + line, style="dim") for line in more)


def _rules(cuts: Sequence[Cut], position: int, widths: Sequence[int]) -> Iterator[Text]:
    across = sum(widths) + len(_GAP) * (len(widths) - 1)
    for cut in cuts:
        if cut.after == position:
            head = f"── {cut.label} "
            yield Text(head + "─" * max(2, across - cell_len(head)), style="yellow")


def _style(passage: RecordedPassage) -> str:
    if passage.prompt_position is None:
        return ""
    return "green" if passage.prompt_position > 0 else "red"


def _decimals(passages: Sequence[RecordedPassage]) -> int | None:
    """As many decimals as the scores' size asks for; None writes each in its own way."""
    sizes = [abs(passage.score) for passage in passages if passage.score is not None]
    largest = max(sizes, default=0.0)
    if largest == 0.0 or 0.01 <= largest < 1e6:
        return 4 if largest < 1 else 3 if largest < 10 else 2
    return None


def _score(score: float | None, decimals: int | None) -> str:
    if score is None:
        return UNKNOWN
    return f"{score:.3g}" if decimals is None else f"{score:.{decimals}f}"


def _ordinal(number: int) -> str:
    teens = number % 100 in (11, 12, 13)
    ending = "th" if teens else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
