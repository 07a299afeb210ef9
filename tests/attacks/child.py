"""Starting the programs of this folder, each in a process of its own: an audit hook can never be taken away again."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

_PROGRAMS = Path(__file__).parent / "programs"
_ROOT = Path(__file__).parents[2]
_DEADLINE_SECONDS = 110


def report_of(program: str, *arguments: str) -> Any:
    """Run a program to its end and return the JSON that it prints."""
    path = os.pathsep.join([str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    ended = subprocess.run(
        [sys.executable, str(_PROGRAMS / program), *arguments],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=_DEADLINE_SECONDS,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr
    return json.loads(ended.stdout)


def shared_report(tmp_path_factory: pytest.TempPathFactory, program: str) -> Any:
    """What a program prints, run once for all processes of this test run: it gets a folder of its own."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    report = shared / f"{program}.json"
    with open(shared / f"{program}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not report.exists():
            folder = tmp_path_factory.mktemp("attack")
            report.write_text(json.dumps(report_of(program, str(folder))), encoding="utf-8")
    return json.loads(report.read_text(encoding="utf-8"))
