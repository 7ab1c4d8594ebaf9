"""A server that is set up before it forks loses nothing and sends nothing twice."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.instrumentation.conftest import OtlpServer

# Python 3.12 warns of every fork of a process with threads, as one that records always is.
PYTHON = (sys.executable, "-W", "ignore::DeprecationWarning", "-c")

SCRIPT = """
import os
import retrospan

telemetry = retrospan.configure(service_name="preloaded")

@retrospan.retrieve
def find(query):
    return [query]

for number in range(3):
    find(f"before {number}")
child = os.fork()
find("parent" if child else "child")
if child:
    _, status = os.waitpid(child, 0)
    assert status == 0, status
    assert telemetry.shutdown(20)
else:
    assert telemetry.shutdown(20)
    os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_i_fork_every_span_of_parent_and_child_arrives_once(otlp_server: OtlpServer) -> None:
    """Case I-FORK."""
    done = subprocess.run(
        [*PYTHON, SCRIPT],
        env=os.environ | {"OTEL_EXPORTER_OTLP_ENDPOINT": otlp_server.address},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    queries = [
        attribute["value"]["stringValue"]
        for span in otlp_server.spans()
        for attribute in span["attributes"]
        if attribute["key"] == "gen_ai.retrieval.query.text"
    ]
    assert sorted(queries) == ["before 0", "before 1", "before 2", "child", "parent"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_i_fork_a_bound_async_system_answers_in_a_child(otlp_server: OtlpServer) -> None:
    """The event loop for async systems has a thread, which a fork does not take along."""
    script = """
import os
import retrospan

@retrospan.rag_system(name="s", version="1", depth=1, top_k=1, index_version="1")
class Late:
    async def retrieve(self, input, depth):
        return retrospan.Retrieval(input, [])
    async def generate(self, input, context):
        return "answered"

bound = retrospan.bind(Late())
assert bound.answer("q").answer == "answered"
child = os.fork()
if child:
    _, status = os.waitpid(child, 0)
    assert status == 0, status
else:
    os._exit(0 if bound.answer("q").answer == "answered" else 1)
"""
    done = subprocess.run(
        [*PYTHON, script], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
