"""Datasets: what is read, what is refused and in which words, and what a version depends on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retrospan_evaluator.errors import MalformedCase, UsageError
from retrospan_evaluator.testsets.case import Case, GoldPassage, Relevant
from retrospan_evaluator.testsets.dataset import Dataset, dataset_version, load_dataset

REFUND = (
    '{"id":"refund_annual","input":{"question":"Refund?"},"expected":{"answer":"14 days",'
    '"relevant":[{"doc_id":"kb-01","grade":2},{"chunk_id":"kb-02#1"}],'
    '"gold_context":[{"document_id":"kb-01","text":"Within 14 days."}]},'
    '"metadata":{"topic":"billing"}}'
)


def written(folder: Path, content: str | bytes) -> Path:
    file = folder / "cases.jsonl"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


def test_a_case_is_read_whole(tmp_path: Path) -> None:
    dataset = load_dataset(written(tmp_path, REFUND))

    assert dataset.cases == (
        Case(
            id="refund_annual",
            input={"question": "Refund?"},
            expected_answer="14 days",
            relevant=(
                Relevant(document_id="kb-01", grade=2),
                Relevant(chunk_id="kb-02#1"),
            ),
            gold_context=(GoldPassage(document_id="kb-01", text="Within 14 days."),),
            metadata={"topic": "billing"},
        ),
    )
    assert dataset.cases[0].gold_context[0].passage_id == "kb-01"


def test_an_id_and_an_input_are_enough(tmp_path: Path) -> None:
    (case,) = load_dataset(written(tmp_path, '{"id":"a","input":"كم يوما؟"}')).cases

    assert case == Case(id="a", input="كم يوما؟")


def test_a_byte_order_mark_windows_line_ends_and_blank_lines_are_fine(tmp_path: Path) -> None:
    content = "\ufeff\r\n" + REFUND + "\r\n\n   \n" + '{"id":"b","input":"q\u2028r"}\r\n'

    cases = load_dataset(written(tmp_path, content)).cases

    assert [case.id for case in cases] == ["refund_annual", "b"]


@dataclass(frozen=True)
class Refused:
    name: str
    line: str | bytes
    field: str
    says: str


REFUSALS = [
    Refused("broken JSON", "{", "", "expected one JSON object"),
    Refused("a list", "[1]", "", "expected an object in braces, got [1]"),
    Refused("deep nesting", "[" * 100_000, "", "expected one JSON object"),
    Refused("a number that is none", '{"id":"a","input":NaN}', "", "NaN is not JSON"),
    Refused("a key twice", '{"id":"a","id":"b","input":"q"}', "", "'id' stands twice"),
    Refused("half a character", '{"id":"a","input":"\\ud83d"}', "", "half a character"),
    Refused("another encoding", b'{"id":"a","input":"caf\xe9"}', "", "byte 23 is 0xe9"),
    Refused("no id", '{"input":"q"}', "id", "it is missing"),
    Refused("a number as id", '{"id":7,"input":"q"}', "id", "expected text, got 7"),
    Refused("an empty id", '{"id":"","input":"q"}', "id", 'expected text, got ""'),
    Refused("no input", '{"id":"a"}', "input", "it is missing"),
    Refused("an empty input", '{"id":"a","input":""}', "", "nothing to ask"),
    Refused("a misspelt field", '{"id":"a","input":"q","expcted":{}}', "expcted", "spelling"),
    Refused(
        "a blank answer",
        '{"id":"a","input":"q","expected":{"answer":"  "}}',
        "expected.answer",
        'expected text, got "  "',
    ),
    Refused(
        "relevance of nothing",
        '{"id":"a","input":"q","expected":{"relevant":[{"grade":1}]}}',
        "expected.relevant[0]",
        "needs a document_id or a chunk_id",
    ),
    Refused(
        "a grade in words",
        '{"id":"a","input":"q","expected":{"relevant":[{"doc_id":"d","grade":"high"}]}}',
        "expected.relevant[0].grade",
        'got "high"',
    ),
    Refused(
        "gold without its text",
        '{"id":"a","input":"q","expected":{"gold_context":[{"document_id":"d"}]}}',
        "expected.gold_context[0].text",
        "it is missing; a gold passage is what the generator will be shown: write its text",
    ),
    Refused(
        "a document under both of its names",
        '{"id":"a","input":"q","expected":{"relevant":[{"doc_id":"d","document_id":"d"}]}}',
        "expected.relevant[0]",
        "two names of one field, and both are given; keep one of them",
    ),
]


@pytest.mark.parametrize("refused", REFUSALS, ids=lambda refused: refused.name)
def test_a_malformed_line_is_named_with_its_field_and_the_remedy(
    refused: Refused, tmp_path: Path
) -> None:
    line = refused.line if isinstance(refused.line, bytes) else refused.line.encode()
    file = written(tmp_path, b'{"id":"first","input":"q"}\n\n' + line + b"\n")

    with pytest.raises(MalformedCase) as caught:
        load_dataset(file)

    error = caught.value
    assert (error.path, error.line, error.field, error.exit_code) == (file, 3, refused.field, 2)
    assert refused.says in str(error)
    assert str(error).startswith(f"{file}, line 3")
    assert "\n" not in str(error) and len(str(error)) < 500


def test_a_repeated_id_names_both_lines(tmp_path: Path) -> None:
    with pytest.raises(MalformedCase, match="line 3.*'refund_annual' stands on line 1 already"):
        load_dataset(written(tmp_path, f"{REFUND}\n\n{REFUND}\n"))


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no case"):
        load_dataset(written(tmp_path, "\n"))


def test_a_missing_file_and_a_folder_are_refused_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file or directory"):
        load_dataset(tmp_path / "nowhere.jsonl")
    with pytest.raises(UsageError, match="is a directory"):
        load_dataset(tmp_path)


def version(folder: Path, content: str) -> str:
    return load_dataset(written(folder, content)).version


def test_the_version_follows_the_content_and_not_the_layout(tmp_path: Path) -> None:
    other = '{"id":"b","input":"q"}'
    first = version(tmp_path, f"{REFUND}\n{other}")

    assert first == version(tmp_path, f"\ufeff{other}\n\n{json.dumps(json.loads(REFUND))}")
    assert first == version(tmp_path, f"{REFUND.replace('doc_id', 'document_id')}\n{other}")
    assert first == version(tmp_path, f"{REFUND.replace(':2}', ':2.0}')}\n{other}")
    assert first != version(tmp_path, f"{REFUND.replace('14 days', '30 days')}\n{other}")
    assert len(first) == 64


text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
places = st.tuples(text, text | st.none())
cases = st.builds(
    Case,
    id=text,
    input=text | st.dictionaries(text, json_values, min_size=1, max_size=3),
    expected_answer=st.none() | text.filter(lambda answer: bool(answer.strip())),
    relevant=st.lists(
        st.builds(
            lambda place, grade: Relevant(document_id=place[0], chunk_id=place[1], grade=grade),
            places,
            st.integers(-1, 4) | st.floats(-4, 4),
        ),
        max_size=3,
    ).map(tuple),
    gold_context=st.lists(
        st.builds(
            lambda place, words: GoldPassage(document_id=place[0], chunk_id=place[1], text=words),
            places,
            text,
        ),
        max_size=2,
    ).map(tuple),
    metadata=st.dictionaries(text, json_values, max_size=2),
)


@given(case=cases)
def test_a_case_survives_being_stored(case: Case) -> None:
    stored = case.to_json()

    assert Case.from_json(stored) == case
    assert Case.from_json(stored).to_json() == stored
    assert "\n" not in stored


def test_a_dataset_made_in_code_has_the_version_its_file_would_have(tmp_path: Path) -> None:
    dataset = load_dataset(written(tmp_path, REFUND))

    assert dataset_version(list(dataset.cases)) == dataset.version
    assert isinstance(dataset, Dataset)
