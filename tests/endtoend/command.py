"""The command `retrospan` as a user types it, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrospan:
    """The command, against one store, in the folder of the systems it drives."""

    store: str
    timeout_s: float = 600

    def text(self, *arguments: str) -> str:
        """What the command prints; a failure of the command is a failure of the caller."""
        command = [str(Path(sys.executable).with_name("retrospan")), *arguments]
        done = subprocess.run(
            command,
            env=os.environ | {"RETROSPAN_STORE": self.store},
            cwd=HERE,
            capture_output=True,
            text=True,
            timeout=self.timeout_s,
        )
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(arguments)}: exit {done.returncode}\n{done.stderr}")
        return done.stdout

    def json(self, *arguments: str) -> Any:
        """What the command prints with `--json`, decoded."""
        return json.loads(self.text(*arguments, "--json"))
