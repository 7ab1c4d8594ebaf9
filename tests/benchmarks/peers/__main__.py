"""Compare with other libraries: `python -m tests.benchmarks.peers`, from the root of the checkout.

It makes an environment for each with uv, installs the newest version from the package index, and
measures it there, offline, with an exporter that sends nothing. Not part of the tests: other
people's releases decide what it shows.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

WORKER: Final = Path(__file__).with_name("worker.py")
LIBRARY: Final = Path(__file__).resolve().parents[3] / "instrumentation"

_ALSO: Final = ("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-common")
_IMPORTS: Final = 9
_NEUTRAL: Final = "opentelemetry.trace, opentelemetry.context"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """One library to compare with."""

    name: str
    shown: str
    installs: Sequence[str]
    imports: str


PEERS: Final = (
    Peer(
        name="retrospan",
        shown="retrospan, by `configure`,",
        installs=[f"{LIBRARY}[otlp]"],
        imports="retrospan",
    ),
    Peer(
        name="retrospan-sdk",
        shown="retrospan, under another's provider,",
        installs=[str(LIBRARY)],
        imports="retrospan",
    ),
    Peer(
        name="traceloop",
        shown="Traceloop",
        installs=["traceloop-sdk", "httpx"],  # it imports httpx and does not say so
        imports="traceloop.sdk, traceloop.sdk.decorators",
    ),
    Peer(
        name="openinference",
        shown="OpenInference",
        installs=["openinference-instrumentation"],
        imports="openinference.instrumentation",
    ),
    Peer(name="langfuse", shown="Langfuse", installs=["langfuse"], imports="langfuse"),
)


def main() -> None:
    """Measure all of them and print the table."""
    asked = _arguments()
    rows = []
    for peer in PEERS:
        directory = asked.directory.resolve() / peer.name
        python = _environment(directory, peer, fresh=asked.fresh)
        done = subprocess.run(
            [python, str(WORKER), peer.name, str(asked.turns)],
            capture_output=True,
            text=True,
            check=True,
            timeout=900,
        )
        figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        rows.append(_row(peer, figures, _import_ms(python, peer.imports)))
    print("| library | thread, × flat | with OTLP encoding, × flat | import |")
    print("|---|---|---|---|")
    print("\n".join(rows))


def _row(peer: Peer, figures: Mapping[str, Any], import_ms: float) -> str:
    thread, encoded = figures["thread"], figures["encoded"]
    return (
        f"| {peer.shown} {figures['version']} | {thread['ratio']:.1f} ({thread['own']:.0f} µs)"
        f" | {encoded['ratio']:.1f} ({encoded['own']:.0f} µs) | {import_ms:.0f} ms |"
    )


def _environment(directory: Path, peer: Peer, *, fresh: bool) -> str:
    """Return the interpreter of the peer's environment, which is made where there is none."""
    python = directory / "bin" / "python"
    if fresh or not python.exists():
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        _uv("venv", "--quiet", "--clear", "--python", version, str(directory))
        _uv("pip", "install", "--quiet", "--python", str(python), *peer.installs, *_ALSO)
    if peer.imports == "retrospan":  # what is measured is the checkout as it is now
        _uv("pip", "install", "--quiet", "--python", str(python), "--reinstall", *peer.installs)
    return str(python)


def _uv(*arguments: str) -> None:
    # From elsewhere: in the checkout, uv would hold the other libraries to this project's pins.
    subprocess.run(["uv", *arguments], check=True, cwd=tempfile.gettempdir())


def _import_ms(python: str, modules: str) -> float:
    """Processor time of the import, where opentelemetry-api is already imported."""
    script = (
        f"import time, {_NEUTRAL}\nbegan = time.process_time()\nimport {modules}\n"
        "print((time.process_time() - began) * 1e3)"
    )
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    times = []
    for _ in range(_IMPORTS + 1):
        done = subprocess.run(
            [python, "-c", script],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        times.append(float(done.stdout.split()[-1]))
    return median(times[1:])  # the first one compiles


class _Arguments(argparse.Namespace):
    directory: Path
    turns: int
    fresh: bool


def _arguments() -> _Arguments:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.peers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--directory",
        type=Path,
        default=Path("build", "benchmarks", "peers"),
        help="where the environments are kept",
    )
    parser.add_argument("--turns", type=int, default=60, help="turns of 100 requests for each")
    parser.add_argument("--fresh", action="store_true", help="install the newest versions again")
    return parser.parse_args(namespace=_Arguments())


if __name__ == "__main__":
    main()
