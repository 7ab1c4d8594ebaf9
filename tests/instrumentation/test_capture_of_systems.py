"""Capture as a system declares it, as `configure` fills it in, and as a replay checks it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from retrospan import Passage, Retrieval, bind, rag_system
from retrospan._capture import CaptureSettings, use_process_settings
from retrospan._passages import describe

if TYPE_CHECKING:
    from tests.instrumentation.conftest import OtlpServer, Recorder

KEY = "sixteen bytes or more"
STORE = {"a": "Ada pays 40 EUR.", "b": "Ada is refunded."}


def without_names(text: str) -> str:
    return text.replace("Ada", "[NAME]")


@rag_system(
    name="desk",
    version="1",
    depth=2,
    top_k=2,
    index_version="1",
    capture="hashed",
    redact=without_names,
    hash_key=KEY,
)
class Desk:
    def retrieve(self, input: dict[str, str], depth: int) -> Retrieval:
        found = [Passage(id, text, metadata={"by": "Ada"}) for id, text in STORE.items()]
        return Retrieval(input["question"], found)

    def rerank(self, input: object, passages: tuple[Passage, ...]) -> list[Passage]:
        return list(reversed(passages))

    def generate(self, input: object, context: tuple[Passage, ...]) -> str:
        return context[0].text


ASKED = {"question": "Is Ada refunded?"}


def test_a_system_says_itself_what_is_captured_and_gets_its_own_texts(recorder: Recorder) -> None:
    assert bind(Desk()).answer(ASKED).answer == STORE["b"]
    assert len(recorder.spans) == 5
    for span in recorder.spans:
        recorded = str(dict(span.attributes or {}))
        assert "Ada" not in recorded and "refunded" not in recorded
    assert recorder.attributes("rerank")["retrospan.passages.id"] == ("b", "a")


def test_a_replay_finds_out_from_the_hashes_whether_the_texts_are_still_the_same(
    recorder: Recorder,
) -> None:
    bind(Desk()).answer(ASKED)
    capture = bind(Desk()).settings.capture.resolved()
    recorded = recorder.attributes("retrieve")
    hashes = dict(
        zip(recorded["retrospan.passages.id"], recorded["retrospan.passages.hash"], strict=True)
    )
    assert recorder.attributes("request")["retrospan.input.hash"] == capture.json_hash(ASKED)
    for id, text in STORE.items():
        same = Passage(id, text, metadata={"by": "Ada"})
        assert describe(same, capture).hash == hashes[id]
        assert describe(Passage(id, text + " Now.", metadata={"by": "Ada"}), capture).hash not in (
            hashes.values()
        )


def test_a_replay_is_recorded_under_the_same_rules(recorder: Recorder) -> None:
    passages = [Passage(id, text) for id, text in STORE.items()]
    replayed = bind(Desk()).replay(ASKED, passages, top_k=1, token_budget=None, budget_rule="stop")
    assert replayed.answer == STORE["a"]
    assert "Ada" not in str([dict(span.attributes or {}) for span in recorder.spans])


@pytest.fixture
def process_settings() -> Iterator[None]:
    """Settings as `configure` gives them, taken back after the test."""
    use_process_settings(CaptureSettings(capture="none", hash_key=KEY, max_text_length=5))
    yield
    use_process_settings(None)


@pytest.mark.usefixtures("process_settings")
def test_what_a_system_leaves_open_is_filled_in_by_the_process() -> None:
    assert CaptureSettings().resolved().mode == "none"
    own = CaptureSettings(capture="full", max_text_length=8).resolved()
    assert own.mode == "full"
    assert own.has_key
    assert own.text("123456789").startswith("12345678<left out: 1")


def test_configure_sets_what_the_process_captures_also_after_a_shutdown(
    otlp_server: OtlpServer,
) -> None:
    script = """
import sys
import retrospan
from retrospan import Passage

@retrospan.retrieve
def search(query):
    return [Passage("a", "secret")]

arguments = {"service_name": "x", "endpoint": sys.argv[1]}
telemetry = retrospan.configure(**arguments, capture="passages-hashed", redact=str.upper)
search("question")
telemetry.shutdown()
from opentelemetry import trace
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace import TracerProvider
exporter = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
with retrospan.run_scope(run_id="r", tracer_provider=provider):
    search("question")
[span] = exporter.get_finished_spans()
found = span.attributes
print(found["gen_ai.retrieval.query.text"], "gen_ai.retrieval.documents" in found)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script, otlp_server.address],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("QUESTION False\n", "")
    assert "secret" not in str(otlp_server.spans())


def test_events_are_not_written_which_is_said_once() -> None:
    script = """
import retrospan
@retrospan.retrieve
def search(query):
    return ["secret"]
from opentelemetry.sdk.trace import TracerProvider
with retrospan.run_scope(run_id="r", tracer_provider=TracerProvider()):
    search("q")
    search("q")
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", script],
        env=os.environ | {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "EVENT_ONLY"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    [line] = done.stderr.splitlines()
    assert (
        "asks for content in events, which this library does not write; content is hashed" in line
    )
