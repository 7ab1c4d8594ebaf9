"""Which tracer records: the run's, else the configured one, else the application's."""

from opentelemetry import trace
from opentelemetry.trace import Tracer, TracerProvider

from retrospan._guard import note_fault
from retrospan._run_scope import RunScope, current_run


class _Tracers:
    """The tracers of this process, each made at its first use."""

    __slots__ = ("application", "configured", "version")

    def __init__(self) -> None:
        self.application: Tracer | None = None
        self.configured: Tracer | None = None
        self.version: str | None = None


_tracers = _Tracers()


def tracer_for(run: RunScope | None) -> Tracer:
    """Return the tracer that a request of this run, or of live traffic, is recorded with."""
    if run is not None and run.tracer_provider is not None:
        return _tracer_of(run.tracer_provider)
    if _tracers.configured is not None:
        return _tracers.configured
    if _tracers.application is None:
        # Without a provider yet, this is a proxy that follows the one the application sets.
        _tracers.application = trace.get_tracer("retrospan", _library_version())
    return _tracers.application


def current_tracer() -> Tracer | None:
    """Return the tracer of the code that runs now; None when it cannot be found."""
    try:
        return tracer_for(current_run())
    except Exception as error:
        note_fault("find the tracer", error)
        return None


def use_provider(provider: TracerProvider | None) -> None:
    """Record live traffic with this provider; None goes back to the application's own."""
    _tracers.configured = None if provider is None else _tracer_of(provider)


def _tracer_of(provider: TracerProvider) -> Tracer:
    return provider.get_tracer("retrospan", _library_version())


def _library_version() -> str:
    if _tracers.version is None:
        # Its import takes longer than that of this library.
        from importlib.metadata import PackageNotFoundError, version

        try:
            _tracers.version = version("retrospan")
        except PackageNotFoundError:  # run from a source tree that was never installed
            _tracers.version = ""
    return _tracers.version
