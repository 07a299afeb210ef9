"""What the numbers were measured on: said in words that name no folder and no host."""

from __future__ import annotations

import os
import platform
import sqlite3
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.harness import rivals
from benchmarks.harness.rounds import SCRATCH
from benchmarks.harness.server import Server

SYNCS = 50


def describe_machine(server: Server | None, *, with_rivals: bool) -> dict[str, str]:
    """Say what the numbers are measured on."""
    databases = [f"SQLite {sqlite3.sqlite_version}"] + ([] if server is None else [f"PostgreSQL {server.version}"])
    described = {
        "machine": f"{os.cpu_count()} cores ({processor()}), {system()}",
        "software": ", ".join([f"Python {platform.python_version()}", *databases]),
        "disk": f"an append of 1 KB and its fsync take {sync_time(SCRATCH):.0f} µs (median of {SYNCS})",
    }
    if with_rivals:
        described["rivals"] = ", ".join(f"{name} {version}" for name, version in rivals.versions().items())
    return described


def sync_time(folder: Path) -> float:
    """Return how long the disk takes to keep a little more, in microseconds."""
    folder.mkdir(exist_ok=True)
    samples = []
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        for _ in range(SYNCS):
            started = perf_counter()
            file.write(b"x" * 1024)
            os.fsync(file.fileno())
            samples.append(perf_counter() - started)
    return 1e6 * median(samples)


def load() -> str:
    """Return how many programs wanted a core in the last minute, for each core."""
    return f"{os.getloadavg()[0] / (os.cpu_count() or 1):.1f}"


def processor() -> str:
    """Return the processor's name, as far as the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def system() -> str:
    """Return the name of the operating system."""
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except OSError:
        return platform.platform(terse=True)
