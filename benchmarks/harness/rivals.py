"""The rivals' own virtual environment: made once, stamped, and kept away from ours."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tools.terminal import CommandFailed, Problem, clean_environment, quietly, say
from tools.venv import discard, text_of

HOME = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Home:
    """Where some of them live: which versions, and in which folder."""

    pins: Path
    venv: Path

    @property
    def python(self) -> Path:
        """Their Python."""
        return self.venv / "bin" / "python"

    @property
    def stamp(self) -> Path:
        """What says that they are installed."""
        return self.venv / ".stamp"


RIVALS = Home(HOME / "rivals.txt", HOME / ".rivals")
REFERENCE = Home(HOME / "reference.txt", HOME / ".reference")
"""LangGraph's own server: its licence lets it be run, and it comes near nothing of ours."""
NAMED = ("langgraph", "langgraph-checkpoint-sqlite", "langgraph-checkpoint-postgres", "burr", "dbos")


def set_up(home: Home = RIVALS) -> Path:
    """Make sure that the rivals are installed in the pinned versions; return their Python."""
    key = hashlib.sha256(platform.python_version().encode() + home.pins.read_bytes()).hexdigest()
    if text_of(home.stamp) == key and os.access(home.python, os.X_OK):
        return home.python
    discard(home.venv)
    try:
        _install(home)
    except CommandFailed as failed:
        raise Problem(
            f"{failed.output}\n\nThe rivals could not be installed; is there a network? "
            f"`python3 dev.py bench --ours` measures Bide alone."
        ) from failed
    home.stamp.write_text(key, encoding="utf-8")
    return home.python


def _install(home: Home) -> None:
    env = {"UV_SYSTEM_CERTS": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", **clean_environment()}
    uv = Path(sys.executable).with_name("uv")
    try:
        quietly("making a place for the rivals", [str(uv), "venv", "--python", sys.executable, str(home.venv)], env)
        command = [str(uv), "pip", "install", "--python", str(home.python), "-r", str(home.pins)]
        quietly("installing the rivals with uv (about 10 s)", command, env)
    except CommandFailed as failed:
        say(f"  uv did not manage ({failed}): going on with pip")
        discard(home.venv)
        quietly("making a place for the rivals", [sys.executable, "-m", "venv", str(home.venv)], env)
        command = [str(home.python), "-m", "pip", "install", "-r", str(home.pins)]
        quietly("installing the rivals with pip (about a minute)", command, env)


def versions() -> Mapping[str, str]:
    """Return the pinned versions of those whom we name in the table."""
    pinned = dict(line.split("==") for line in text_of(RIVALS.pins).splitlines() if "==" in line)
    return {name: pinned[name] for name in NAMED}
