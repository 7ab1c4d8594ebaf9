"""Question answering over XQuAD's 240 paragraphs, one system a language.

A BM25 retriever (the library bm25s) and a generator that extracts: it answers with the sentence
of its context that shares the rarest words with the question. Loaded as `xquad_rag:EnglishRag`
and `xquad_rag:ArabicRag`; the collection is found by `RETROSPAN_TEST_DATA`.
"""

from __future__ import annotations

import json
import math
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import bm25s

from retrospan import Passage, Retrieval, rag_system

Language = Literal["en", "ar"]

_WORD = re.compile(r"\w+")
_SENTENCE_END = re.compile(r"(?<=[.!?؟])\s+")
_ARABIC_FORMS = str.maketrans({"أ": "ا", "إ": "ا", "آ": "ا", "ى": "ي", "ة": "ه", "ـ": None})


def words(text: str) -> list[str]:
    """The text's words, folded: no case, no diacritics, one form of each Arabic letter."""
    bare = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    tokens = _WORD.findall(bare.casefold().translate(_ARABIC_FORMS))
    return [t[2:] if t.startswith("ال") and len(t) > 4 else t for t in tokens]


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph:
    """One paragraph of the collection and the questions asked about it."""

    id: str
    text: str
    questions: tuple[Mapping[str, Any], ...]


def paragraphs(language: Language) -> list[Paragraph]:
    """The 240 paragraphs of one language; the same paragraph has the same id in both."""
    root = Path(__file__).resolve().parents[2]
    data = Path(os.environ.get("RETROSPAN_TEST_DATA", root / ".." / "shared" / "data"))
    source = json.loads((data / "xquad_ar_en" / f"xquad.{language}.json").read_text("utf-8"))
    flat = [paragraph for article in source["data"] for paragraph in article["paragraphs"]]
    return [
        Paragraph(id=f"p{n:03d}", text=p["context"].strip(), questions=tuple(p["qas"]))
        for n, p in enumerate(flat)
    ]


class ExtractiveRag:
    """BM25 over the paragraphs, and the sentence with the rarest shared words as the answer."""

    def __init__(self, language: Language) -> None:
        self._paragraphs = paragraphs(language)
        tokens = [words(paragraph.text) for paragraph in self._paragraphs]
        self._holding = Counter(word for paragraph in tokens for word in set(paragraph))
        self._index = bm25s.BM25()
        self._index.index(tokens, show_progress=False)

    def count_tokens(self, passage: Passage) -> int:
        return len(passage.text.split())

    def retrieve(self, input: Mapping[str, Any], depth: int) -> Retrieval:
        question = str(input["question"])
        found, scores = self._index.retrieve([words(question)], k=depth, show_progress=False)
        candidates = [
            Passage(self._paragraphs[int(n)].id, self._paragraphs[int(n)].text, float(score))
            for n, score in zip(found[0], scores[0], strict=True)
        ]
        return Retrieval(question, candidates, depth)

    def generate(
        self, input: Mapping[str, Any], context: Sequence[Passage]
    ) -> Mapping[str, str | list[str]]:
        asked = set(words(str(input["question"])))
        best, source, best_weight = "", "", 0.0
        for passage in context:
            for sentence in _SENTENCE_END.split(passage.text):
                shared = asked & set(words(sentence))
                # Exact, so that the order of a set, another in each process, cannot decide.
                weight = math.fsum(1 / (1 + self._holding[word]) for word in shared)
                if weight > best_weight:
                    best, source, best_weight = sentence, passage.id, weight
        return {"answer": best, "citations": [source] if source else []}


_SETTINGS: dict[str, Any] = {
    "version": "1",
    "depth": 10,
    "top_k": 3,
    "token_budget": 250,
    "index_version": "xquad-240",
    "deterministic": True,
}


@rag_system(name="xquad-en", **_SETTINGS)
class EnglishRag(ExtractiveRag):
    """The English paragraphs."""

    def __init__(self) -> None:
        super().__init__("en")


@rag_system(name="xquad-ar", **_SETTINGS)
class ArabicRag(ExtractiveRag):
    """The Arabic paragraphs."""

    def __init__(self) -> None:
        super().__init__("ar")
