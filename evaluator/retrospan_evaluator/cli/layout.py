"""Fits text into columns of a terminal, by the cells it takes up and not by its characters."""

from __future__ import annotations

from rich.cells import cell_len, chop_cells

from retrospan_evaluator import untrusted

ELLIPSIS = "…"


def wrap(text: str, width: int) -> list[str]:
    """A trace's text as lines no wider than `width`, each kept in its own direction.

    Lines of the text stay lines; a word that is too long is cut. An empty text is one empty line.
    """
    lines = []
    for paragraph in untrusted.terminal(text).split("\n"):
        line = ""
        for word in paragraph.split():
            longer = f"{line} {word}" if line else word
            if cell_len(longer) <= width:
                line = longer
                continue
            if line:
                lines.append(line)
            *full, line = chop_cells(word, width)
            lines += full
        lines.append(line)
    return [untrusted.isolate(line) for line in lines]


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
