"""Fits text into columns of a terminal, by the cells it takes up and not by its characters."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len, chop_cells

from retrospan_evaluator import untrusted

ELLIPSIS = "…"


def wrap(text: str, width: int) -> list[str]:
    """A trace's text as lines no wider than `width`, each kept in its own direction.

    Lines of the text stay lines; a word that is too long is cut. An empty text is one empty line.
    """
    return [
        line
        for paragraph in untrusted.terminal(text).split("\n")
        for line in untrusted.isolate_lines(paragraph, list(_broken(paragraph, width)))
    ]


def _broken(paragraph: str, width: int) -> Iterator[str]:
    line = ""
    for word in paragraph.split():
        longer = f"{line} {word}" if line else word
        if cell_len(longer) <= width:
            line = longer
            continue
        if line:
            yield line
        *full, line = chop_cells(word, width)
        yield from full
    yield line


def shorten(text: str, width: int) -> str:
    """A trace's text as one line no wider than `width`, ending in `…` where it was cut."""
    line = untrusted.terminal_cell(text)
    if cell_len(line) > width:
        line = chop_cells(line, width - 1)[0].rstrip() + ELLIPSIS
    return untrusted.isolate(line)


def fold(text: str, width: int) -> list[str]:
    """An id over as many lines as it needs: it is never cut short, for it may be copied."""
    line = untrusted.terminal_cell(text)
    return [untrusted.isolate(piece) for piece in chop_cells(line, width)] or [""]


def pad(shown: str, width: int, *, right: bool = False) -> str:
    """A shown cell filled up to `width`; `right` puts it at the right edge."""
    fill = " " * max(0, width - cell_len(shown))
    return fill + shown if right else shown + fill
