"""What is measured, beside whom, and what we promised: the whole of it, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Subject:
    """Something that is measured: a script of `cases/`, run in a process of its own."""

    name: str
    script: str
    arguments: tuple[str, ...] = ()
    is_rival: bool = False
    """Whether it needs the rivals' packages."""
    needs: tuple[str, str, str] | None = None
    """An option, and the subject and metric that its value comes from."""


@dataclass(frozen=True)
class Budget:
    """What we promised: at most so many times the rival, or at most so much in the metric's own unit."""

    most: float
    text: str
    unit: str = ""
    """The unit of an absolute budget; empty for a ratio."""
    is_later: bool = False
    """Whether the work for it is still to come."""


@dataclass(frozen=True)
class Line:
    """One line of the table: a metric of ours, beside the same metric of a rival or alone."""

    what: str
    metric: str
    ours: str
    rival: str | None = None
    budgets: tuple[Budget, ...] = ()


@dataclass(frozen=True)
class Group:
    """Subjects that take turns, and the lines that compare them."""

    name: str
    subjects: tuple[Subject, ...]
    lines: tuple[Line, ...]
    is_long: bool = False
    """Whether one round is enough: it takes minutes, or it counts bytes, which do not waver."""


def part(of: int) -> Budget:
    return Budget(1 / of, f"≤ 1/{of}")


def times(most: float, *, is_later: bool = False) -> Budget:
    return Budget(most, f"≤ {most:g} ×", is_later=is_later)


def at_most(most: float, unit: str, *, is_later: bool = False) -> Budget:
    return Budget(most, f"≤ {most:g} {unit}", unit, is_later)


AHEAD = Budget(1.0, "≤ 1 ×")

ENGINE = Group(
    "engine",
    (
        Subject("Bide", "loop_bide.py", ("--store", "none")),
        Subject("LangGraph", "loop_langgraph.py", ("--store", "none"), is_rival=True),
    ),
    (Line("a step, no store", "step", "Bide", "LangGraph", (part(10),)),),
)

MEMORY = Group(
    "memory",
    (
        Subject("Bide, MemorySaver", "loop_bide.py", ("--store", "memory")),
        Subject("LangGraph, InMemorySaver", "loop_langgraph.py", ("--store", "memory"), is_rival=True),
        Subject("Burr, InMemoryPersister", "loop_burr.py", ("--store", "memory"), is_rival=True),
    ),
    (
        Line("a step in memory", "step", "Bide, MemorySaver", "LangGraph, InMemorySaver", (part(10), part(15))),
        Line("a step in memory", "step", "Bide, MemorySaver", "Burr, InMemoryPersister", (AHEAD,)),
    ),
)

SQLITE = Group(
    "sqlite",
    (
        Subject("Bide, SQLite", "loop_bide.py", ("--store", "sqlite")),
        Subject("one row, one commit", "loop_raw.py", needs=("--row-bytes", "Bide, SQLite", "row_bytes")),
        Subject("LangGraph, SqliteSaver", "loop_langgraph.py", ("--store", "sqlite"), is_rival=True),
        Subject("Burr, SQLitePersister", "loop_burr.py", ("--store", "sqlite"), is_rival=True),
    ),
    (
        Line("a step on SQLite", "step", "Bide, SQLite", "one row, one commit", (times(1.5),)),
        Line("a step on SQLite", "step", "Bide, SQLite", "LangGraph, SqliteSaver", (part(2),)),
        Line("a step on SQLite", "step", "Bide, SQLite", "Burr, SQLitePersister", (AHEAD,)),
        Line("bytes of a step's rows", "row_bytes", "Bide, SQLite"),
    ),
)

IMPORT = Group(
    "import",
    (
        Subject("Bide", "import_time.py", ("--module", "bide")),
        Subject("LangGraph", "import_time.py", ("--module", "langgraph.graph"), is_rival=True),
    ),
    (Line("import", "import_time", "Bide", "LangGraph", (at_most(100, "ms"),)),),
)

PAUSE = Group(
    "pause",
    (
        Subject("Bide, SQLite", "pause_bide.py"),
        Subject("the same rows in bare SQL", "pause_raw.py"),
        Subject("LangGraph, SqliteSaver", "pause_langgraph.py", is_rival=True),
    ),
    (
        Line("pause and resume", "pair", "Bide, SQLite", "the same rows in bare SQL", (times(1.5),)),
        Line("pause and resume", "pair", "Bide, SQLite", "LangGraph, SqliteSaver"),
        Line("the same, 50 in flight", "pair_in_flight", "Bide, SQLite", "LangGraph, SqliteSaver", (part(10),)),
    ),
)

FAN = Group(
    "fan",
    (
        Subject("Bide, MemorySaver", "fan_bide.py", ("--store", "memory")),
        Subject("LangGraph, InMemorySaver", "fan_langgraph.py", ("--store", "memory"), is_rival=True),
        Subject("Bide, SQLite", "fan_bide.py", ("--store", "sqlite")),
        Subject("LangGraph, SqliteSaver", "fan_langgraph.py", ("--store", "sqlite"), is_rival=True),
    ),
    (
        Line("100 tasks in memory", "fan", "Bide, MemorySaver", "LangGraph, InMemorySaver", (part(10),)),
        Line("100 tasks on SQLite", "fan", "Bide, SQLite", "LangGraph, SqliteSaver", (part(10),)),
    ),
)

FAN_WIDE = Group(
    "wide",
    (
        Subject("Bide, MemorySaver", "fan_bide.py", ("--store", "memory", "--width", "1000")),
        Subject(
            "LangGraph, InMemorySaver", "fan_langgraph.py", ("--store", "memory", "--width", "1000"), is_rival=True
        ),
        Subject("Bide, SQLite", "fan_bide.py", ("--store", "sqlite", "--width", "1000")),
        Subject("LangGraph, SqliteSaver", "fan_langgraph.py", ("--store", "sqlite", "--width", "1000"), is_rival=True),
    ),
    (
        Line("1,000 tasks in memory", "fan", "Bide, MemorySaver", "LangGraph, InMemorySaver", (part(10),)),
        Line("1,000 tasks on SQLite", "fan", "Bide, SQLite", "LangGraph, SqliteSaver", (part(10),)),
    ),
    is_long=True,
)

NEST = Group(
    "nest",
    (
        Subject("Bide, MemorySaver", "nest_bide.py", ("--store", "memory")),
        Subject("LangGraph, InMemorySaver", "nest_langgraph.py", ("--store", "memory"), is_rival=True),
        Subject("Bide, SQLite", "nest_bide.py", ("--store", "sqlite")),
        Subject("LangGraph, SqliteSaver", "nest_langgraph.py", ("--store", "sqlite"), is_rival=True),
    ),
    (
        Line("a visit of a subgraph in memory", "visit", "Bide, MemorySaver", "LangGraph, InMemorySaver", (part(10),)),
        Line("a visit of a subgraph on SQLite", "visit", "Bide, SQLite", "LangGraph, SqliteSaver", (part(2),)),
    ),
    is_long=True,
)

SLOPE = Group(
    "slope",
    (
        Subject("Bide, MemorySaver", "slope_bide.py"),
        Subject("LangGraph, InMemorySaver", "slope_langgraph.py", is_rival=True),
    ),
    (
        Line(
            "a step beside 1,000 other keys, against 10",
            "keys",
            "Bide, MemorySaver",
            "LangGraph, InMemorySaver",
            (at_most(1.5, "×"),),
        ),
        Line(
            "a step after 4,000 others, against the first",
            "history",
            "Bide, MemorySaver",
            "LangGraph, InMemorySaver",
            (at_most(1.2, "×"),),
        ),
    ),
)

PAUSED = Group(
    "paused",
    (
        Subject("Bide, SQLite", "paused_bide.py"),
        Subject("LangGraph, SqliteSaver", "paused_langgraph.py", is_rival=True),
    ),
    (
        Line(
            "a paused thread, beside its state",
            "paused_bytes",
            "Bide, SQLite",
            "LangGraph, SqliteSaver",
            (at_most(1536, "B"),),
        ),
        Line("the 50 that wait longest, of 10,000", "listing", "Bide, SQLite", None, (at_most(5, "ms"),)),
    ),
    is_long=True,
)

CHAT = Group(
    "chat",
    (
        Subject("Bide, SQLite", "chat_bide.py"),
        Subject("LangGraph, SqliteSaver", "chat_langgraph.py", is_rival=True),
    ),
    (
        Line(
            "500 turns: bytes on disk for a byte said",
            "growth",
            "Bide, SQLite",
            "LangGraph, SqliteSaver",
            (at_most(2, "×", is_later=True),),
        ),
        Line(
            "500 turns: the last 50 beside the first 50",
            "slowdown",
            "Bide, SQLite",
            "LangGraph, SqliteSaver",
            (at_most(1.2, "×", is_later=True),),
        ),
    ),
    is_long=True,
)

GROUPS: Mapping[str, Group] = {
    group.name: group for group in (ENGINE, MEMORY, SQLITE, IMPORT, PAUSE, FAN, FAN_WIDE, NEST, SLOPE, PAUSED, CHAT)
}
