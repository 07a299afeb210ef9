"""Starting the programs of this folder as processes of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
DEADLINE_SECONDS = 60
"""How long a program may take before the test gives it up; they all end by themselves, or by a signal."""


def run_program(name: str, *arguments: Any, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, or to the point where it is killed."""
    return subprocess.run(
        [sys.executable, str(FOLDER / name), *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )


class Child:
    """A program that is told what to do line by line, and answers with a line of JSON each time."""

    def __init__(self, name: str, *arguments: Any) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(FOLDER / name), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.kill()
        self.process.wait(DEADLINE_SECONDS)
        self.process.stdin.close()
        self.process.stdout.close()

    def tell(self, *words: Any) -> None:
        """Say what to do next, and do not wait."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(words) + "\n")

    def hear(self) -> Any:
        """Wait for the next answer."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, f"the program ended without an answer (exit code {self.process.poll()})"
        return json.loads(line)

    def ask(self, *words: Any) -> Any:
        """Say what to do next, and wait for the answer."""
        self.tell(*words)
        return self.hear()
