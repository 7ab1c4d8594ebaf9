"""A small help desk whose mistakes are honest: word overlap finds, one sentence answers.

Nothing here knows a question or a passage by name. What goes wrong goes wrong for reasons any
system can have: other words than the passage uses, a budget that is too small, a passage with
more words in common and the wrong content, an answer that hides behind a pronoun.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from importlib.resources import files

from retrospan import Passage, Retrieval, rag_system

_WORD = re.compile(r"\w+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_EVERYWHERE = frozenset(
    "a an and are as at be by can do does for from how i in is it its my of on one or our that "
    "the then this to was we what when where which will with within you your".split()
)
"""Words that say nothing about the subject."""

NOT_FOUND = "I found nothing about this in our help pages."


@rag_system(
    name="support_rag",
    version="1",
    depth=6,
    top_k=2,
    token_budget=40,
    index_version="help-pages-1",
    prompt_version="one-sentence-1",
    deterministic=True,
)
class SupportRag:
    """Answers a customer's question from fourteen help pages; a token is a word."""

    def __init__(self) -> None:
        self._pages = _help_pages()

    def retrieve(self, input: Mapping[str, object], depth: int) -> Retrieval:
        """The pages that share the most words with the question; equal ones in page order."""
        question = _question(input)
        shared = [(_shared_words(question, page.text), page) for page in self._pages]
        found = sorted(
            (entry for entry in shared if entry[0]), key=lambda entry: entry[0], reverse=True
        )
        return Retrieval(
            query=question,
            candidates=[
                Passage(page.id, page.text, score=count, metadata=page.metadata)
                for count, page in found[:depth]
            ],
            depth=depth,
        )

    def count_tokens(self, passage: Passage) -> int:
        """The words of a passage."""
        return len(passage.text.split())

    def generate(
        self, input: Mapping[str, object], context: tuple[Passage, ...]
    ) -> dict[str, object]:
        """The sentence with the most words of the question, from the page that has the most."""
        if not context:
            return {"answer": NOT_FOUND, "citations": []}
        question = _question(input)
        page = max(context, key=lambda passage: _shared_words(question, passage.text))
        sentences = _SENTENCE_END.split(page.text)
        answer = max(sentences, key=lambda sentence: _shared_words(question, sentence))
        return {"answer": answer, "citations": [page.id]}


def _help_pages() -> tuple[Passage, ...]:
    lines = (files(__package__) / "passages.jsonl").read_text(encoding="utf-8").splitlines()
    pages = [json.loads(line) for line in lines]
    return tuple(
        Passage(page["id"], page["text"], metadata={"title": page["title"]}) for page in pages
    )


def _question(input: Mapping[str, object]) -> str:
    return str(input["question"])


def _shared_words(question: str, text: str) -> int:
    return len(_subject_words(question) & _subject_words(text))


def _subject_words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold())) - _EVERYWHERE
