"""Starting the programs of this folder."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


class Talking:
    """A program that answers with lines of JSON."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def hear(self) -> Any:
        """Wait for the next answer."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the program ended without an answer (exit code {self.process.poll()})"
        return json.loads(line)

    def tell(self) -> None:
        """Send an empty line."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")


@contextmanager
def talking(name: str, *arguments: Any) -> Iterator[Talking]:
    """Run a program of this folder for the length of a block."""
    command = [sys.executable, str(FOLDER / name), *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as process:
        try:
            yield Talking(process)
        finally:
            process.kill()
