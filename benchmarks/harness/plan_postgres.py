"""What is measured on PostgreSQL: the same chain, pauses, fans and conversation, beside whoever also runs there."""

from __future__ import annotations

from benchmarks.harness.groups import AHEAD, Group, Line, Subject, at_most, part, times

STORE = ("--store", "postgres")
OURS, RAW_COMMIT, RAW_ROWS = "Bide, PostgreSQL", "one row, one round trip", "the same rows in bare SQL"
LANGGRAPH, BURR, DBOS = "LangGraph, PostgresSaver", "Burr, PostgreSQLPersister", "DBOS, PostgreSQL"

POSTGRES = Group(
    "postgres",
    (
        Subject(OURS, "loop_bide.py", STORE),
        Subject(RAW_COMMIT, "loop_raw.py", STORE, needs=("--row-bytes", OURS, "row_bytes")),
        Subject(LANGGRAPH, "loop_langgraph.py", STORE, is_rival=True),
        Subject(BURR, "loop_burr.py", STORE, is_rival=True),
        Subject(DBOS, "loop_dbos.py", STORE, is_rival=True),
    ),
    (
        Line("a step on PostgreSQL", "step", OURS, RAW_COMMIT, (times(1.5),)),
        Line("a step on PostgreSQL", "step", OURS, LANGGRAPH, (part(3),)),
        Line("a step on PostgreSQL", "step", OURS, BURR, (AHEAD,)),
        Line("a step on PostgreSQL", "step", OURS, DBOS, (AHEAD,)),
    ),
)

PAUSE = Group(
    "postgres-pause",
    (
        Subject(OURS, "pause_bide.py", STORE),
        Subject(RAW_ROWS, "pause_raw.py", STORE),
        Subject(LANGGRAPH, "pause_langgraph.py", STORE, is_rival=True),
        Subject(DBOS, "pause_dbos.py", STORE, is_rival=True),
    ),
    (
        Line("pause and resume on PostgreSQL", "pair", OURS, RAW_ROWS, (times(1.5),)),
        Line("pause and resume on PostgreSQL", "pair", OURS, LANGGRAPH),
        Line("pause and resume on PostgreSQL", "pair", OURS, DBOS, (AHEAD,)),
        Line("50 in flight on PostgreSQL", "pair_in_flight", OURS, LANGGRAPH, (part(10),)),
        Line("50 in flight on PostgreSQL", "pair_in_flight", OURS, DBOS, (AHEAD,)),
    ),
)

FAN = Group(
    "postgres-fan",
    (
        Subject(OURS, "fan_bide.py", STORE),
        Subject(LANGGRAPH, "fan_langgraph.py", STORE, is_rival=True),
        Subject(DBOS, "fan_dbos.py", STORE, is_rival=True),
    ),
    (
        Line("100 tasks on PostgreSQL", "fan", OURS, LANGGRAPH, (part(10),)),
        Line("100 tasks on PostgreSQL", "fan", OURS, DBOS, (AHEAD,)),
    ),
)

PAUSED = Group(
    "postgres-paused",
    (
        Subject(OURS, "paused_bide.py", STORE),
        Subject(LANGGRAPH, "paused_langgraph.py", STORE, is_rival=True),
        Subject(DBOS, "paused_dbos.py", STORE, is_rival=True),
    ),
    (
        Line("a paused thread on PostgreSQL", "paused_bytes", OURS, LANGGRAPH, (at_most(1536, "B"),)),
        Line("a paused thread on PostgreSQL", "paused_bytes", OURS, DBOS),
        Line("the 50 that wait longest, on PostgreSQL", "listing", OURS, None, (at_most(5, "ms"),)),
        Line("a paused thread in memory, on PostgreSQL", "paused_memory", OURS, DBOS, (at_most(100, "B"),)),
    ),
    is_long=True,
)

CHAT = Group(
    "postgres-chat",
    (
        Subject(OURS, "chat_bide.py", STORE),
        Subject(LANGGRAPH, "chat_langgraph.py", STORE, is_rival=True),
    ),
    (
        Line("500 turns on PostgreSQL: bytes for a byte said", "growth", OURS, LANGGRAPH, (at_most(2, "×"),)),
        Line("500 turns on PostgreSQL: the last beside the first", "slowdown", OURS, LANGGRAPH, (at_most(1.2, "×"),)),
        Line("500 turns on PostgreSQL: one of the last 50", "last_turns", OURS, LANGGRAPH),
    ),
    is_long=True,
)

ON_POSTGRES = (POSTGRES, PAUSE, FAN, PAUSED, CHAT)
