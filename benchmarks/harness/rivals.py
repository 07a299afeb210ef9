"""The rivals' own virtual environment: made once, stamped, and kept away from ours."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Mapping
from pathlib import Path

from tools.terminal import CommandFailed, Problem, clean_environment, quietly, say
from tools.venv import discard, text_of

HOME = Path(__file__).resolve().parents[1]
PINS = HOME / "rivals.txt"
VENV = HOME / ".rivals"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / ".stamp"
NAMED = ("langgraph", "langgraph-checkpoint-sqlite", "langgraph-checkpoint-postgres", "burr", "dbos")


def set_up() -> Path:
    """Make sure that the rivals are installed in the pinned versions; return their Python."""
    key = hashlib.sha256(platform.python_version().encode() + PINS.read_bytes()).hexdigest()
    if text_of(STAMP) == key and os.access(PYTHON, os.X_OK):
        return PYTHON
    discard(VENV)
    try:
        _install()
    except CommandFailed as failed:
        raise Problem(
            f"{failed.output}\n\nThe rivals could not be installed; is there a network? "
            f"`python3 dev.py bench --ours` measures Bide alone."
        ) from failed
    STAMP.write_text(key, encoding="utf-8")
    return PYTHON


def _install() -> None:
    env = {"UV_SYSTEM_CERTS": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", **clean_environment()}
    uv = Path(sys.executable).with_name("uv")
    try:
        quietly("making a place for the rivals", [str(uv), "venv", "--python", sys.executable, str(VENV)], env)
        command = [str(uv), "pip", "install", "--python", str(PYTHON), "-r", str(PINS)]
        quietly("installing the rivals with uv (about 10 s)", command, env)
    except CommandFailed as failed:
        say(f"  uv did not manage ({failed}): going on with pip")
        discard(VENV)
        quietly("making a place for the rivals", [sys.executable, "-m", "venv", str(VENV)], env)
        command = [str(PYTHON), "-m", "pip", "install", "-r", str(PINS)]
        quietly("installing the rivals with pip (about a minute)", command, env)


def versions() -> Mapping[str, str]:
    """Return the pinned versions of those whom we name in the table."""
    pinned = dict(line.split("==") for line in text_of(PINS).splitlines() if "==" in line)
    return {name: pinned[name] for name in NAMED}
