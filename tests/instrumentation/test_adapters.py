"""Passages in what retrievers return: of three frameworks, of stores, and of plain code."""

from __future__ import annotations

import logging
from collections import namedtuple
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from retrospan import Passage, Retrieval, retrieve
from retrospan._adapters import passages_of

if TYPE_CHECKING:
    from tests.instrumentation.conftest import Recorder


@dataclass
class LangChainDocument:
    """The shape of LangChain's `Document`."""

    page_content: str
    metadata: dict[str, Any] = field(default_factory=dict)
    id: str | None = None
    type: str = "Document"


@dataclass
class TextNode:
    """The shape of LlamaIndex's `TextNode`."""

    id_: str
    text: str
    metadata: dict[str, Any] = field(default_factory=dict)
    ref_doc_id: str | None = None

    @property
    def node_id(self) -> str:
        return self.id_

    def get_content(self) -> str:
        return self.text


@dataclass
class NodeWithScore:
    """The shape of LlamaIndex's `NodeWithScore`."""

    node: Any
    score: float | None = None

    @property
    def text(self) -> NoReturn:
        raise ValueError("Node must be a TextNode to get text.")


@dataclass
class HaystackDocument:
    """The shape of Haystack's `Document`."""

    id: str
    content: str | None
    meta: dict[str, Any] = field(default_factory=dict)
    score: float | None = None
    blob: object = None
    embedding: list[float] | None = None


@dataclass
class ScoredPoint:
    """The shape of a hit of a vector store that keeps the text in a payload."""

    id: int
    score: float
    payload: dict[str, Any]


Row = namedtuple("Row", ["id", "content", "score"])
SOURCE = {"source": "handbook.pdf", "page": 3}
PAYLOAD = {"text": "t", "document_id": "d"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What is found in a value."""

    name: str
    value: object
    passages: tuple[Passage, ...]


CASES = [
    Case(
        name="langchain documents",
        value=[LangChainDocument("t", SOURCE, "c1"), LangChainDocument("u")],
        passages=(
            Passage("c1", "t", None, "handbook.pdf", None, SOURCE),
            Passage("", "u", None, "", None, {}),
        ),
    ),
    Case(
        name="langchain documents with scores",
        value=[(LangChainDocument("t", SOURCE, "c1"), 0.5)],
        passages=(Passage("c1", "t", 0.5, "handbook.pdf", None, SOURCE),),
    ),
    Case(
        name="llamaindex nodes",
        value=[
            NodeWithScore(TextNode("n1", "t", {"a": 1}, "d1"), 0.25),
            NodeWithScore(TextNode("n2", "u")),
        ],
        passages=(
            Passage("n1", "t", 0.25, "d1", None, {"a": 1}),
            Passage("n2", "u", None, "n2", None, {}),
        ),
    ),
    Case(
        name="haystack documents in a component's result",
        value={"documents": [HaystackDocument("h1", "t", {"a": 1}, 0.75)]},
        passages=(Passage("h1", "t", 0.75, "h1", None, {"a": 1}),),
    ),
    Case(
        name="a haystack document without text",
        value=[HaystackDocument("h1", None)],
        passages=(Passage("h1", "", None, "h1", None, {}),),
    ),
    Case(
        name="dicts of plain code, what is left over being metadata",
        value=[{"id": 7, "text": "t", "score": Decimal("0.5"), "acl": ["staff"], "tokens": 4}],
        passages=(Passage("7", "t", Decimal("0.5"), "7", 4, {"acl": ["staff"]}),),  # type: ignore[arg-type]  # a number all the same
    ),
    Case(
        name="permissions beside the metadata",
        value=[
            {"id": "a", "content": "t", "metadata": {"x": 1}, "acl": "staff", "source_version": "2"}
        ],
        passages=(Passage("a", "t", metadata={"x": 1, "source_version": "2", "acl": "staff"}),),
    ),
    Case(
        name="matches with the text in their metadata",
        value={"matches": [{"id": "a", "score": 0.5, "metadata": PAYLOAD}], "namespace": ""},
        passages=(Passage("a", "t", 0.5, "d", None, {"document_id": "d"}),),
    ),
    Case(
        name="points with a payload",
        value=[ScoredPoint(3, 0.5, PAYLOAD)],
        passages=(Passage("3", "t", 0.5, "d", None, {"document_id": "d"}),),
    ),
    Case(
        name="hits of a search engine",
        value=[{"_id": "e1", "_score": 2.5, "_source": {"body": "t"}}],
        passages=(Passage("e1", "t", 2.5),),
    ),
    Case(
        name="parallel lists for a batch of one query",
        value={
            "ids": [["a", "b"]],
            "documents": [["t", "u"]],
            "distances": [[0.1, 0.2]],
            "metadatas": [[{"k": 1}, None]],
        },
        passages=(Passage("a", "t", 0.1, metadata={"k": 1}), Passage("b", "u", 0.2)),
    ),
    Case(
        name="a reranker's results",
        value={"results": [{"index": 1, "relevance_score": 0.5, "document": {"text": "t"}}]},
        passages=(Passage("", "t", 0.5, "", None, {"index": 1}),),
    ),
    Case(
        name="results whose content is in blocks",
        value={"results": [{"id": "f1", "score": 0.5, "content": [{"type": "text", "text": "t"}]}]},
        passages=(Passage("f1", "t", 0.5),),
    ),
    Case(
        name="documents of a framework in our own retrieval",
        value=Retrieval("q", [LangChainDocument("t", {}, "c1")]),  # type: ignore[list-item]  # a mistake that is easy to make
        passages=(Passage("c1", "t"),),
    ),
    Case(name="strings", value=["t", b"u"], passages=(Passage("", "t"), Passage("", "u"))),
    Case(name="one string", value="t", passages=(Passage("", "t"),)),
    Case(name="texts with scores", value=[("t", 0.5)], passages=(Passage("", "t", 0.5, ""),)),
    Case(
        name="ids with texts and scores",
        value=[("a", "t"), ("b", "u", 0.5), ("c", "v", None)],
        passages=(Passage("a", "t"), Passage("b", "u", 0.5), Passage("c", "v")),
    ),
    Case(name="named tuples", value=[Row("a", "t", 0.5)], passages=(Passage("a", "t", 0.5),)),
    Case(name="places in an index", value=[3, 1], passages=(Passage("3"), Passage("1"))),
    Case(
        name="passages with something about them",
        value=([Passage("a")], {"took_ms": 3}),
        passages=(Passage("a"),),
    ),
    Case(name="our own", value=Retrieval("q", [Passage("a")]), passages=(Passage("a"),)),
    Case(name="nothing", value=[], passages=()),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_passages_are_found_in(case: Case) -> None:
    found = passages_of(case.value)
    assert found is not None
    assert [_whole(passage) for passage in found] == [_whole(passage) for passage in case.passages]


def _whole(passage: Passage) -> tuple[object, ...]:
    score = passage.score
    return (
        passage.id,
        passage.text,
        score,
        passage.document_id,
        passage.tokens,
        passage.metadata or {},
    )


class Table:
    """The shape of a data frame: its columns are attributes."""

    text = range(3)
    id = range(3)


@pytest.mark.parametrize(
    "value", [None, 3.5, object(), [object()], {"answer": "x"}, True, Table(), {"text": {1, 2}}]
)
def test_what_is_not_understood_is_not_guessed(value: object) -> None:
    assert passages_of(value) is None


def test_what_can_be_read_only_once_is_not_read() -> None:
    def passages() -> Iterator[Passage]:
        yield Passage("a")

    stream = passages()
    assert passages_of(stream) is None
    assert next(stream) == Passage("a")


def test_a_place_that_is_not_understood_keeps_its_position() -> None:
    class Raising:
        @property
        def page_content(self) -> NoReturn:
            raise RuntimeError("lazy")

    found = passages_of([Passage("a"), Raising(), {"text": "t"}])
    assert found is not None
    assert [passage.id or passage.text for passage in found] == ["a", "", "t"]


def test_a_function_of_the_user_may_return_any_of_these() -> None:
    def convert(value: Mapping[str, Any]) -> object:
        return [(hit["key"], hit["snippet"]) for hit in value["found"]]

    found = passages_of({"found": [{"key": "a", "snippet": "t"}]}, convert)
    assert found == (Passage("a", "t"),)


def test_a_function_of_the_user_that_raises_costs_the_passages_only(
    recorder: Recorder, caplog: pytest.LogCaptureFixture
) -> None:
    def convert(value: object) -> NoReturn:
        raise ZeroDivisionError

    @retrieve(passages=convert)
    def search(query: str) -> list[str]:
        return ["t"]

    with caplog.at_level(logging.DEBUG):
        assert search("q") == ["t"]
        assert search("q") == ["t"]
    for span in recorder.spans:
        assert span.attributes is not None
        assert "retrospan.passages.id" not in span.attributes
        assert span.attributes["gen_ai.retrieval.query.text"] == "q"
    assert [record.levelname for record in caplog.records if record.levelno > 30] == []


def test_a_list_that_changes_later_is_recorded_as_it_was_returned(recorder: Recorder) -> None:
    metadata = {"acl": ["staff"]}
    documents = [LangChainDocument("t", metadata, "c1"), LangChainDocument("u", {}, "c2")]

    @retrieve
    def search(query: str) -> list[LangChainDocument]:
        return documents

    found = search("q")
    found.clear()
    metadata["acl"].append("everybody")
    recorded = recorder.attributes("retrieve")
    assert recorded["retrospan.passages.id"] == ("c1", "c2")
    assert recorded["retrospan.passages.acl"] == ('["staff"]', "")
