"""The figures of one run as a table for people and as JSON for comparing later."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version

from rich.table import Table

from tests.benchmarks.measurement import Beside, Measurement

VERSION = 1
"""Of the JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """What one run of a benchmark gave, where and when."""

    benchmark: str
    quick: bool
    measured_at: datetime
    machine: dict[str, object]
    measurements: tuple[Measurement, ...]

    @classmethod
    def now(cls, benchmark: str, *, quick: bool, measurements: Sequence[Measurement]) -> Results:
        """Figures that were measured just now on this machine."""
        return cls(
            benchmark=benchmark,
            quick=quick,
            measured_at=datetime.now(UTC),
            machine=_machine(),
            measurements=tuple(measurements),
        )

    @property
    def label(self) -> str:
        """The benchmark's name, and its form where that is the quick one."""
        return f"{self.benchmark}-quick" if self.quick else self.benchmark

    def table(self) -> Table:
        """A line a figure and a line for each other thing beside it."""
        table = Table(title=f"{self.label} ({_described(self.machine)})", title_justify="left")
        table.add_column("measured")
        for heading in ("value", "bar"):
            table.add_column(heading, justify="right", no_wrap=True)
        table.add_column("beside")
        for heading in ("value", "ratio"):
            table.add_column(heading, justify="right", no_wrap=True)
        for figure in self.measurements:
            own = (figure.name, _shown(figure.value, figure.unit), self._bar(figure))
            others = [_beside(figure, other) for other in figure.beside] or [("", "", "")]
            for line, other in enumerate(others):
                table.add_row(*(("", "", "") if line else own), *other)
        return table

    def json(self) -> str:
        """All of it, numbers unrounded."""
        document = {
            "version": VERSION,
            "benchmark": self.benchmark,
            "quick": self.quick,
            "measured_at": self.measured_at.isoformat(timespec="seconds"),
            "machine": self.machine,
            "measurements": [self._document(figure) for figure in self.measurements],
        }
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"

    def _bar(self, figure: Measurement) -> str:
        if figure.meets_bar is None:
            return ""
        sign = "≤" if figure.at_most is not None else "≥"
        bar = figure.at_most if figure.at_most is not None else figure.at_least
        missed = "" if self.quick or figure.meets_bar else " MISSED"
        return f"{sign} {bar:,g}{missed}"

    def _document(self, figure: Measurement) -> dict[str, object]:
        return {
            "name": figure.name,
            "value": figure.value,
            "unit": figure.unit,
            "at_most": figure.at_most,
            "at_least": figure.at_least,
            # A bar is one of the full size.
            "meets_bar": None if self.quick else figure.meets_bar,
            "beside": [
                {"name": other.name, "value": other.value, "ratio": figure.value / other.value}
                for other in figure.beside
            ],
        }


def _machine() -> dict[str, object]:
    return {
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "engine": version("chdb-core"),
        "load": round(os.getloadavg()[0], 1),
    }


def _described(machine: dict[str, object]) -> str:
    return ", ".join(f"{name} {value}" for name, value in machine.items())


def _beside(figure: Measurement, other: Beside) -> tuple[str, str, str]:
    return other.name, _shown(other.value, figure.unit), f"{figure.value / other.value:.3g}"


def _shown(value: float, unit: str) -> str:
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"
