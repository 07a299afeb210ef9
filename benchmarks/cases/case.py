"""What every case shares: its settings, a stopwatch, and one line of JSON at the end.

A case is a script that measures one subject in a process of its own. It prints
`{"metrics": {name: {"unit": …, "samples": […]}}}` and nothing else.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from time import perf_counter, process_time
from typing import Any

import databases


@dataclass(frozen=True)
class Settings:
    """How a case was asked to run."""

    store: str
    """`none`, `memory`, `sqlite` or `postgres`."""
    url: str
    """An empty database of its own on a PostgreSQL that waits for its disk (fsync, synchronous_commit)."""
    folder: Path
    """An empty folder on a real disk: on a RAM disk, an fsync would cost nothing."""
    quick: bool
    """Whether to run only so much that every line of the case is seen to work."""
    row_bytes: int
    """How many bytes a raw commit writes."""
    module: str
    """Which module to import."""
    width: int
    """How many tasks a fan-out has."""

    def amount(self, full: int, quick: int) -> int:
        """Return how often to do something."""
        return quick if self.quick else full

    @property
    def database(self) -> Path:
        """Where the database of this case lies."""
        return self.folder / "case.db"

    def bytes_on_disk(self) -> int:
        """Return the size of the database, with its indexes and everything that lies beside it."""
        if self.store == "postgres":
            return databases.bytes_in_postgres(self.url)
        return sum(file.stat().st_size for file in self.folder.iterdir())

    def bytes_when_empty(self) -> int:
        """Return what the tables take before anything is in them, which no row will ever use.

        PostgreSQL gives each index a page for itself. SQLite's first pages are filled with rows later: they count.
        """
        return databases.bytes_in_postgres(self.url) if self.store == "postgres" else 0


def settings() -> Settings:
    """Read the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", choices=["none", "memory", "sqlite", "postgres"], default="none")
    parser.add_argument("--url", default="")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--row-bytes", type=int, default=1024)
    parser.add_argument("--module", default="")
    parser.add_argument("--width", type=int, default=100)
    return Settings(**vars(parser.parse_args()))


@dataclass(frozen=True)
class Took:
    """How long something took, in seconds: on the wall, and of the processor (all threads; waiting is free)."""

    wall: float
    cpu: float

    def __sub__(self, earlier: Took) -> Took:
        return Took(self.wall - earlier.wall, self.cpu - earlier.cpu)


def clocks() -> Took:
    """Read both clocks; the difference of two readings is what went by between them."""
    return Took(wall=perf_counter(), cpu=process_time())


def took(call: Callable[[], Any]) -> Took:
    """Call once and return how long it took."""
    before = clocks()
    call()
    return clocks() - before


def most_memory() -> int:
    """Return the most memory that this process has ever had, in bytes."""
    return 1024 * getrusage(RUSAGE_SELF).ru_maxrss


def timing(name: str, unit: str, samples: Iterable[Took], *, per: int = 1) -> dict[str, Any]:
    """Describe how long one of `per` things took: as `name` on the wall, as `name_cpu` of the processor."""
    scale = {"µs": 1e6, "ms": 1e3}[unit] / per
    samples = list(samples)
    return {
        name: metric(unit, [sample.wall * scale for sample in samples]),
        f"{name}_cpu": metric(unit, [sample.cpu * scale for sample in samples]),
    }


def metric(unit: str, samples: Iterable[float]) -> dict[str, Any]:
    """Describe one measured thing."""
    return {"unit": unit, "samples": [round(sample, 3) for sample in samples]}


def report(**metrics: dict[str, Any]) -> None:
    """Print what was measured."""
    print(json.dumps({"metrics": metrics}))
