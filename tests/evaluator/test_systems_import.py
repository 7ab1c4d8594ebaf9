"""`--system module:name` and `--set`: what leads to a system, and what is refused how."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from retrospan_evaluator.errors import SystemNotImportable, UsageError
from retrospan_evaluator.systems import load_system, parse_settings, with_settings

SYSTEM = """
    from retrospan import Passage, Retrieval, rag_system

    @rag_system(name="shop", version="1", depth=4, top_k=2, index_version="i1")
    class Shop:
        def __init__(self, greeting="hello"):
            self.greeting = greeting

        def retrieve(self, input, depth):
            return Retrieval(str(input), [Passage("a", "text")])

        def generate(self, input, context):
            return self.greeting

    def with_greeting():
        return Shop("welcome")

    def broken():
        raise ValueError("no key")

    def plain():
        return object()

    class Undecorated:
        pass

    number = 3

    class Outer:
        Inner = Shop
"""


@pytest.fixture
def module(tmp_path: Path) -> Callable[[str, str], str]:
    """Writes a module into the folder that is searched; names are never reused."""

    def write(name: str, source: str) -> str:
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(source))
        return name

    return write


def test_a_class_a_factory_and_a_nested_name_lead_to_a_system(
    tmp_path: Path, module: Callable[[str, str], str]
) -> None:
    module("shop_found", SYSTEM)
    for name in ("Shop", "with_greeting", "Outer.Inner"):
        found = load_system(f"shop_found:{name}", folder=tmp_path)
        assert found.settings.name == "shop"
        assert found.settings.top_k == 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    id: str
    reference: str
    says: str


REFUSALS = (
    Refusal(id="no name", reference="shop_refused", says="expects module:name"),
    Refusal(id="no module", reference="nowhere:Shop", says="there is no module 'nowhere'"),
    Refusal(id="no inner module", reference="json.nowhere:X", says="there is no module 'json.now"),
    Refusal(id="no such name", reference="shop_refused:Shopp", says="no class or factory named"),
    Refusal(id="not callable", reference="shop_refused:number", says="no class or factory named"),
    Refusal(id="raises", reference="shop_refused:broken", says="ValueError: no key"),
    Refusal(id="not decorated", reference="shop_refused:plain", says="'shop_refused:plain'"),
    Refusal(
        id="undecorated class",
        reference="shop_refused:Undecorated",
        says="got one of shop_refused.Undecorated: put @rag_system(",
    ),
    Refusal(id="a file", reference="shop_refused.py:Shop", says="write --system shop_refused:Shop"),
    Refusal(id="a file below", reference="./app/shop.py:Shop", says="write --system app.shop:Shop"),
    Refusal(id="needs a package", reference="shop_needs:X", says="needs 'no_such_package'"),
    Refusal(id="fails on import", reference="shop_fails:X", says="RuntimeError: not today"),
    Refusal(id="bad syntax", reference="shop_syntax:X", says="SyntaxError"),
)


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: str(refusal.id))
def test_what_does_not_lead_to_a_system_is_refused_in_one_sentence(
    refusal: Refusal, tmp_path: Path, module: Callable[[str, str], str]
) -> None:
    module("shop_refused", SYSTEM)
    module("shop_needs", "import no_such_package")
    module("shop_fails", "raise RuntimeError('not today')")
    module("shop_syntax", "def X(:")
    with pytest.raises(SystemNotImportable) as refused:
        load_system(refusal.reference, folder=tmp_path)
    assert refusal.says in str(refused.value)
    assert "\n" not in str(refused.value) and " at 0x" not in str(refused.value)
    assert refused.value.exit_code == 2


def test_settings_are_read_by_name() -> None:
    typed = ["depth=8", "token_budget=none", "budget_rule=skip", "top_k = 4"]
    assert parse_settings(typed) == {
        "depth": 8,
        "token_budget": None,
        "budget_rule": "skip",
        "top_k": 4,
    }


@pytest.mark.parametrize(
    "typed", ["model=big", "top_k", "top_k=", "top_k=two", "top_k=none", "depth=-1", "depth=1.5"]
)
def test_another_setting_or_value_is_wrong_usage(typed: str) -> None:
    with pytest.raises(UsageError, match="--set"):
        parse_settings([typed])


@pytest.mark.parametrize("second", ["top_k=2", "top_k=1", " top_k = 2"])
def test_a_setting_that_comes_twice_is_refused(second: str) -> None:
    with pytest.raises(UsageError, match=f"got top_k twice, the second time as '{second}'"):
        parse_settings(["top_k=1", "depth=6", second])


def test_settings_are_checked_as_at_decoration(
    tmp_path: Path, module: Callable[[str, str], str]
) -> None:
    module("shop_set", SYSTEM)
    system = load_system("shop_set:Shop", folder=tmp_path)
    assert with_settings(system, {"top_k": 1}).settings.top_k == 1
    assert system.settings.top_k == 2
    for wrong in ({"top_k": 0}, {"budget_rule": "guess"}):
        with pytest.raises(UsageError, match="--set was refused"):
            with_settings(system, wrong)
