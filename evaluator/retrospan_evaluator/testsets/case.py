"""One case of a dataset: an input, what a right answer holds, what a right retrieval finds."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, JsonValue, model_validator
from pydantic_core import PydanticCustomError


@dataclass(frozen=True, slots=True, kw_only=True)
class Relevant:
    """One entry of a case's relevance list: a chunk where `chunk_id` is given, else a document."""

    document_id: str | None = None
    chunk_id: str | None = None
    """The id of the passage itself; where given it decides, and the document id only informs."""
    grade: float = 1
    """How relevant: above 0 is relevant, 0 or less was judged and found not relevant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldPassage:
    """A passage from which the case can be answered, as the gold arm of a replay shows it."""

    document_id: str | None = None
    chunk_id: str | None = None
    text: str

    @property
    def passage_id(self) -> str:
        """The id the passage carries in a prompt: its chunk's, else its document's."""
        return self.chunk_id or self.document_id or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One question of a dataset with everything that is known about its right answer."""

    id: str
    input: JsonValue
    expected_answer: str | None = None
    """Text a right answer contains; None when the case says nothing about the answer."""
    relevant: tuple[Relevant, ...] = ()
    """Empty when nothing is known about relevance: retrieval is then not measured."""
    gold_context: tuple[GoldPassage, ...] = ()
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)

    def to_json(self) -> str:
        """The case as one canonical line of a dataset; equal cases give equal text."""
        expected: dict[str, JsonValue] = {}
        if self.expected_answer is not None:
            expected["answer"] = self.expected_answer
        if self.relevant:
            expected["relevant"] = [_relevant_json(entry) for entry in self.relevant]
        if self.gold_context:
            expected["gold_context"] = [_gold_json(entry) for entry in self.gold_context]
        line: dict[str, JsonValue] = {"id": self.id, "input": self.input}
        if expected:
            line["expected"] = expected
        if self.metadata:
            line["metadata"] = dict(self.metadata)
        return json.dumps(
            line, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":")
        )

    @classmethod
    def from_json(cls, text: str) -> Case:
        """The case that `to_json` wrote; pydantic's ValidationError when the text is none."""
        return cls.from_value(json.loads(text))

    @classmethod
    def from_value(cls, value: object) -> Case:
        """The case a decoded JSON value describes; pydantic's ValidationError when it is none."""
        line = _Line.model_validate(value)
        return cls(
            id=line.id,
            input=line.input,
            expected_answer=line.expected.answer,
            relevant=tuple(
                Relevant(document_id=entry.document_id, chunk_id=entry.chunk_id, grade=entry.grade)
                for entry in line.expected.relevant
            ),
            gold_context=tuple(
                GoldPassage(document_id=entry.document_id, chunk_id=entry.chunk_id, text=entry.text)
                for entry in line.expected.gold_context
            ),
            metadata=line.metadata,
        )


def _relevant_json(entry: Relevant) -> dict[str, JsonValue]:
    place = {"document_id": entry.document_id, "chunk_id": entry.chunk_id}
    known: dict[str, JsonValue] = {key: value for key, value in place.items() if value is not None}
    # 1 and 1.0 are one grade, and must give one version of the dataset.
    grade = int(entry.grade) if float(entry.grade).is_integer() else entry.grade
    return known if grade == 1 else {**known, "grade": grade}


def _gold_json(entry: GoldPassage) -> dict[str, JsonValue]:
    values = {"document_id": entry.document_id, "chunk_id": entry.chunk_id, "text": entry.text}
    return {key: value for key, value in values.items() if value is not None}


TWO_NAMES = "two_names"
"""The type of pydantic's error where one field is given under both of its names."""

Id = Annotated[str, Field(min_length=1)]


class _Strict(BaseModel):
    """A misspelt field would silently leave something unmeasured, so unknown ones are refused."""

    model_config = ConfigDict(extra="forbid", strict=True)


class _Place(_Strict):
    document_id: Id | None = Field(
        default=None, validation_alias=AliasChoices("document_id", "doc_id")
    )
    chunk_id: Id | None = None

    @model_validator(mode="before")
    @classmethod
    def _has_one_document(cls, entry: object) -> object:
        if isinstance(entry, dict) and "document_id" in entry and "doc_id" in entry:
            raise PydanticCustomError(
                TWO_NAMES, "document_id and doc_id are two names of one field, and both are given"
            )
        return entry

    @model_validator(mode="after")
    def _names_something(self) -> _Place:
        if self.document_id is None and self.chunk_id is None:
            raise ValueError("needs a document_id or a chunk_id")
        return self


class _RelevantEntry(_Place):
    grade: Annotated[float, Field(allow_inf_nan=False)] = 1


class _GoldEntry(_Place):
    text: Annotated[str, Field(min_length=1)]


class _Expected(_Strict):
    # An answer of blanks would be contained in every answer.
    answer: Annotated[str, Field(pattern=r"\S")] | None = None
    relevant: list[_RelevantEntry] = Field(default_factory=list)
    gold_context: list[_GoldEntry] = Field(default_factory=list)


class _Line(_Strict):
    id: Id
    input: JsonValue
    expected: _Expected = Field(default_factory=_Expected)
    metadata: dict[str, JsonValue] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _asks_something(self) -> _Line:
        if self.input is None or self.input == "" or self.input == {}:
            raise ValueError("input is empty: there is nothing to ask the system")
        return self
