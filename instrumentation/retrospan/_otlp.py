"""Send the record to a collector: the one module that sets up an OpenTelemetry SDK.

Everything of the SDK is imported inside functions, so that importing the library loads none.
"""

import atexit
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, Literal

from opentelemetry import trace

from retrospan._capture import CaptureMode, CaptureSettings, Redact, use_process_settings
from retrospan._errors import ConfigurationError
from retrospan._guard import guarded, logger
from retrospan._last_call import LastCall
from retrospan._steps import end_abandoned
from retrospan._tracing import use_provider

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SpanExporter

Protocol = Literal["http/protobuf", "grpc"]

_DEFAULT_ENDPOINTS: Final[Mapping[Protocol, str]] = {
    "http/protobuf": "http://127.0.0.1:4318",
    "grpc": "http://127.0.0.1:4317",
}
_ENDPOINT_VARIABLES: Final = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_EXPORTER_LOGGERS: Final[Mapping[Protocol, str]] = {
    "http/protobuf": "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "grpc": "opentelemetry.exporter.otlp.proto.grpc.exporter",
}
_QUIET_S: Final = 60.0

MAX_QUEUE_SIZE: Final = 8192
"""Spans that wait to be sent; OTEL_BSP_MAX_QUEUE_SIZE is the standard variable for it."""


class Telemetry:
    """The record's way out of this process; it ends by itself when the process does."""

    __slots__ = ("_done", "_exit_timeout_s", "_lock", "_shutdown", "_where", "tracer_provider")

    def __init__(self, provider: "TracerProvider", where: str, exit_timeout_s: float) -> None:
        self.tracer_provider = provider
        self._where = where
        self._exit_timeout_s = exit_timeout_s
        self._lock = threading.Lock()
        self._done = False
        # The SDK retries inside its shutdown, for longer than a stopping worker may live.
        self._shutdown = LastCall(provider.shutdown)

    def force_flush(self, timeout_s: float = 10.0) -> bool:
        """Send what is waiting; return whether that ended within the timeout."""
        end_abandoned()
        return _within(timeout_s, self.tracer_provider.force_flush)

    def shutdown(self, timeout_s: float | None = None) -> bool:
        """Send what is waiting and stop; return whether that ended within the timeout.

        Args:
            timeout_s: how long to wait; None for the `exit_timeout_s` given to `configure`.
        """
        with self._lock:
            if self._done:
                return True
            self._done = True
        end_abandoned()
        _current.telemetry = None
        use_provider(None)
        atexit.unregister(self.shutdown)
        limit_s = self._exit_timeout_s if timeout_s is None else timeout_s
        ended = self._shutdown.within(limit_s)
        if not ended:
            with guarded("report spans that were not sent"):
                logger.warning(
                    "%s did not take the last spans within %g s; they may be lost",
                    self._where,
                    limit_s,
                )
        return ended


class _Current:
    """The telemetry that `configure` set up last and that was not shut down since."""

    __slots__ = ("telemetry",)

    def __init__(self) -> None:
        self.telemetry: Telemetry | None = None


_current: Final = _Current()


def configure(
    *,
    service_name: str,
    endpoint: str | None = None,
    protocol: Protocol = "http/protobuf",
    environment: str | None = None,
    headers: Mapping[str, str] | None = None,
    exit_timeout_s: float = 5.0,
    capture: CaptureMode | None = None,
    redact: Redact | None = None,
    hash_key: bytes | str | None = None,
    max_text_length: int | None = None,
    max_metadata_length: int | None = None,
) -> Telemetry:
    """Send this process's requests to a collector over OTLP; return the handle to stop it.

    Where the application has set no tracer provider, this one becomes it. Where it has, only
    the requests of decorated systems come here.

    Args:
        service_name: recorded as `service.name`.
        endpoint: the collector's address; None for OTEL_EXPORTER_OTLP_ENDPOINT, else a
            collector on this machine.
        protocol: `http/protobuf`, which survives a fork of this process, or `grpc`.
        environment: recorded as `deployment.environment.name`.
        headers: sent with every export.
        exit_timeout_s: how long the end of the process may wait for the last spans.
        capture: how much of the content is recorded where a system does not say it itself; it
            and the next ones stay in force after a shutdown.
        redact: gives what may be recorded of a text.
        hash_key: makes every hash an HMAC with this key.
        max_text_length: characters of one text.
        max_metadata_length: characters of one passage's metadata.

    Raises:
        ConfigurationError: a setting cannot work, `retrospan[otlp]` is not installed, or this
            process is configured already.
    """
    _check(service_name, protocol, exit_timeout_s)
    shared = CaptureSettings(
        capture=capture,
        redact=redact,
        hash_key=hash_key,
        max_text_length=max_text_length,
        max_metadata_length=max_metadata_length,
    )
    address = _address(endpoint, protocol)
    provider = _provider(service_name, environment, protocol, address, headers)
    where = address or os.environ.get(_ENDPOINT_VARIABLES[0], "") or "the collector"
    telemetry = Telemetry(provider, _without_password(where), exit_timeout_s)
    logging.getLogger(_EXPORTER_LOGGERS[protocol]).addFilter(_Quiet())
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        trace.set_tracer_provider(provider)
    use_process_settings(shared)
    use_provider(provider)
    _current.telemetry = telemetry
    atexit.register(telemetry.shutdown)
    return telemetry


def _check(service_name: str, protocol: str, exit_timeout_s: float) -> None:
    if _current.telemetry is not None:
        raise ConfigurationError("configure was called before: shut that telemetry down first")
    if not isinstance(service_name, str) or not service_name.strip():
        raise ConfigurationError(
            f"service_name must be a text that is not empty; it is {service_name!r}"
        )
    if protocol not in _DEFAULT_ENDPOINTS:
        raise ConfigurationError(f"protocol must be 'http/protobuf' or 'grpc'; it is {protocol!r}")
    if not exit_timeout_s > 0:
        raise ConfigurationError(f"exit_timeout_s must be above 0; it is {exit_timeout_s!r}")


def _address(endpoint: str | None, protocol: Protocol) -> str | None:
    """Return the exporter's endpoint; None where a standard variable is to decide."""
    if endpoint is None:
        if any(os.environ.get(name) for name in _ENDPOINT_VARIABLES):
            return None
        endpoint = _DEFAULT_ENDPOINTS[protocol]
    from urllib.parse import urlsplit

    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(
            f"endpoint must look like {_DEFAULT_ENDPOINTS[protocol]}; it is"
            f" {_without_password(endpoint)!r}"
        )
    if protocol == "http/protobuf" and parts.path in ("", "/"):
        return endpoint.rstrip("/") + "/v1/traces"
    return endpoint


def _without_password(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    return scheme + separator + rest.rpartition("@")[2]


def _provider(
    service_name: str,
    environment: str | None,
    protocol: Protocol,
    address: str | None,
    headers: Mapping[str, str] | None,
) -> "TracerProvider":
    try:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        from retrospan._batching import SizedExporter

        exporter = SizedExporter(_exporter(protocol, address, headers))
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"configure needs the OpenTelemetry SDK and its OTLP exporters ({error.name} is"
            " missing): pip install 'retrospan[otlp]'"
        ) from error
    described = {"service.name": service_name}
    if environment is not None:
        described["deployment.environment.name"] = environment
    # Telemetry.shutdown ends it, within its own limit.
    provider = TracerProvider(resource=Resource.create(described), shutdown_on_exit=False)
    queue = None if os.environ.get("OTEL_BSP_MAX_QUEUE_SIZE") else MAX_QUEUE_SIZE
    provider.add_span_processor(BatchSpanProcessor(exporter, max_queue_size=queue))
    return provider


def _exporter(
    protocol: Protocol, address: str | None, headers: Mapping[str, str] | None
) -> "SpanExporter":
    if protocol == "grpc":
        from retrospan._wire_grpc import GrpcExporter

        lowered = {name.lower(): value for name, value in (headers or {}).items()}
        return GrpcExporter(endpoint=address, headers=lowered or None)
    from retrospan._wire_http import HttpExporter

    return HttpExporter(endpoint=address, headers=dict(headers or {}) or None)


def _within(timeout_s: float, call: Callable[[], object]) -> bool:
    """Run a call that may block for long in a thread; return whether it ended in time."""

    def run() -> None:
        with guarded("send the last spans"):
            call()

    thread = threading.Thread(target=run, name="retrospan-flush", daemon=True)
    thread.start()
    thread.join(timeout_s)
    return not thread.is_alive()


class _Quiet(logging.Filter):
    """Lets each of the exporter's messages through once a minute, and retries never.

    With a collector down, the exporter would otherwise log several lines for every batch.
    """

    def __init__(self) -> None:
        super().__init__()
        self._last: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        message = str(record.msg)
        if message.startswith("Transient error"):
            return False
        now = time.monotonic()
        if now - self._last.get(message, -_QUIET_S) < _QUIET_S:
            return False
        self._last[message] = now
        return True
