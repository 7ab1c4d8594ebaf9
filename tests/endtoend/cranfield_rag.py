"""Retrieval over Cranfield's 1,400 abstracts: BM25 (the library bm25s), fifty deep, ten kept.

There is nothing to answer in Cranfield, so the generator quotes the title of the first abstract in
its context. Loaded as `cranfield_rag:CranfieldRag`; the collection is found by
`RETROSPAN_TEST_DATA`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import bm25s

from retrospan import Passage, Retrieval, rag_system

_WORD = re.compile(r"[a-z0-9]+")
_RECORD = re.compile(r"^\.I +", re.MULTILINE)
_SECTION = re.compile(r"^\.([TABW])[ \n]", re.MULTILINE)

# The shortest list that leaves the questions their words: "what … of the … in a …".
_STOPWORDS = frozenset(
    "a an and are as at be by for from has have in is it of on or the to".split()
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Abstract:
    """One document; two of the 1,400 have neither title nor text."""

    id: str
    title: str
    text: str


def folder() -> Path:
    """Where the collection is."""
    root = Path(__file__).resolve().parents[2]
    data = Path(os.environ.get("RETROSPAN_TEST_DATA", root / ".." / "shared" / "data"))
    return data / "cranfield"


def records(path: Path) -> Iterator[tuple[str, Mapping[str, str]]]:
    """The records of a SMART file: each with its `.I` number and its sections by letter."""
    for record in _RECORD.split(path.read_text("ascii"))[1:]:
        number, _, body = record.partition("\n")
        parts = _SECTION.split(body)
        sections = zip(parts[1::2], parts[2::2], strict=True)
        yield number.strip(), {letter: " ".join(text.split()) for letter, text in sections}


def abstracts() -> list[Abstract]:
    """The documents in the order of the file."""
    return [
        Abstract(id=number, title=sections.get("T", ""), text=sections.get("W", ""))
        for number, sections in records(folder() / "cran.all.1400")
    ]


def words(text: str) -> list[str]:
    """The words that are compared: lower case, without the commonest ones and plural endings."""
    found = (word for word in _WORD.findall(text.lower()) if word not in _STOPWORDS)
    return [word[:-1] if len(word) > 3 and word.endswith("s") else word for word in found]


@rag_system(
    name="cranfield",
    version="1",
    depth=50,
    top_k=10,
    index_version="cranfield-1400",
    deterministic=True,
)
class CranfieldRag:
    """BM25 over title and text."""

    def __init__(self) -> None:
        self._abstracts = abstracts()
        self._index = bm25s.BM25()
        # The text of an abstract begins with its title, so the title weighs twice.
        self._index.index(
            [words(f"{a.title} {a.text}") for a in self._abstracts], show_progress=False
        )

    def retrieve(self, input: Mapping[str, str], depth: int) -> Retrieval:
        question = input["question"]
        found, scores = self._index.retrieve([words(question)], k=depth, show_progress=False)
        candidates = [
            Passage(self._abstracts[int(n)].id, self._abstracts[int(n)].text, float(score))
            for n, score in zip(found[0], scores[0], strict=True)
        ]
        return Retrieval(question, candidates, depth)

    def generate(
        self, input: Mapping[str, str], context: Sequence[Passage]
    ) -> Mapping[str, str | list[str]]:
        best = context[0]
        return {"answer": best.text.partition(" . ")[0], "citations": [best.id]}
