"""Any generator, driven in any way, does what it did before it was decorated."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from retrospan import generate, run_scope

if TYPE_CHECKING:
    from tests.instrumentation.conftest import Recorder

STEPS = st.lists(
    st.sampled_from(["next", "send", "throw", "throw other", "throw exit", "close"]),
    min_size=1,
    max_size=6,
)
BODIES = st.lists(
    st.sampled_from(["yield", "catch", "stay", "finally", "raise", "return"]),
    min_size=1,
    max_size=4,
)


class Known(Exception):
    """What the generators catch."""


def scripted(body: list[str], log: list[object]) -> Generator[object, object, object]:
    """Do what the script says, and write down what happens."""
    for number, line in enumerate(body):
        if line == "yield":
            log.append((yield number))
        elif line == "catch":
            try:
                log.append((yield number))
            except Known as error:
                log.append(error)
        elif line == "stay":
            try:
                log.append((yield number))
            except GeneratorExit:
                log.append("stayed")
        elif line == "finally":
            try:
                yield number
            finally:
                log.append("finally")
        elif line == "raise":
            raise KeyError(number)
        else:
            return f"returned {number}"
    return None


async def scripted_async(body: list[str], log: list[object]) -> AsyncGenerator[object, object]:
    """The same, async; what cannot be returned is not."""
    for number, line in enumerate(body):
        await asyncio.sleep(0)
        if line == "yield":
            log.append((yield number))
        elif line == "catch":
            try:
                log.append((yield number))
            except Known as error:
                log.append(error)
        elif line == "stay":
            try:
                log.append((yield number))
            except GeneratorExit:
                log.append("stayed")
        elif line == "finally":
            try:
                yield number
            finally:
                await asyncio.sleep(0)
                log.append("finally")
        elif line == "raise":
            raise KeyError(number)
        else:
            return


def driven(make: Callable[..., Any], body: list[str], steps: list[str]) -> list[object]:
    """Everything that can be seen of a generator from outside and from inside."""
    log: list[object] = []
    generator = make(body, log)
    known, thrown = Known("known"), {"throw other": OSError("other"), "throw exit": GeneratorExit()}
    for step in steps:
        try:
            if step == "next":
                log.append(("item", next(generator)))
            elif step == "send":
                log.append(("item", generator.send("sent")))
            elif step.startswith("throw"):
                log.append(("item", generator.throw(thrown.get(step, known))))
            else:
                log.append(("closed", generator.close()))
        except BaseException as error:
            log.append((type(error), str(error), error is known, error in thrown.values()))
    for _ in body:  # a line that stays is left by the next one
        try:
            generator.close()
        except BaseException as error:
            log.append(str(error))
    return [item if not isinstance(item, Known) else "known" for item in log]


async def driven_async(make: Callable[..., Any], body: list[str], steps: list[str]) -> list[object]:
    """The same, async."""
    log: list[object] = []
    generator = make(body, log)
    known, thrown = Known("known"), {"throw other": OSError("other"), "throw exit": GeneratorExit()}
    for step in steps:
        try:
            if step == "next":
                log.append(("item", await generator.__anext__()))
            elif step == "send":
                log.append(("item", await generator.asend("sent")))
            elif step.startswith("throw"):
                log.append(("item", await generator.athrow(thrown.get(step, known))))
            else:
                log.append(("closed", await generator.aclose()))
        except BaseException as error:
            log.append((type(error), str(error), error is known, error in thrown.values()))
    for _ in body:  # a line that stays is left by the next one
        try:
            await generator.aclose()
        except BaseException as error:
            log.append(str(error))
    return [item if not isinstance(item, Known) else "known" for item in log]


def returning(make: Callable[..., Any]) -> Callable[..., Any]:
    def function(body: list[str], log: list[object]) -> Any:
        return make(body, log)

    return function


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(BODIES, STEPS)
def test_a_generator_behaves_in_every_way_as_it_did(
    recorder: Recorder, body: list[str], steps: list[str]
) -> None:
    with run_scope(run_id="r", tracer_provider=recorder.provider):
        expected = driven(scripted, body, steps)
        assert driven(generate(scripted), body, steps) == expected
        assert driven(generate(returning(scripted)), body, steps) == expected


# A generator that stays when it is closed is told of at its collection, decorated or not.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(BODIES, STEPS)
def test_an_async_generator_behaves_in_every_way_as_it_did(
    recorder: Recorder, body: list[str], steps: list[str]
) -> None:
    async def main() -> None:
        expected = await driven_async(scripted_async, body, steps)
        assert await driven_async(generate(scripted_async), body, steps) == expected
        assert await driven_async(generate(returning(scripted_async)), body, steps) == expected

    asyncio.run(main())
