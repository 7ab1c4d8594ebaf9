"""How much of the content is recorded: the modes, the standard variable, redaction, limits."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from retrospan import (
    CaptureMode,
    ConfigurationError,
    Passage,
    Retrieval,
    assemble,
    generate,
    record_caller,
    record_generation,
    request,
    retrieve,
)
from retrospan._capture import VARIABLE, Capture, CaptureSettings
from retrospan._encoding import canonical_json
from retrospan._passages import describe, passage_hash

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.instrumentation.conftest import Recorder

QUESTION = "Is Ada Lovelace refunded?"
ANSWER = "Ada Lovelace gets 40 EUR."
TEXT = "Ada Lovelace paid 40 EUR."
METADATA = {"author": "Ada Lovelace", "acl": ["billing"], "source_version": "v3"}
KEY = b"sixteen bytes or more"


@retrieve(filter={"customer": "Ada Lovelace"}, index_version="2026-11")
def find(query: str) -> Retrieval:
    return Retrieval(f"find: {query}", [Passage("kb-1", TEXT, 0.5, metadata=METADATA)])


@generate
def say(query: str, context: object) -> dict[str, object]:
    return {"answer": ANSWER, "citations": ["kb-1"]}


def ask(
    capture: CaptureMode | None = None,
    redact: Callable[[str], str] | None = None,
    hash_key: bytes | str | None = None,
) -> None:
    with request(
        name="desk",
        input={"question": QUESTION},
        capture=capture,
        redact=redact,
        hash_key=hash_key,
    ):
        assembly = assemble(find(QUESTION).candidates, top_k=1)
        say(QUESTION, assembly.context)


def everything(recorder: Recorder) -> str:
    """All that was recorded, as one text."""
    return "\n".join(str(dict(span.attributes or {})) for span in recorder.spans)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a mode records."""

    mode: CaptureMode
    question: bool
    passages: bool
    hashed: bool


MODES = [
    Case(mode="full", question=True, passages=True, hashed=False),
    Case(mode="passages-hashed", question=True, passages=False, hashed=False),
    Case(mode="hashed", question=False, passages=False, hashed=True),
    Case(mode="none", question=False, passages=False, hashed=False),
]


@pytest.mark.parametrize("case", MODES, ids=lambda case: case.mode)
def test_a_mode_records_the_texts_it_says_and_no_others(recorder: Recorder, case: Case) -> None:
    ask(case.mode)
    asked, found = recorder.attributes("request"), recorder.attributes("retrieve")
    said = recorder.attributes("generate")
    assert ("retrospan.input" in asked) is case.question
    assert ("gen_ai.retrieval.query.text" in found) is case.question
    assert ("retrospan.retrieval.filter" in found) is case.question
    assert ("retrospan.answer" in said) is case.question
    assert ("gen_ai.retrieval.documents" in found) is case.passages
    assert ("retrospan.input.hash" in asked) is case.hashed
    assert ("retrospan.retrieval.query_hash" in found) is case.hashed
    assert ("retrospan.answer.hash" in said) is case.hashed
    if not case.question:
        assert "Lovelace" not in everything(recorder)


@pytest.mark.parametrize("case", MODES, ids=lambda case: case.mode)
def test_ids_scores_hashes_and_permissions_are_recorded_in_every_mode(
    recorder: Recorder, case: Case
) -> None:
    ask(case.mode)
    found = recorder.attributes("retrieve")
    assert found["retrospan.passages.id"] == ("kb-1",)
    assert found["retrospan.passages.score"] == (0.5,)
    assert found["retrospan.passages.hash"] == (passage_hash(TEXT, METADATA),)
    assert found["retrospan.passages.acl"] == ('["billing"]',)
    assert found["retrospan.passages.source_version"] == ("v3",)
    assert recorder.attributes("assemble")["retrospan.assembly.id"] == ("kb-1",)
    assert recorder.attributes("generate")["retrospan.citations"] == '["kb-1"]'


def test_the_hashes_are_those_a_replay_works_out_from_the_applications_own_store(
    recorder: Recorder,
) -> None:
    ask("hashed", hash_key=KEY)

    def digest(text: str) -> str:
        return hmac.new(KEY, text.encode(), hashlib.sha256).hexdigest()[:32]

    asked = canonical_json({"question": QUESTION})
    assert recorder.attributes("request")["retrospan.input.hash"] == digest(asked)
    assert recorder.attributes("generate")["retrospan.answer.hash"] == digest(ANSWER)
    found = recorder.attributes("retrieve")
    assert found["retrospan.retrieval.query_hash"] == digest(f"find: {QUESTION}")
    content = TEXT + "\0" + json.dumps(METADATA, sort_keys=True, separators=(",", ":"))
    assert found["retrospan.passages.hash"] == (digest(content),)


def test_a_key_changes_every_hash_and_a_mode_changes_none(recorder: Recorder) -> None:
    names = ("retrospan.retrieval.identity", "retrospan.passages.hash")
    kinds: list[tuple[CaptureMode, bytes | None]] = [
        ("full", None),
        ("none", None),
        ("full", KEY),
        ("hashed", KEY),
    ]
    seen: list[list[Any]] = []
    for mode, key in kinds:
        ask(mode, hash_key=key)
        found = [span for span in recorder.spans if span.name == "retrieval"][-1].attributes
        said = [span for span in recorder.spans if span.name == "generate say"][-1].attributes
        assert found is not None and said is not None
        seen.append([found[name] for name in names] + [said["retrospan.context.identity"]])
    assert seen[0] == seen[1]
    assert seen[2] == seen[3]
    assert not set(seen[0]) & set(seen[2])


@pytest.mark.parametrize(
    ("value", "declared", "mode"),
    [
        ("", "hashed", "hashed"),
        ("NO_CONTENT", "full", "hashed"),
        ("NO_CONTENT", "passages-hashed", "hashed"),
        ("NO_CONTENT", "none", "none"),
        ("SPAN_ONLY", "hashed", "full"),
        ("span_and_event", "none", "full"),
        ("true", "hashed", "full"),
        ("false", "full", "hashed"),
        ("EVENT_ONLY", "full", "hashed"),
        ("everything, please", "full", "hashed"),
    ],
)
def test_the_standard_variable_wins_where_it_is_set(
    monkeypatch: pytest.MonkeyPatch, value: str, declared: CaptureMode, mode: str
) -> None:
    monkeypatch.setenv(VARIABLE, value)
    assert CaptureSettings(capture=declared).resolved().mode == mode


@pytest.mark.parametrize("key", ["short", b"", "x" * 15])
def test_a_key_that_can_be_guessed_is_refused(key: bytes | str) -> None:
    with pytest.raises(ConfigurationError, match="hash_key must have 16 bytes or more"):
        request(name="desk", hash_key=key)


def test_settings_that_cannot_work_are_refused_with_what_to_write_instead() -> None:
    everything: Any = "everything"
    with pytest.raises(ConfigurationError, match="capture must be one of 'full', 'passages-hash"):
        request(name="desk", capture=everything)
    text: Any = "text"
    with pytest.raises(ConfigurationError, match="redact must be a function that takes a text"):
        request(name="desk", redact=text)
    with pytest.raises(ConfigurationError, match="max_text_length must be a whole number"):
        CaptureSettings(max_text_length=0)
    key: Any = 12345678901234567
    with pytest.raises(ConfigurationError, match="hash_key must be bytes or a text; it is a int"):
        request(name="desk", hash_key=key)


def test_the_key_is_not_shown() -> None:
    assert "sixteen" not in repr(CaptureSettings(hash_key=KEY))


def without_names(text: str) -> str:
    return text.replace("Ada Lovelace", "[NAME]")


def test_redaction_comes_before_everything_else(recorder: Recorder) -> None:
    ask(redact=without_names)
    assert "Lovelace" not in everything(recorder)
    asked, found = recorder.attributes("request"), recorder.attributes("retrieve")
    assert asked["retrospan.input"] == '{"question": "Is [NAME] refunded?"}'
    assert found["gen_ai.retrieval.query.text"] == "find: Is [NAME] refunded?"
    assert found["retrospan.retrieval.filter"] == '{"customer": "[NAME]"}'
    [document] = json.loads(found["gen_ai.retrieval.documents"])
    assert document["content"] == "[NAME] paid 40 EUR."
    assert document["metadata"]["author"] == "[NAME]"
    assert recorder.attributes("generate")["retrospan.answer"] == "[NAME] gets 40 EUR."
    # The hash is the key of the stored text, so it is that of the redacted one.
    redacted = METADATA | {"author": "[NAME]"}
    assert found["retrospan.passages.hash"] == (passage_hash("[NAME] paid 40 EUR.", redacted),)


def test_redaction_also_reaches_numbers_keys_and_error_messages(recorder: Recorder) -> None:
    def without_digits(text: str) -> str:
        return "".join("#" if character.isdigit() else character for character in text)

    @request(name="desk", redact=without_digits)
    def failing(asked: Mapping[str, object]) -> None:
        raise ValueError("card 4111 is unknown")

    with pytest.raises(ValueError, match="card 4111 is unknown"):
        failing({"card": 4111, "4111": True, "flag": None, "x": 1.5})
    [span] = recorder.spans
    assert span.attributes is not None
    expected = '{"card": "####", "####": true, "flag": null, "x": "#.#"}'
    assert span.attributes["retrospan.input"] == expected
    assert span.status.description == "ValueError: card #### is unknown"


@pytest.mark.parametrize("mode", ["passages-hashed", "hashed", "none"])
def test_an_error_message_may_quote_what_is_not_captured(
    recorder: Recorder, mode: CaptureMode
) -> None:
    with pytest.raises(ValueError), request(name="desk", input="q", capture=mode):
        raise ValueError(f"cannot read {TEXT!r}")
    assert recorder.span("request").status.description == "ValueError"
    assert recorder.attributes("request")["error.type"] == "ValueError"


def raising(text: str) -> str:
    raise RuntimeError(text)


def returning_none(text: str) -> Any:
    return None


@pytest.mark.parametrize(
    ("redact", "mark"),
    [
        (raising, "<left out: redact raised RuntimeError>"),
        (returning_none, "<left out: redact returned NoneType>"),
    ],
)
def test_a_redaction_that_fails_gives_nothing_away(
    recorder: Recorder, redact: Callable[[str], str], mark: str
) -> None:
    ask(redact=redact)
    assert "Lovelace" not in everything(recorder)
    assert recorder.attributes("generate")["retrospan.answer"] == mark
    assert len(recorder.spans) == 4


def test_a_long_text_is_cut_at_a_character_with_a_mark() -> None:
    capture = Capture(max_text_length=10)
    assert capture.text("0123456789") == "0123456789"
    assert capture.text("0123456789abc") == "0123456789<left out: 3 more characters>"
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    assert capture.text(f"01234567{family}").startswith("01234567<left out: 5 more")
    accented = "012345678e\u0301 and more"
    assert capture.text(accented).startswith("012345678<left out")
    arabic = "\u0633\u0650\u064a\u0627\u0633\u064e\u0629\u064f \u0627\u0644"
    assert capture.text(arabic).startswith("\u0633\u0650\u064a\u0627\u0633\u064e\u0629\u064f ")
    for text in (family, accented, arabic):
        capture.text(text).encode("utf-8")


def test_what_is_cut_is_never_the_json_around_it() -> None:
    capture = Capture(max_text_length=20)
    value = {"question": "q" * 5000, "parts": ["\U0001f600" * 100, 5]}
    described = json.loads(capture.json(value))
    assert described["question"].endswith("<left out: 4980 more characters>")
    assert described["parts"][1] == 5
    endless = {"parts": ["x" * 1000] * 5000}
    assert len(Capture().json(endless)) < 1_500_000
    json.loads(Capture().json(endless))


def test_a_passage_that_is_cut_says_so_and_keeps_the_hash_of_the_whole() -> None:
    capture = Capture(max_text_length=10, max_metadata_length=40)
    passage = Passage("a", "x" * 50, metadata={"long": "y" * 100})
    described = describe(passage, capture)
    assert described.is_cut
    assert described.text == "x" * 10 + "<left out: 40 more characters>"
    assert described.metadata == {"long": "y" * 10 + "<left out: 90 more characters>"}
    assert described.hash == passage_hash(passage.text, passage.metadata)
    assert not describe(Passage("a", "x", metadata={"b": 1}), capture).is_cut


def test_a_fat_passage_is_marked_in_the_record(recorder: Recorder) -> None:
    @retrieve
    def fat(query: str) -> list[Passage]:
        return [Passage("fat", "x" * 6_000_000), Passage("thin", "y")]

    fat("q")
    recorded = json.loads(recorder.attributes("retrieve")["gen_ai.retrieval.documents"])
    assert [document.get("truncated", False) for document in recorded] == [True, False]
    assert len(recorded[0]["content"]) < 100_100


def test_a_users_id_is_recorded_only_as_an_hmac(recorder: Recorder) -> None:
    with request(name="desk", input="q", hash_key=KEY):
        record_caller(conversation_id="c-1", user_id="ada", user_roles=["staff", "billing"])
    asked = recorder.attributes("request")
    assert asked["user.hash"] == hmac.new(KEY, b"ada", hashlib.sha256).hexdigest()[:32]
    assert asked["gen_ai.conversation.id"] == "c-1"
    assert asked["user.roles"] == ("staff", "billing")


def test_without_a_key_a_users_id_is_not_recorded(recorder: Recorder) -> None:
    with request(name="desk", input="q", user_id="ada", user_roles=["staff"]):
        pass
    assert "user.hash" not in recorder.attributes("request")
    assert recorder.attributes("request")["user.roles"] == ("staff",)
    record_caller(user_id="nobody asked")


def test_a_generation_tells_its_prompt_by_name_version_and_hash(recorder: Recorder) -> None:
    @generate
    def answer(query: str) -> str:
        record_generation(
            {"model": "m-1", "usage": {"prompt_tokens": 12, "completion_tokens": 3}},
            prompt=[{"role": "user", "content": query}],
            prompt_name="desk",
            prompt_version="4",
            model="m",
        )
        return "yes"

    answer("q")
    said = recorder.attributes("generate")
    content = canonical_json([{"role": "user", "content": "q"}])
    digest = hashlib.sha256(content.encode()).hexdigest()[:32]
    assert said["retrospan.assembly.prompt_hash"] == digest
    assert (said["gen_ai.prompt.name"], said["gen_ai.prompt.version"]) == ("desk", "4")
    assert (said["gen_ai.request.model"], said["gen_ai.response.model"]) == ("m", "m-1")
    assert (said["gen_ai.usage.input_tokens"], said["gen_ai.usage.output_tokens"]) == (12, 3)


def test_the_identity_of_a_retrieval_is_what_was_asked_and_not_what_was_found(
    recorder: Recorder,
) -> None:
    def identity(query: str, found: list[Passage], depth: int, version: str) -> object:
        @retrieve(index_version=version)
        def search(query: str, depth: int) -> list[Passage]:
            return found

        search(query, depth)
        attributes = recorder.spans[-1].attributes
        assert attributes is not None
        return attributes["retrospan.retrieval.identity"]

    same = identity("q", [], 3, "1")
    assert identity("q", [Passage("a")], 3, "1") == same
    others = {identity("r", [], 3, "1"), identity("q", [], 4, "1"), identity("q", [], 3, "2")}
    assert len(others | {same}) == 4
