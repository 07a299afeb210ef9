"""What is measured, beside whom, and what we promised: the whole of it, as data."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.harness.groups import AHEAD, Group, Line, Subject, at_most, part, times
from benchmarks.harness.plan_fleet import FLEET
from benchmarks.harness.plan_postgres import ON_POSTGRES
from benchmarks.harness.plan_server import SERVER

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
        Subject(
            "one row, one commit",
            "loop_raw.py",
            ("--store", "sqlite"),
            needs=("--row-bytes", "Bide, SQLite", "row_bytes"),
        ),
        Subject("LangGraph, SqliteSaver", "loop_langgraph.py", ("--store", "sqlite"), is_rival=True),
        Subject("Burr, SQLitePersister", "loop_burr.py", ("--store", "sqlite"), is_rival=True),
        Subject("DBOS, SQLite", "loop_dbos.py", ("--store", "sqlite"), is_rival=True),
    ),
    (
        Line("a step on SQLite", "step", "Bide, SQLite", "one row, one commit", (times(1.5),)),
        Line("a step on SQLite", "step", "Bide, SQLite", "LangGraph, SqliteSaver", (part(2),)),
        Line("a step on SQLite", "step", "Bide, SQLite", "Burr, SQLitePersister", (AHEAD,)),
        Line("a step on SQLite", "step", "Bide, SQLite", "DBOS, SQLite", (AHEAD,)),
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
        Subject("Bide, SQLite", "pause_bide.py", ("--store", "sqlite")),
        Subject("the same rows in bare SQL", "pause_raw.py", ("--store", "sqlite")),
        Subject("LangGraph, SqliteSaver", "pause_langgraph.py", ("--store", "sqlite"), is_rival=True),
        Subject("DBOS, SQLite", "pause_dbos.py", ("--store", "sqlite"), is_rival=True),
    ),
    (
        Line("pause and resume", "pair", "Bide, SQLite", "the same rows in bare SQL", (times(1.5),)),
        Line("pause and resume", "pair", "Bide, SQLite", "LangGraph, SqliteSaver"),
        Line("pause and resume", "pair", "Bide, SQLite", "DBOS, SQLite", (AHEAD,)),
        Line("the same, 50 in flight", "pair_in_flight", "Bide, SQLite", "LangGraph, SqliteSaver", (part(10),)),
        Line("the same, 50 in flight", "pair_in_flight", "Bide, SQLite", "DBOS, SQLite", (AHEAD,)),
    ),
)

FAN = Group(
    "fan",
    (
        Subject("Bide, MemorySaver", "fan_bide.py", ("--store", "memory")),
        Subject("LangGraph, InMemorySaver", "fan_langgraph.py", ("--store", "memory"), is_rival=True),
        Subject("Bide, SQLite", "fan_bide.py", ("--store", "sqlite")),
        Subject("LangGraph, SqliteSaver", "fan_langgraph.py", ("--store", "sqlite"), is_rival=True),
        Subject("DBOS, SQLite", "fan_dbos.py", ("--store", "sqlite"), is_rival=True),
    ),
    (
        Line("100 tasks in memory", "fan", "Bide, MemorySaver", "LangGraph, InMemorySaver", (part(10),)),
        Line("100 tasks on SQLite", "fan", "Bide, SQLite", "LangGraph, SqliteSaver", (part(10),)),
        Line("100 tasks on SQLite", "fan", "Bide, SQLite", "DBOS, SQLite", (AHEAD,)),
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
        Subject("Bide, SQLite", "paused_bide.py", ("--store", "sqlite")),
        Subject("LangGraph, SqliteSaver", "paused_langgraph.py", ("--store", "sqlite"), is_rival=True),
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
        Line("a paused thread in memory", "paused_memory", "Bide, SQLite", None, (at_most(100, "B"),)),
    ),
    is_long=True,
)

CHAT = Group(
    "chat",
    (
        Subject("Bide, SQLite", "chat_bide.py", ("--store", "sqlite")),
        Subject("LangGraph, SqliteSaver", "chat_langgraph.py", ("--store", "sqlite"), is_rival=True),
    ),
    (
        Line(
            "500 turns: bytes on disk for a byte said",
            "growth",
            "Bide, SQLite",
            "LangGraph, SqliteSaver",
            (at_most(2, "×"),),
        ),
        Line(
            "500 turns: the last 50 beside the first 50",
            "slowdown",
            "Bide, SQLite",
            "LangGraph, SqliteSaver",
            (at_most(1.2, "×"),),
        ),
        Line("500 turns: one of the last 50", "last_turns", "Bide, SQLite", "LangGraph, SqliteSaver"),
    ),
    is_long=True,
)

ON_SQLITE_AND_IN_MEMORY = (ENGINE, MEMORY, SQLITE, IMPORT, PAUSE, FAN, FAN_WIDE, NEST, SLOPE, PAUSED, CHAT)
EVERY = (*ON_SQLITE_AND_IN_MEMORY, *ON_POSTGRES, *FLEET, *SERVER)
GROUPS: Mapping[str, Group] = {group.name: group for group in EVERY}
