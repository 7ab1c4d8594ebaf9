"""Passages and how they are recognised again."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrospan import Passage, Retrieval
from retrospan._passages import describe, identity, passage_hash


def test_a_passages_document_is_itself_unless_said_otherwise() -> None:
    assert Passage("p1").document_id == "p1"
    assert Passage("p1", document_id="d1").document_id == "d1"


def test_passages_take_their_fields_by_position() -> None:
    passage = Passage("p1", "text", 0.5, "d1", 3, {"a": 1})
    assert (passage.text, passage.score, passage.document_id) == ("text", 0.5, "d1")
    assert (passage.tokens, passage.metadata) == (3, {"a": 1})


def test_candidates_are_kept_as_a_tuple_in_their_order() -> None:
    candidates = [Passage("b", score=0.1), Passage("a", score=0.9)]
    retrieval = Retrieval("q", candidates)
    candidates.clear()
    assert [passage.id for passage in retrieval.candidates] == ["b", "a"]
    assert isinstance(retrieval.candidates, tuple)


def test_the_hash_is_half_of_sha256_over_text_and_metadata() -> None:
    content = "Préavis".encode() + b"\0" + '{"a":[1,"é"],"b":null}'.encode()
    expected = hashlib.sha256(content).hexdigest()[:32]
    assert passage_hash("Préavis", {"b": None, "a": [1, "é"]}) == expected
    assert passage_hash("x") == hashlib.sha256(b"x\0").hexdigest()[:32]


def test_the_hash_changes_with_text_and_with_metadata() -> None:
    hashes = {
        passage_hash("x"),
        passage_hash("y"),
        passage_hash("x", {"acl": "staff"}),
        passage_hash("x", {"acl": "public"}),
    }
    assert len(hashes) == 4


def test_empty_metadata_is_no_metadata() -> None:
    assert passage_hash("x", {}) == passage_hash("x", None)


def test_a_passage_without_content_has_no_hash() -> None:
    assert describe(Passage("p1")).hash == ""
    assert describe(Passage("p1", metadata={})).hash == ""
    assert describe(Passage("p1", "x")).hash == passage_hash("x")
    assert describe(Passage("p1", metadata={"a": 1})).hash == passage_hash("", {"a": 1})


def test_an_identity_follows_ids_contents_and_order_and_nothing_else() -> None:
    one, two = describe(Passage("a", "x", score=0.5)), describe(Passage("b", "y"))
    assert identity([one, two]) == identity([describe(Passage("a", "x", tokens=3)), two])
    assert len({identity([one, two]), identity([two, one]), identity([one]), identity([])}) == 4


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=12,
)


@given(st.text(st.characters(exclude_categories=())), st.dictionaries(st.text(), JSON_VALUES))
def test_the_hash_survives_the_way_through_the_store(
    text: str, metadata: dict[str, object]
) -> None:
    from retrospan._encoding import clean_text, to_json

    stored_text, stored_metadata = clean_text(text), json.loads(to_json(metadata))
    assert passage_hash(stored_text, stored_metadata) == passage_hash(text, metadata)


@pytest.mark.parametrize(
    "metadata", [{10: "a", 9: "b"}, {"x": {3, 1, 2}}, {"x": float("nan")}, {None: 1}]
)
def test_the_hash_of_awkward_metadata_survives_too(metadata: dict[str, object]) -> None:
    from retrospan._encoding import to_json

    assert passage_hash("t", json.loads(to_json(metadata))) == passage_hash("t", metadata)
