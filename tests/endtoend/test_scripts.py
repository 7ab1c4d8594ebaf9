"""The scripts here start as modules and as files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SCRIPTS = sorted(
    path.name
    for path in HERE.glob("*.py")
    if not path.name.startswith("test_") and 'if __name__ == "__main__":' in path.read_text("utf-8")
)


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_starts_wherever_and_however_it_is_called(script: str, tmp_path: Path) -> None:
    by_file = help_of(str(HERE / script), folder=tmp_path)
    assert by_file.startswith(f"usage: {script} ")
    by_module = help_of("-m", f"tests.endtoend.{Path(script).stem}", folder=HERE.parents[1])
    assert by_module.splitlines()[1:] == by_file.splitlines()[1:]


def help_of(*called: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, *called, "--help"], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
