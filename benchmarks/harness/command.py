"""The command: read the arguments, run the groups, print the table."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness import rivals
from benchmarks.harness.plan import GROUPS
from benchmarks.harness.rounds import Findings, run_group
from benchmarks.harness.table import Entry, entries_of, table_text
from tools.terminal import Problem, say

ROUNDS = 5


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and return 0 unless something of ours did not run; a missed budget is a fact, not a failure."""
    asked = read_arguments(arguments)
    try:
        python = None if asked.ours else rivals.set_up()
    except Problem as problem:
        print(f"\n{problem}", file=sys.stderr)
        return 1
    machine = describe_machine(with_rivals=python is not None)
    load_before = load()
    entries: list[Entry] = []
    is_whole = True
    try:
        for name in asked.only or GROUPS:
            found = run_group(GROUPS[name], asked.rounds, python, lambda text: say(f"→ {text}"), quick=asked.quick)
            entries += entries_of(GROUPS[name], found)
            is_whole = tell_problems(name, found) and is_whole
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130
    if asked.quick:
        machine["quick"] = "only to see that everything runs; these numbers mean little"
    machine["load"] = f"{load_before} before, {load()} after; the more above 1, the less the ratios are worth"
    say("\n" + "\n".join(f"{what}: {value}" for what, value in machine.items()) + "\n\n" + table_text(entries))
    if asked.json is not None:
        told = {"machine": machine, "quick": asked.quick, "lines": [entry.as_json() for entry in entries]}
        asked.json.write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0 if is_whole else 1


def read_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python3 dev.py bench", description="Measure Bide beside its rivals.")
    parser.add_argument("--quick", action="store_true", help="only see that everything runs; the numbers mean little")
    parser.add_argument("--ours", action="store_true", help="measure Bide alone: no rivals, no network")
    parser.add_argument("--only", action="append", choices=list(GROUPS), metavar="GROUP", help=", ".join(GROUPS))
    parser.add_argument("--rounds", type=int, help=f"how often the subjects take turns (default: {ROUNDS})")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write everything to a file")
    asked = parser.parse_args(arguments)
    asked.rounds = asked.rounds or (1 if asked.quick else ROUNDS)
    return asked


def tell_problems(group: str, found: Findings) -> bool:
    """Say what did not run; return whether all of ours did."""
    for subject, problem in found.problems.items():
        print(f"  {group}: {subject} failed: {problem}", file=sys.stderr)
    ours = {subject.name for subject in GROUPS[group].subjects if not subject.is_rival}
    return not ours & found.problems.keys()


def describe_machine(*, with_rivals: bool) -> dict[str, str]:
    """Say what the numbers were measured on."""
    described = {
        "machine": f"{os.cpu_count()} cores ({processor()}), {system()}",
        "software": f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}",
    }
    if with_rivals:
        described["rivals"] = ", ".join(f"{name} {version}" for name, version in rivals.versions().items())
    return described


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
