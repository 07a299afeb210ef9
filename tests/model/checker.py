"""Spin, as a function: from a model and its flags to what the search found."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.repo.source_files import ROOT
from tools.needs import C_COMPILER, SPIN, Need

MODEL = ROOT / "docs" / "model" / "protocol.pml"
DEPTH = 100_000  # steps; the longest story of the true model has about two hundred
# Asserted promises and deadlocks: no formula takes part, so Spin looks at end states as well.
PROMISES = ("-DSAFETY", "-DNOCLAIM")
# What a fair scheduler has to keep count of must have room for a dozen processes.
FORMULAS, FAIR_FORMULAS = ("-DNOFAIR",), ("-DNFAIR=4",)


@dataclass(frozen=True)
class Verdict:
    """What a search found: the promise that is broken and the story that breaks it, or nothing in any state."""

    broken: str
    complete: bool
    unreached: frozenset[str]
    story: str

    def __str__(self) -> str:
        """For the message of a failed test."""
        return f"{self.broken or 'nothing broken'}, {'complete' if self.complete else 'NOT complete'}\n{self.story}"


def search_promises(folder: Path, *flags: str) -> Verdict:
    """Look at every state of the model for a broken assertion and for a deadlock."""
    return search(folder, flags, PROMISES)


def search_formula(folder: Path, name: str, *flags: str) -> Verdict:
    """Look for a story in which a formula does not hold, however unfair the scheduler is."""
    return search(folder, flags, FORMULAS, "-A", "-a", "-N", name)


def break_formula(folder: Path, name: str, *flags: str) -> Verdict:
    """Look for a story in which a formula does not hold though the scheduler is fair to everybody."""
    return search(folder, flags, FAIR_FORMULAS, "-A", "-a", "-f", "-N", name)


def search(folder: Path, flags: Sequence[str], how: Sequence[str], *options: str) -> Verdict:
    """Let Spin write the program that searches the model, and run it to the end or to the first broken promise."""
    shutil.copy(MODEL, folder)
    spin, defines = found(SPIN), [f"-D{flag}" for flag in flags]
    say([spin, "-a", *defines, MODEL.name], folder)
    # -w: gcc 12 warns of bounds that Spin checks. And no -O: to compile better takes longer than these searches gain.
    say([found(C_COMPILER), "-w", *how, "-o", "pan", "pan.c"], folder)
    said = say([str(folder / "pan"), f"-m{DEPTH}", *options], folder)
    broken = re.search(r"^pan:1: (.*) \(at depth", said, re.MULTILINE)
    story = say([spin, "-p", "-t", *defines, MODEL.name], folder)[-6000:] if broken else ""
    cut = "Search not completed" in said or "max search depth too small" in said
    return Verdict(broken[1] if broken else "", "Full statespace search" in said and not cut, unreached(said), story)


def unreached(said: str) -> frozenset[str]:
    """The lines of the model's processes that no story came to, each with its number."""
    processes = re.findall(r"^unreached in proctype \w+\n((?:\t.*\n)*)", said, re.MULTILINE)
    return frozenset(re.findall(rf"{re.escape(MODEL.name)}:(\d+, state \d+, .*)", "".join(processes)))


def found(need: Need) -> str:
    """Where a program is; dev.py has installed it, or said that it cannot."""
    place = need.find()
    if place is None:
        raise RuntimeError(f"{need.name} is missing. {need.advice}")
    return place


def say(command: list[str], folder: Path) -> str:
    """Run a program in a folder and return what it says."""
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout
