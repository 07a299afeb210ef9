"""The command: read the arguments, run the groups, print the table, and write the page if it was the whole run."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from benchmarks.harness import rivals
from benchmarks.harness.groups import Group
from benchmarks.harness.machine import describe_machine, load
from benchmarks.harness.plan import GROUPS
from benchmarks.harness.report import Report, write_report
from benchmarks.harness.rounds import Findings, run_group
from benchmarks.harness.server import running
from benchmarks.harness.table import Entry, entries_of
from tools.terminal import ROOT, Problem, say

ROUNDS = 5
DOCS = ROOT / "docs"


def main(arguments: Sequence[str]) -> int:
    """Measure, print, and return 0 unless something of ours did not run; a missed budget is a fact, not a failure."""
    asked = read_arguments(arguments)
    groups = [GROUPS[name] for name in asked.only or GROUPS]
    try:
        python = None if asked.ours else rivals.set_up()
        report, is_whole = measure(asked, groups, python)
    except Problem as problem:
        print(f"\n{problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130
    say("\n" + report.text())
    if asked.json is not None:
        asked.json.write_text(report.as_json(), encoding="utf-8")
    if asked.docs is not None and is_whole:
        write_report(asked.docs, report)
    return 0 if is_whole else 1


def read_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python3 dev.py bench", description="Measure Bide beside its rivals.")
    parser.add_argument("--quick", action="store_true", help="only see that everything runs; the numbers mean little")
    parser.add_argument("--ours", action="store_true", help="measure Bide alone: no rivals, no network")
    parser.add_argument("--only", action="append", choices=list(GROUPS), metavar="GROUP", help=", ".join(GROUPS))
    parser.add_argument("--rounds", type=int, help=f"how often the subjects take turns (default: {ROUNDS})")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write everything to a file")
    parser.add_argument(
        "--docs", type=Path, metavar="FOLDER", help="where the page is that gets the table and the plot"
    )
    asked = parser.parse_args(arguments)
    # A part of the table, or one that means little, is put on the page only by who says so.
    if asked.docs is None and not (asked.quick or asked.ours or asked.only or asked.rounds):
        asked.docs = DOCS
    asked.rounds = asked.rounds or (1 if asked.quick else ROUNDS)
    return asked


def measure(asked: argparse.Namespace, groups: Sequence[Group], python: Path | None) -> tuple[Report, bool]:
    """Run the groups; return the report, and whether all of ours ran."""
    began, load_before, is_whole = time.monotonic(), load(), True
    entries: list[Entry] = []
    needs_postgres = any(group.needs_postgres for group in groups)
    with running() if needs_postgres else nullcontext() as server:
        machine = describe_machine(server, with_rivals=python is not None)
        for group in groups:
            group_began = time.monotonic()
            found = run_group(
                group, asked.rounds, python, lambda text: say(f"→ {text}"), server=server, quick=asked.quick
            )
            say(f"  {time.monotonic() - group_began:.0f} s")
            entries += entries_of(group, found)
            is_whole = tell_problems(group, found) and is_whole
    minutes = (time.monotonic() - began) / 60
    machine["rounds"] = f"{asked.rounds}, of the long groups 1; {minutes:.1f} minutes in all"
    machine["load"] = f"{load_before} before, {load()} after; the more above 1, the less the ratios are worth"
    if asked.quick:
        machine["quick"] = "only to see that everything runs; these numbers mean little"
    return Report(machine, tuple(entries)), is_whole


def tell_problems(group: Group, found: Findings) -> bool:
    """Say what did not run; return whether all of ours did."""
    for subject, problem in found.problems.items():
        print(f"  {group.name}: {subject} failed: {problem}", file=sys.stderr)
    ours = {subject.name for subject in group.subjects if not subject.is_rival}
    return not ours & found.problems.keys()
