"""The library inside an application of its own process: no SDK, the application's, or ours."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import textwrap
import time
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.instrumentation.conftest import OtlpServer

SYSTEM = """
import retrospan

@retrospan.rag_system(name="desk", version="1", depth=1, top_k=1, index_version="1")
class Desk:
    def retrieve(self, input, depth):
        return retrospan.Retrieval(input, [retrospan.Passage("kb-1", "text", 0.5)])

    def generate(self, input, context):
        return f"{len(context)} passages"
"""


def run(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a fresh interpreter without the surrounding OTEL settings."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", SYSTEM + textwrap.dedent(script)],
        env=inherited | environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def attributes_of(span: dict[str, Any]) -> dict[str, Any]:
    return {item["key"]: item["value"] for item in span["attributes"]}


@pytest.fixture
def closed_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_without_a_provider_the_system_answers_and_no_sdk_is_loaded() -> None:
    done = run("""
        import sys
        print(Desk().answer("q"))
        print([name for name in sys.modules if name.startswith("opentelemetry.sdk")])
    """)
    assert (done.stdout, done.stderr) == ("1 passages\n[]\n", "")


def test_without_configure_the_applications_provider_records_whenever_it_is_set() -> None:
    done = run("""
        Desk().answer("before there is a provider")
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor
        from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
        exporter = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        trace.set_tracer_provider(provider)
        with provider.get_tracer("web").start_as_current_span("GET /"):
            Desk().answer("after")
        spans = {span.name: span for span in exporter.get_finished_spans()}
        assert len(spans) == 5, spans
        request = spans["invoke_workflow desk"]
        assert request.parent.span_id == spans["GET /"].context.span_id
        assert "retrospan.run.id" not in request.attributes
        print(request.attributes["retrospan.input"], request.instrumentation_scope.name)
    """)
    assert (done.stdout, done.stderr) == ('"after" retrospan\n', "")


def test_configure_without_the_extra_says_what_to_install() -> None:
    done = run("""
        import sys
        sys.modules["opentelemetry.sdk.trace"] = None  # what a missing package looks like
        try:
            retrospan.configure(service_name="desk")
        except retrospan.ConfigurationError as refusal:
            print(refusal)
    """)
    assert done.stderr == ""
    assert "pip install 'retrospan[otlp]'" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("service_name=''", "service_name must be a text that is not empty; it is ''"),
        ("service_name='x', protocol='udp'", "protocol must be 'http/protobuf' or 'grpc'"),
        ("service_name='x', endpoint='nowhere'", "endpoint must look like http://127.0.0.1:4318"),
        ("service_name='x', endpoint='ftp://u:secret@h'", "it is 'ftp://h'"),
        ("service_name='x', exit_timeout_s=0", "exit_timeout_s must be above 0; it is 0"),
    ],
)
def test_configure_refuses_what_cannot_work(arguments: str, message: str) -> None:
    done = run(f"""
        try:
            retrospan.configure({arguments})
        except retrospan.ConfigurationError as refusal:
            print(refusal)
    """)
    assert message in done.stdout, done
    assert "secret" not in done.stdout


def test_spans_arrive_over_otlp_without_a_word_about_shutdown(otlp_server: OtlpServer) -> None:
    done = run(
        """
        import os
        from opentelemetry import trace
        retrospan.configure(
            service_name="help-desk",
            endpoint=os.environ["COLLECTOR"],
            environment="production",
            headers={"X-Token": "t"},
        )
        with trace.get_tracer("web").start_as_current_span("GET /"):
            Desk().answer("q")
        """,
        COLLECTOR=otlp_server.address,
    )
    assert (done.returncode, done.stderr) == (0, "")
    spans = {span["name"]: span for span in otlp_server.spans()}
    assert sorted(spans) == [
        "GET /",
        "assemble",
        "generate desk",
        "invoke_workflow desk",
        "retrieval",
    ]
    resource = attributes_of(spans["retrieval"]["resource"])
    assert resource["service.name"] == {"stringValue": "help-desk"}
    assert resource["deployment.environment.name"] == {"stringValue": "production"}
    assert otlp_server.headers[0]["x-token"] == "t"
    retrieved = attributes_of(spans["retrieval"])
    assert retrieved["retrospan.passages.score"] == {
        "arrayValue": {"values": [{"doubleValue": 0.5}]}
    }
    assert retrieved["retrospan.passages.tokens"] == {
        "arrayValue": {"values": [{"intValue": "-1"}]}
    }
    documents = json.loads(retrieved["gen_ai.retrieval.documents"]["stringValue"])
    assert documents == [{"id": "kb-1", "score": 0.5, "content": "text"}]


def test_an_application_with_its_own_provider_keeps_it_and_we_get_the_requests_only(
    otlp_server: OtlpServer,
) -> None:
    done = run(
        """
        import os
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        mine = TracerProvider()
        trace.set_tracer_provider(mine)
        telemetry = retrospan.configure(service_name="x", endpoint=os.environ["COLLECTOR"])
        assert trace.get_tracer_provider() is mine
        with trace.get_tracer("web").start_as_current_span("GET /"):
            Desk().answer("q")
        assert telemetry.force_flush()
        assert telemetry.shutdown()
        assert telemetry.shutdown()
        Desk().answer("after the shutdown")
        retrospan.configure(service_name="x", endpoint=os.environ["COLLECTOR"]).shutdown()
        """,
        COLLECTOR=otlp_server.address,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(otlp_server.spans()) == 4


def test_the_standard_variable_decides_where_no_endpoint_is_given(
    otlp_server: OtlpServer,
) -> None:
    done = run(
        "retrospan.configure(service_name='x'); Desk().answer('q')",
        OTEL_EXPORTER_OTLP_ENDPOINT=otlp_server.address,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(otlp_server.spans()) == 4


def test_a_second_configure_is_refused_until_the_first_is_shut_down(closed_port: int) -> None:
    pytest.importorskip(
        "opentelemetry.exporter.otlp.proto.http", reason="retrospan[otlp] is not installed"
    )
    done = run(f"""
        retrospan.configure(service_name="x", endpoint="http://127.0.0.1:{closed_port}")
        try:
            retrospan.configure(service_name="x")
        except retrospan.ConfigurationError as refusal:
            print(refusal)
    """)
    assert "shut that telemetry down first" in done.stdout


@pytest.mark.parametrize("protocol", ["http/protobuf", "grpc"])
def test_a_collector_that_is_down_holds_the_exit_up_no_longer_than_allowed(
    closed_port: int, protocol: str
) -> None:
    """Case I-EXIT-HANG, the first half."""
    pytest.importorskip(
        "opentelemetry.exporter.otlp.proto.grpc", reason="retrospan[otlp] is not installed"
    )
    started = time.monotonic()
    done = run(f"""
        import logging
        logging.basicConfig(format="LOGGED %(message)s")
        retrospan.configure(
            service_name="x",
            endpoint="http://127.0.0.1:{closed_port}",
            protocol="{protocol}",
            exit_timeout_s=1.5,
        )
        Desk().answer("q")
    """)
    assert time.monotonic() - started < 10
    assert done.returncode == 0
    [warning] = [line for line in done.stderr.splitlines() if line.startswith("LOGGED")]
    # The oldest SDK gives up at once where a newer one retries.
    assert "did not take the last spans within 1.5 s" in warning or "Exception while" in warning


def test_a_collector_that_comes_back_during_the_exit_gets_the_last_spans(
    otlp_server: OtlpServer,
) -> None:
    """Case I-EXIT-HANG, the second half."""
    otlp_server.unavailable = 1
    done = run(
        "retrospan.configure(service_name='x', exit_timeout_s=30); Desk().answer('q')",
        OTEL_EXPORTER_OTLP_ENDPOINT=otlp_server.address,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert len(otlp_server.spans()) == 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_spans_of_a_forked_process_arrive_once_each(otlp_server: OtlpServer) -> None:
    """Case I-FORK."""
    done = run(
        """
        import os
        telemetry = retrospan.configure(service_name="x", endpoint=os.environ["COLLECTOR"])
        from opentelemetry import trace
        tracer = trace.get_tracer("web")
        for number in range(3):
            tracer.start_span(f"before-{number}").end()
        child = os.fork()
        if child == 0:
            tracer.start_span("child").end()
            telemetry.shutdown()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        tracer.start_span("parent").end()
        """,
        COLLECTOR=otlp_server.address,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(span["name"] for span in otlp_server.spans()) == [
        "before-0",
        "before-1",
        "before-2",
        "child",
        "parent",
    ]
