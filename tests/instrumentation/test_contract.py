"""What a class must be to be decorated, and what its methods must return."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any, assert_type

import pytest

from retrospan import (
    ConfigurationError,
    Outcome,
    Passage,
    Retrieval,
    SystemSettings,
    bind,
    rag_system,
)

if TYPE_CHECKING:
    from tests.instrumentation.conftest import Recorder


class Plain:
    """A system that can be decorated; each test takes a copy or a subclass."""

    def retrieve(self, input: str, depth: int) -> Any:
        return Retrieval(input, [Passage("a", "one two three")])

    def generate(self, input: str, context: tuple[Passage, ...]) -> Any:
        return f"{len(context)} passages"


def decorated(cls: type[Plain], **settings: Any) -> type[Plain]:
    declared: dict[str, Any] = {
        "name": "plain",
        "version": "1",
        "depth": 3,
        "top_k": 2,
        "index_version": "1",
    }
    return rag_system(**(declared | settings))(cls)


def test_the_settings_of_a_decorated_class_can_be_read() -> None:
    class Counting(Plain):
        def count_tokens(self, passage: Passage) -> int:
            return 1

    system = decorated(Counting, token_budget=9, budget_rule="skip", deterministic=True)
    assert bind(system()).settings == SystemSettings(
        name="plain",
        version="1",
        depth=3,
        top_k=2,
        token_budget=9,
        budget_rule="skip",
        index_version="1",
        deterministic=True,
        has_token_counter=True,
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": ""}, "name must be a text that is not empty; it is ''"),
        ({"version": 3}, "version must be a text that is not empty; it is 3"),
        ({"depth": 0}, "depth must be a whole number of 1 or more; it is 0"),
        ({"depth": True}, "depth must be a whole number of 1 or more; it is True"),
        ({"top_k": "2"}, "top_k must be a whole number of 1 or more; it is '2'"),
        ({"token_budget": -1}, "token_budget must be a whole number of 1 or more; it is -1"),
        ({"budget_rule": "fill"}, "budget_rule must be 'stop' or 'skip'; it is 'fill'"),
        ({"index_version": " "}, "index_version must be a text that is not empty; it is ' '"),
        ({"deterministic": 1}, "deterministic must be True or False; it is 1"),
        ({"answer_path": ""}, "answer_path must be a text that is not empty; it is ''"),
    ],
)
def test_a_setting_that_cannot_work_is_refused_at_decoration(
    settings: dict[str, object], message: str
) -> None:
    class Fresh(Plain):
        pass

    with pytest.raises(ConfigurationError) as refusal:
        decorated(Fresh, **settings)
    assert str(refusal.value) == message


def test_a_class_without_its_methods_is_refused() -> None:
    class NoGenerate:
        def retrieve(self, input: str, depth: int) -> Retrieval:
            return Retrieval(input, [])

    with pytest.raises(ConfigurationError, match=r"NoGenerate\.generate\(self, input, context\)$"):
        rag_system(name="x", version="1", depth=1, top_k=1)(NoGenerate)


def test_a_method_of_another_shape_is_refused() -> None:
    class Shallow:
        def retrieve(self, input: str) -> Retrieval:
            return Retrieval(input, [])

        def generate(self, input: str, context: tuple[Passage, ...]) -> str:
            return ""

    with pytest.raises(ConfigurationError, match=r"Shallow\.retrieve\(self, input, depth\)"):
        rag_system(name="x", version="1", depth=1, top_k=1)(Shallow)


def test_methods_that_cannot_be_waited_for_are_refused_at_decoration() -> None:
    class Counting(Plain):
        async def count_tokens(self, passage: Passage) -> int:
            return 1

    class Yielding(Plain):
        def retrieve(self, input: str, depth: int) -> Iterator[Passage]:
            yield Passage("a")

    class AsyncYielding(Plain):
        async def rerank(self, input: str, passages: object) -> AsyncIterator[Passage]:
            yield Passage("a")

    with pytest.raises(ConfigurationError, match="must be a plain function"):
        decorated(Counting)
    for system in (Yielding, AsyncYielding):
        with pytest.raises(ConfigurationError, match="must return its result whole"):
            decorated(system)


def test_a_class_that_already_has_an_answer_is_refused() -> None:
    class Answering(Plain):
        def answer(self, input: str) -> str:
            return "mine"

    with pytest.raises(ConfigurationError, match="Answering already has an answer"):
        decorated(Answering)


def test_something_that_is_not_a_class_is_refused() -> None:
    decorate: Any = rag_system(name="x", version="1", depth=1, top_k=1)
    with pytest.raises(ConfigurationError, match="rag_system decorates a class"):
        decorate(lambda: None)


def test_a_subclass_may_be_decorated_again_under_its_own_name() -> None:
    class Base(Plain):
        pass

    decorated(Base)

    class Variant(Base):
        pass

    decorated(Variant, name="variant", top_k=1)
    assert bind(Base()).settings.name == "plain"
    assert bind(Variant()).settings.name == "variant"


def test_static_and_class_methods_may_stand_in_for_methods(recorder: Recorder) -> None:
    class Static:
        @staticmethod
        def retrieve(input: str, depth: int) -> Retrieval:
            return Retrieval(input, [])

        @classmethod
        def generate(cls, input: str, context: tuple[Passage, ...]) -> str:
            return cls.__name__

    system = rag_system(name="x", version="1", depth=1, top_k=1, index_version="1")(Static)
    assert bind(system()).answer("q").answer == "Static"


def test_a_system_without_an_index_version_draws_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class First(Plain):
        pass

    class Second(Plain):
        pass

    with caplog.at_level(logging.WARNING, logger="retrospan"):
        decorated(First, name="unversioned", index_version=None)
        decorated(Second, name="unversioned", index_version=None)
    [warning] = caplog.messages
    assert "'unversioned' declares no index_version" in warning


@pytest.mark.parametrize("thing", [Plain(), "text", None, object])
def test_only_an_instance_of_a_decorated_class_can_be_bound(thing: object) -> None:
    with pytest.raises(TypeError, match="expected an instance of a class decorated with"):
        bind(thing)


def test_the_class_itself_cannot_be_bound() -> None:
    class Fresh(Plain):
        pass

    with pytest.raises(TypeError, match="got the class .*Fresh"):
        bind(decorated(Fresh))


def test_a_retriever_that_returns_something_else_is_told_so(recorder: Recorder) -> None:
    class Listing(Plain):
        def retrieve(self, input: str, depth: int) -> Any:
            return [Passage("a")]

    class Texts(Plain):
        def retrieve(self, input: str, depth: int) -> Any:
            texts: Any = ["a"]
            return Retrieval(input, texts)

    expected = r"^retrieve: plain must return a retrospan\.Retrieval; it returned list$"
    with pytest.raises(TypeError, match=expected):
        bind(decorated(Listing)()).answer("q")
    with pytest.raises(TypeError, match=r"^retrieve: .* at position 1 there is a str$"):
        bind(decorated(Texts)()).answer("q")


def test_a_reranker_that_returns_something_else_is_told_so(recorder: Recorder) -> None:
    class Sorting(Plain):
        def rerank(self, input: str, passages: tuple[Passage, ...]) -> Any:
            return {"a": 1}

    with pytest.raises(TypeError, match=r"^rerank: plain must return a list or tuple"):
        bind(decorated(Sorting)()).answer("q")


def test_a_generator_that_returns_something_else_is_told_so(recorder: Recorder) -> None:
    class Numbers(Plain):
        def generate(self, input: str, context: tuple[Passage, ...]) -> Any:
            return 42

    expected = r"^generate: plain must return a string or a mapping; it returned int$"
    with pytest.raises(TypeError, match=expected):
        bind(decorated(Numbers)()).answer("q")
    assert recorder.attributes("generate")["error.type"] == "TypeError"


def test_a_budget_without_token_counts_names_the_stage(recorder: Recorder) -> None:
    class Uncounted(Plain):
        pass

    with pytest.raises(TypeError, match=r"^assemble: the passage at position 1 \(id 'a'\)"):
        bind(decorated(Uncounted, token_budget=9)()).answer("q")
    assert recorder.attributes("assemble")["error.type"] == "TypeError"
    assert recorder.attributes("retrieve")["retrospan.passages.tokens"] == (-1,)


def test_an_exception_of_count_tokens_passes_when_a_budget_needs_the_count(
    recorder: Recorder,
) -> None:
    class Broken(Plain):
        def count_tokens(self, passage: Passage) -> int:
            raise OSError("no vocabulary")

    with pytest.raises(OSError, match="no vocabulary"):
        bind(decorated(Broken, token_budget=9)()).answer("q")
    assert recorder.attributes("retrieve")["retrospan.passages.tokens"] == (-1,)


def test_an_exception_of_count_tokens_stays_inside_when_only_the_record_wants_it(
    recorder: Recorder,
) -> None:
    class Broken(Plain):
        def count_tokens(self, passage: Passage) -> int:
            raise OSError("no vocabulary")

    assert bind(decorated(Broken)()).answer("q").answer == "1 passages"
    assert recorder.attributes("retrieve")["retrospan.passages.tokens"] == (-1,)
    assert "retrospan.assembly.context_tokens" not in recorder.attributes("assemble")


def test_each_passage_is_counted_once_a_request(recorder: Recorder) -> None:
    counted: list[str] = []

    class Counting(Plain):
        def count_tokens(self, passage: Passage) -> int:
            counted.append(passage.id)
            return 3

    bind(decorated(Counting, token_budget=9)()).answer("q")
    assert counted == ["a"]


def test_a_subclass_may_add_the_token_counter(recorder: Recorder) -> None:
    class Base(Plain):
        pass

    class Counting(decorated(Base, token_budget=9)):  # type: ignore[misc]  # a class of this test
        def count_tokens(self, passage: Passage) -> int:
            return 3

    assert bind(Counting()).answer("q").assembly.context_tokens == 3


def test_a_bound_system_is_typed_for_its_callers(recorder: Recorder) -> None:
    class Typed(Plain):
        pass

    outcome = assert_type(bind(decorated(Typed)()).answer("q"), Outcome)
    assert assert_type(outcome.answer, str | None) == "1 passages"
    assert assert_type(outcome.citations, tuple[str | int, ...]) == ()
    assert len(assert_type(outcome.assembly.context, tuple[Passage, ...])) == 1
