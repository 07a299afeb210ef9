"""Talking to the person at the keyboard, and running commands for them. Readable by Python 3.8, like dev.py."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Mapping, NoReturn, Sequence

ROOT = Path(__file__).resolve().parent.parent
# Set for the caller's own Python, these would let foreign modules or places into our .venv.
FOREIGN_SETTINGS = ("PYTHONHOME", "PYTHONPATH", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "UV_PYTHON", "VIRTUAL_ENV")
SPINNER = "|/-\\"


class Problem(Exception):
    """Something that the person at the keyboard must know; the text says what to do."""


class CommandFailed(Exception):
    """A command did not end well; `output` is the end of what it printed."""

    def __init__(self, code: int, output: str) -> None:
        super().__init__(f"exit code {code}")
        self.output = output


def say(text: str) -> None:
    """Print a line at once, also into a pipe."""
    print(text, flush=True)


def quietly(title: str, command: Sequence[str], env: Mapping[str, str], given: str = "") -> str:
    """Run a command behind one line of progress and return what it printed."""
    say(f"→ {title}")
    started = time.monotonic()
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as output:
        stdin.write(given.encode())
        stdin.seek(0)
        try:
            child = subprocess.Popen(
                command, cwd=str(ROOT), env=dict(env), stdin=stdin, stdout=output, stderr=subprocess.STDOUT
            )
        except OSError as error:
            raise CommandFailed(127, str(error)) from error
        code = wait_with_progress(child, started)
        output.seek(0)
        text = output.read().decode(errors="replace")
    if code != 0:
        raise CommandFailed(code, "\n".join(text.splitlines()[-40:]))
    say(f"  {time.monotonic() - started:.1f} s")
    return text


def wait_with_progress(child: subprocess.Popen[bytes], started: float) -> int:
    """Wait for a silent command: with a spinner for a person, with a line every half minute for a log."""
    for_a_person = sys.stdout.isatty()
    try:
        while True:
            try:
                return child.wait(timeout=0.1 if for_a_person else 30)
            except subprocess.TimeoutExpired:
                elapsed = time.monotonic() - started
                if for_a_person:
                    print(f"\r  {SPINNER[int(elapsed * 10) % 4]} {elapsed:.0f} s", end="", flush=True)
                else:
                    say(f"  still at it after {elapsed:.0f} s")
    finally:
        if for_a_person:
            print("\r" + " " * 20, end="\r", flush=True)
        end(child)


def stream(command: Sequence[str], env: Mapping[str, str]) -> int:
    """Run a command whose output goes straight to the caller, and return its exit code."""
    child = subprocess.Popen(command, cwd=str(ROOT), env=dict(env))
    try:
        return child.wait()
    except KeyboardInterrupt:
        # Ctrl-C reached the child as well: it gets time to stop its own servers before we insist.
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=20)
        raise
    finally:
        end(child)


def end(child: subprocess.Popen[bytes]) -> None:
    """Leave no child behind, whatever made us stop: ask as Ctrl-C does, so that it can tidy up, then insist."""
    for request in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
        if child.poll() is not None:
            return
        child.send_signal(request)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(timeout=10)


def become(command: Sequence[str], env: Mapping[str, str]) -> NoReturn:
    """Turn into another program, so that its signals, its terminal and its exit code are its own."""
    sys.stdout.flush()
    os.execve(command[0], list(command), dict(env))


def clean_environment() -> dict[str, str]:
    """Return our environment without what belongs to the caller's own Python."""
    return {name: value for name, value in os.environ.items() if name not in FOREIGN_SETTINGS}
