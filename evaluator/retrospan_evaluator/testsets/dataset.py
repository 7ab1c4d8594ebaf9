"""Reading a dataset: one JSON case a line, checked whole before anything runs."""

from __future__ import annotations

import codecs
import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from retrospan_evaluator.errors import MalformedCase, UsageError
from retrospan_evaluator.testsets.case import TWO_NAMES, Case


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """The cases of a file in its order, and the version their content has."""

    path: Path
    version: str
    """SHA-256 over the canonical cases sorted by id: layout and order do not change it."""
    cases: tuple[Case, ...]


def load_dataset(path: Path | str) -> Dataset:
    """The dataset in a file of one JSON case a line (UTF-8; a BOM and blank lines are fine).

    Raises:
        MalformedCase: a line is no case, or repeats an id; names file, line and field.
        UsageError: the file cannot be read, or holds no case at all.
    """
    file = Path(path)
    first_line: dict[str, int] = {}
    cases: list[Case] = []
    for number, text in _lines(file):
        case = _case(file, number, text)
        if case.id in first_line:
            raise MalformedCase(
                file,
                number,
                "id",
                f"{case.id!r} stands on line {first_line[case.id]} already",
                "give every case an id of its own",
            )
        first_line[case.id] = number
        cases.append(case)
    if not cases:
        raise UsageError(f"{file} holds no case; write one JSON object a line")
    return Dataset(path=file, version=dataset_version(cases), cases=tuple(cases))


def dataset_version(cases: list[Case]) -> str:
    """The content's own name: SHA-256 over the canonical cases, sorted by id."""
    digest = hashlib.sha256()
    for case in sorted(cases, key=lambda case: case.id):
        digest.update(case.to_json().encode() + b"\n")
    return digest.hexdigest()


def _lines(file: Path) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, numbered from 1."""
    try:
        content = file.read_bytes()
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise UsageError(
            f"the dataset {file} cannot be read ({reason}); "
            "give the path of a file with one JSON case a line"
        ) from error
    # Only "\n" ends a line: text may hold other line separators unescaped.
    for number, line in enumerate(content.removeprefix(codecs.BOM_UTF8).split(b"\n"), start=1):
        try:
            text = line.decode().strip()
        except UnicodeDecodeError as error:
            raise MalformedCase(
                file,
                number,
                "",
                f"expected UTF-8, byte {error.start + 1} is 0x{line[error.start]:02x}",
                "save the file as UTF-8",
            ) from error
        if text:
            yield number, text


def _case(file: Path, number: int, text: str) -> Case:
    try:
        case = Case.from_value(_decoded(text))
        case.to_json().encode()
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        raise MalformedCase(file, number, _field(detail), *_explained(detail)) from error
    except UnicodeEncodeError as error:
        raise MalformedCase(
            file,
            number,
            "",
            f"half a character ({error.object[error.start]!a}) stands in the text",
            "write the whole character",
        ) from error
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise MalformedCase(
            file,
            number,
            "",
            f"expected one JSON object, got {_glance(text)} ({reason})",
            "write each case as one JSON object on a line of its own",
        ) from error
    return case


def _decoded(text: str) -> object:
    return json.loads(
        text, parse_constant=_refuse_constant, object_pairs_hook=_refuse_repeated_keys
    )


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def _refuse_repeated_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        repeated = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {repeated!r} stands twice in one object")
    return found


def _field(detail: ErrorDetails) -> str:
    """`expected.relevant[0].grade` for pydantic's location."""
    field = ""
    for part in detail["loc"]:
        field += f"[{part}]" if isinstance(part, int) else f".{part}"
    return field.removeprefix(".")


_MISSING: Mapping[int | str, str] = {
    "id": "every case needs an id and an input",
    "input": "every case needs an id and an input",
    "text": "a gold passage is what the generator will be shown: write its text, "
    "or name the passage under expected.relevant instead",
}
"""What to do about each field that has to be there."""


def _explained(detail: ErrorDetails) -> tuple[str, str]:
    """What is wrong and what to do, from one of pydantic's errors."""
    match detail["type"]:
        case "missing":
            return "it is missing", _MISSING[detail["loc"][-1]]
        case kind if kind == TWO_NAMES:
            return detail["msg"], "keep one of them"
        case "extra_forbidden":
            return (
                "no such field is known",
                "correct its spelling, or keep notes of your own under metadata",
            )
        case "string_pattern_mismatch" | "string_too_short":
            return f"expected text, got {_shown(detail['input'])}", "write it, or leave it out"
        case "value_error":
            return str(detail["ctx"]["error"]), "add what is missing"
        case "model_type" | "dict_type":
            return f"expected an object in braces, got {_shown(detail['input'])}", "write it so"
        case "string_type":
            return f"expected text, got {_shown(detail['input'])}", "put the value in quotes"
        case _:
            message = detail["msg"].removeprefix("Input should be ")
            return f"expected {message}, got {_shown(detail['input'])}", "correct the value"


def _shown(value: object) -> str:
    """A value in a message: never more than a glance, whatever came."""
    return _glance(json.dumps(value, ensure_ascii=False, default=repr))


def _glance(text: str) -> str:
    return text if len(text) <= 60 else text[:60] + "…"
