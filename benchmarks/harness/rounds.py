"""Rounds: every subject of a group in turn, again and again, so that all of them see the same noise of the machine."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from benchmarks.harness.groups import Group, Subject
from benchmarks.harness.rivals import REFERENCE, set_up
from benchmarks.harness.server import Server
from tools.terminal import clean_environment

HOME = Path(__file__).resolve().parents[1]
CASES = HOME / "cases"
SCRATCH = HOME / ".scratch"
PATIENCE_SECONDS = 900


@dataclass
class Measured:
    """All samples of one metric of one subject."""

    unit: str
    samples: list[float] = field(default_factory=list)

    @property
    def best(self) -> float:
        """The least disturbed sample: what the code costs when nobody else wants the machine."""
        return min(self.samples)

    @property
    def usual(self) -> float:
        """The sample in the middle."""
        return median(self.samples)

    @property
    def is_noisy(self) -> bool:
        """Whether the machine was so busy that the least sample may be luck."""
        return self.usual > 2 * self.best


@dataclass
class Findings:
    """What became of a group: metrics by subject, and what went wrong."""

    metrics: dict[str, dict[str, Measured]] = field(default_factory=dict)
    problems: dict[str, str] = field(default_factory=dict)


class CaseFailed(Exception):
    """A case did not end well, or printed something else than its metrics."""


def run_group(
    group: Group,
    rounds: int,
    rivals: Path | None,
    tell: Callable[[str], None],
    *,
    server: Server | None = None,
    quick: bool = False,
    scratch: Path = SCRATCH,
) -> Findings:
    """Measure a group. Without the rivals' Python only ours are measured; one that fails is left out from then on."""
    found = Findings()
    subjects = [subject for subject in group.subjects if rivals is not None or not subject.is_rival]
    for number in range(1 if group.is_long else rounds):
        for subject in subjects:
            if subject.name in found.problems:
                continue
            tell(f"{group.name}, round {number + 1}: {subject.name}")
            try:
                python = _python_of(subject, rivals)
                more = _needed(found, subject)
                _add(found, subject, run_case(python, subject, more, server=server, quick=quick, scratch=scratch))
            except CaseFailed as failed:
                found.problems[subject.name] = str(failed)
    return found


def _python_of(subject: Subject, rivals: Path | None) -> str:
    """Return the Python that a subject runs in."""
    if subject.is_reference:
        return str(set_up(REFERENCE))
    return str(rivals) if subject.is_rival else sys.executable


def _needed(found: Findings, subject: Subject) -> list[str]:
    """Return the option whose value another subject has measured."""
    if subject.needs is None:
        return []
    option, name, metric = subject.needs
    if name not in found.metrics:
        raise CaseFailed(f"it needs {metric} of {name!r}, which was not measured")
    return [option, str(math.ceil(found.metrics[name][metric].best))]


def _add(found: Findings, subject: Subject, metrics: dict[str, Measured]) -> None:
    known = found.metrics.setdefault(subject.name, {})
    for name, measured in metrics.items():
        known.setdefault(name, Measured(measured.unit)).samples.extend(measured.samples)


def run_case(
    python: str,
    subject: Subject,
    more: Sequence[str] = (),
    *,
    server: Server | None = None,
    quick: bool = False,
    scratch: Path = SCRATCH,
) -> dict[str, Measured]:
    """Run one case in a process, a folder and a database of its own; return its metrics."""
    scratch.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=scratch) as folder, _database(subject, server) as database:
        command = [python, str(CASES / subject.script), "--folder", folder, *subject.arguments, *database, *more]
        command += ["--quick"] if quick else []
        try:
            done = subprocess.run(
                command, env=_environment(), capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            raise CaseFailed(f"it was not done after {PATIENCE_SECONDS} seconds") from None
    if done.returncode != 0:
        raise CaseFailed((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])
    return read_metrics(done.stdout)


@contextmanager
def _database(subject: Subject, server: Server | None) -> Iterator[list[str]]:
    """Give the option with an empty database, to whom one is needed."""
    if not subject.is_on_postgres:
        yield []
    elif server is None:
        raise CaseFailed("it needs a PostgreSQL, and none was started")
    else:
        with server.empty_database() as url:
            yield ["--url", url]


def _environment() -> dict[str, str]:
    """Return an environment in which Python is as it comes (it caches bytecode), and no rival sends traces anywhere."""
    usual = {name: value for name, value in clean_environment().items() if not name.startswith("PYTHON")}
    return {**usual, "LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "false", "PYTHONIOENCODING": "utf-8"}


def read_metrics(printed: str) -> dict[str, Measured]:
    """Read the one line that a case prints; whatever is not exactly that is refused."""
    try:
        metrics = json.loads(printed)["metrics"]
        read = {name: Measured(told["unit"], [float(one) for one in told["samples"]]) for name, told in metrics.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise CaseFailed(f"it printed something else than metrics ({problem!r}): {printed[:200]!r}") from problem
    if not read or not all(measured.samples for measured in read.values()):
        raise CaseFailed(f"it measured nothing: {printed[:200]!r}")
    return read
