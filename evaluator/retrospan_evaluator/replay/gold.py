"""The gold context of a request: passages that hold the answer, and where the record has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from retrospan import Passage
from retrospan_evaluator.errors import UsageError
from retrospan_evaluator.replay.arms import as_passage
from retrospan_evaluator.testsets.case import Case, Relevant
from retrospan_evaluator.traces.request import RecordedPassage, RecordedRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Gold:
    """What is known about the passages that hold the answer."""

    passages: tuple[Passage, ...] = ()
    """In prompt order; empty when there is no gold context to show the generator."""
    relevant: tuple[Relevant, ...] = ()
    without_text: tuple[str, ...] = ()
    """Ids that are known to be gold and whose text is nowhere to be found."""


def read_gold_files(typed: Sequence[str]) -> dict[str, str]:
    """Texts by id from `--gold-passage ID=FILE`."""
    texts: dict[str, str] = {}
    for entry in typed:
        identifier, equals, name = entry.partition("=")
        if not identifier or not equals or not name:
            raise UsageError(
                f"--gold-passage expects ID=FILE, got {entry!r}: "
                "name the passage's id and a UTF-8 file holding its text"
            )
        try:
            texts[identifier] = Path(name).read_text("utf-8-sig").strip()
        except OSError as error:
            reason = (error.strerror or type(error).__name__).lower()
            raise UsageError(
                f"--gold-passage {entry!r}: the file cannot be read ({reason}): "
                "give the path of a UTF-8 text file"
            ) from error
        except UnicodeDecodeError as error:
            raise UsageError(
                f"--gold-passage {entry!r}: byte {error.start + 1} of the file is not UTF-8: "
                "save it as UTF-8"
            ) from error
        if not texts[identifier]:
            raise UsageError(f"--gold-passage {entry!r}: the file is empty: write the passage")
    return texts


def resolve_gold(
    request: RecordedRequest,
    case: Case | None,
    identifiers: Sequence[str],
    texts: Mapping[str, str],
) -> Gold:
    """The gold context: the ids that were typed, else the case's own labels.

    Args:
        identifiers: of `--gold`; each is a passage id, else a document id.
        texts: of `--gold-passage`, by id; an id that stands only here is gold as well.
    """
    named = tuple(dict.fromkeys((*identifiers, *texts)))
    if named:
        return _merged([_typed(request, case, identifier, texts) for identifier in named])
    if case is None:
        return Gold()
    if case.gold_context:
        return Gold(
            passages=tuple(
                Passage(gold.passage_id, gold.text, None, gold.document_id)
                for gold in case.gold_context
            ),
            relevant=case.relevant,
        )
    found = _merged([_labelled(request, entry) for entry in case.relevant if entry.grade > 0])
    return Gold(passages=found.passages, relevant=case.relevant, without_text=found.without_text)


def _typed(
    request: RecordedRequest, case: Case | None, identifier: str, texts: Mapping[str, str]
) -> Gold:
    matches = [p for p in request.passages if p.id == identifier]
    entry = Relevant(chunk_id=identifier) if matches else Relevant(document_id=identifier)
    matches = matches or [p for p in request.passages if p.document_id == identifier]
    if identifier in texts:
        document = matches[0].document_id if matches else identifier
        passage = Passage(identifier, texts[identifier], None, document)
        return Gold(passages=(passage,), relevant=(entry,))
    found = _recorded(matches, entry, identifier)
    if found.passages or case is None:
        return found
    written = tuple(
        Passage(gold.passage_id, gold.text, None, gold.document_id)
        for gold in case.gold_context
        if identifier in (gold.chunk_id, gold.document_id)
    )
    return Gold(passages=written, relevant=(entry,)) if written else found


def _labelled(request: RecordedRequest, entry: Relevant) -> Gold:
    if entry.chunk_id is not None:
        matches = [p for p in request.passages if p.id == entry.chunk_id]
    else:
        matches = [p for p in request.passages if p.document_id == entry.document_id]
    return _recorded(matches, entry, entry.chunk_id or entry.document_id or "")


def _recorded(matches: Sequence[RecordedPassage], entry: Relevant, identifier: str) -> Gold:
    """The recorded texts of the passages that match; a document's chunks all together."""
    unique = {passage.id: passage for passage in reversed(matches) if passage.text is not None}
    ordered = sorted(unique.values(), key=lambda passage: passage.position)
    if not ordered:
        return Gold(relevant=(entry,), without_text=(identifier,))
    return Gold(passages=tuple(as_passage(p) for p in ordered), relevant=(entry,))


def _merged(parts: Sequence[Gold]) -> Gold:
    passages = {passage.id: passage for part in parts for passage in part.passages}
    without_text = tuple(identifier for part in parts for identifier in part.without_text)
    return Gold(
        # A gold context with a hole in it would prove nothing about the generator.
        passages=() if without_text else tuple(passages.values()),
        relevant=tuple(entry for part in parts for entry in part.relevant),
        without_text=without_text,
    )
