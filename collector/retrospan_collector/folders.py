"""Folders that cannot be used, said in one sentence."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from retrospan_collector.errors import FolderUnusable

OTHER_FOLDER = (
    "name another with --store embedded:DIRECTORY or serve's --spool, or start in another folder"
)
"""What to do about any of our folders."""

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


@contextmanager
def kept_in(folder: Path, what: str, remedy: str) -> Iterator[None]:
    """Turn the OSError of whatever works in a folder into FolderUnusable.

    Args:
        what: what the folder is for, after "a directory to keep".
        remedy: what to do about it.
    """
    try:
        yield
    except OSError as error:
        raise unusable(folder, what, remedy, error) from error


def unusable(folder: Path, what: str, remedy: str, error: OSError) -> FolderUnusable:
    """The sentence about a folder that failed us."""
    remedy = f"make room there, or {remedy}" if error.errno in _FULL else remedy
    return FolderUnusable(
        f"expected a directory to keep {what} in at {folder} and could not use it: "
        f"{reason(error)}; {remedy}"
    )


def reason(error: OSError) -> str:
    """The system's own words, and the path they are about where it says one."""
    if isinstance(error, FileExistsError):
        return f"a file is in its place ({error.filename})"
    words = error.strerror or str(error)
    return f"{words} ({error.filename})" if error.filename else words


def hindrance(folder: Path) -> OSError | None:
    """What would keep this user from creating or writing to a folder; None if nothing does.

    Only trying tells: permission bits say nothing of a read-only mount or of root. What is
    tried is a folder of another name with one page in it, gone again at once.
    """
    nearest = folder
    while not os.path.lexists(nearest) and nearest != nearest.parent:
        nearest = nearest.parent
    try:
        with tempfile.TemporaryDirectory(prefix=".retrospan-", dir=nearest) as tried:
            Path(tried, "page").write_bytes(bytes(4096))  # a full disk still has names to give
            return None
    except OSError as error:
        return OSError(error.errno, error.strerror, str(nearest))
