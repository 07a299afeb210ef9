"""What is measured of the server: beside LangGraph's own, which keeps everything in memory and loses it."""

from __future__ import annotations

from benchmarks.harness.groups import AHEAD, Group, Line, Subject

THEIRS = "LangGraph's server, memory"


def _server(name: str, store: str, shown: str) -> Group:
    ours = f"Bide, {shown}"
    return Group(
        name,
        (
            Subject(ours, "server_bide.py", ("--store", store)),
            Subject(THEIRS, "server_langgraph.py", ("--store", "none"), is_rival=True, is_reference=True),
        ),
        (
            Line(f"an answer over HTTP until its run is done, 16 callers, {shown}", "answer", ours, THEIRS, (AHEAD,)),
            Line(f"… 99 of 100, {shown}", "answer_p99", ours, THEIRS, (AHEAD,)),
            Line(f"300 follow: from an answer to its follower, half of them, {shown}", "follower_p50", ours, THEIRS),
            Line(f"… 99 of 100, with 300 followers, {shown}", "follower_p99", ours, THEIRS),
            Line(f"300 follow: what one of them takes in memory, {shown}", "follower_memory", ours, THEIRS),
        ),
        is_long=True,
    )


SERVER = (_server("server", "sqlite", "SQLite"), _server("postgres-server", "postgres", "PostgreSQL"))
