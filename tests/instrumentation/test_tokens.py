"""Token counts: whose they are, and what is recorded when nobody can say."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pytest

from retrospan import Passage, Retrieval, assemble, bind, rag_system, retrieve

if TYPE_CHECKING:
    from tests.instrumentation.conftest import Recorder

TEXTS = (
    "docs say <|endoftext|> ends text",
    "\u6587" * 100,
    "\u0627\u0644\u0645\u064f\u0648\u064e\u0638\u064e\u0651\u0641",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467",
)


class Strict:
    """A tokenizer as they are: it refuses what looks like a special token."""

    def __call__(self, passage: Passage) -> int:
        if "<|" in passage.text:
            raise ValueError("Encountered text corresponding to disallowed special token")
        return len(passage.text.encode("utf-8"))


def found(query: str) -> list[Passage]:
    return [Passage(str(n), text) for n, text in enumerate(TEXTS)]


def test_the_counts_are_the_tokenizers_and_its_name_stands_beside_them(recorder: Recorder) -> None:
    """Case T-TOKENS."""
    retrieve(tokenizer="bytes", count_tokens=lambda passage: len(passage.text.encode()))(found)("q")
    recorded = recorder.attributes("retrieve")
    assert recorded["retrospan.passages.tokens"] == (32, 300, 20, 18)
    assert recorded["retrospan.tokenizer"] == "bytes"


def test_a_tokenizer_that_raises_costs_its_own_count(
    recorder: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    """Case T-TOKENS: the literal special token."""
    search = retrieve(tokenizer="strict", count_tokens=Strict())(found)
    with caplog.at_level(logging.ERROR):
        assert len(search("q")) == 4
    assert recorder.attributes("retrieve")["retrospan.passages.tokens"] == (-1, 300, 20, 18)
    assert caplog.messages == []


def test_without_a_tokenizer_counts_are_unknown_and_not_zero(recorder: Recorder) -> None:
    """Case T-TOKENS: none is installed, and none is guessed or fetched."""
    assembly = assemble(retrieve(found)("q"), top_k=2)
    recorded = recorder.attributes("retrieve")
    assert recorded["retrospan.passages.tokens"] == (-1, -1, -1, -1)
    assert "retrospan.tokenizer" not in recorded
    assert assembly.context_tokens is None


def test_a_recorded_count_wins_over_a_recount(recorder: Recorder) -> None:
    """Case T-TOKENS."""

    @retrieve(count_tokens=lambda passage: 99)
    def search(query: str) -> list[Passage]:
        return [Passage("a", "t", tokens=7), Passage("b", "t")]

    search("q")
    assert recorder.attributes("retrieve")["retrospan.passages.tokens"] == (7, 99)


@pytest.mark.parametrize("count", [-3, True, 1.5, "7", None, 2**70])
def test_a_count_that_is_no_count_is_unknown(recorder: Recorder, count: Any) -> None:
    @retrieve
    def search(query: str) -> list[Passage]:
        return [Passage("a", "t", tokens=count), Passage("b", "t", tokens=4)]

    search("q")
    assert recorder.attributes("retrieve")["retrospan.passages.tokens"] == (-1, 4)


def test_a_system_names_its_tokenizer(recorder: Recorder) -> None:
    @rag_system(
        name="desk",
        version="1",
        depth=4,
        top_k=2,
        token_budget=40,
        index_version="1",
        tokenizer="words (estimated)",
    )
    class Desk:
        def retrieve(self, input: str, depth: int) -> Retrieval:
            return Retrieval(input, found(input))

        def count_tokens(self, passage: Passage) -> int:
            return len(passage.text.split())

        def generate(self, input: str, context: tuple[Passage, ...]) -> str:
            return "yes"

    bind(Desk()).answer("q")
    assert recorder.attributes("retrieve")["retrospan.tokenizer"] == "words (estimated)"
    assert recorder.attributes("assemble")["retrospan.assembly.context_tokens"] == 6
