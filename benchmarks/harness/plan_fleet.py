"""What is measured of workers: beside DBOS, which keeps who waits in memory. LangGraph has no workers of its own."""

from __future__ import annotations

from benchmarks.harness.groups import AHEAD, Group, Line, Subject, at_most


def _fleet(name: str, store: str, shown: str) -> Group:
    ours, theirs = f"Bide, {shown}", f"DBOS, {shown}"
    return Group(
        name,
        (
            Subject(ours, "fleet_bide.py", ("--store", store)),
            Subject(theirs, "fleet_dbos.py", ("--store", store), is_rival=True),
        ),
        (
            Line(f"pause and resume through a worker, {shown}", "round_trip", ours, theirs, (AHEAD,)),
            Line(f"from a wake to its code, half of them, {shown}", "wake_p50", ours, theirs),
            Line(f"from a wake to its code, 99 of 100, {shown}", "wake_p99", ours, theirs),
        ),
    )


def _claims(name: str, store: str, shown: str) -> Group:
    ours, theirs = f"Bide, {shown}", f"DBOS, {shown}"
    return Group(
        name,
        (
            Subject(ours, "claims_bide.py", ("--store", store)),
            Subject(theirs, "claims_dbos.py", ("--store", store), is_rival=True),
        ),
        (
            Line(f"a short run from a queue, 1 worker process, {shown}", "run_by_1", ours, theirs, (AHEAD,)),
            Line(f"the same, 2 worker processes, {shown}", "run_by_2", ours),
            Line(f"the same, 4 worker processes, {shown}", "run_by_4", ours),
        ),
        is_long=True,
    )


def _sleepers(name: str, store: str, shown: str, threads: int) -> Group:
    ours, theirs = f"Bide, {shown}", f"DBOS, {shown}"
    what = f"{threads:,} sleep, {shown}"
    return Group(
        name,
        (
            Subject(ours, "sleepers_bide.py", ("--store", store, "--width", str(threads))),
            Subject(theirs, "sleepers_dbos.py", ("--store", store), is_rival=True),
        ),
        (
            Line(f"{what}: one of 10,000 that wake at once", "sleeper_wakes", ours, theirs, (AHEAD,)),
            Line(f"{what}: a sleeping thread on disk", "sleeper_bytes", ours, theirs, (at_most(1536, "B"),)),
            Line(f"{what}: what the worker grows by", "worker_grows", ours, None, (at_most(50, "MB"),)),
            Line(f"{what}: a sleeper in memory", "sleeper_memory", theirs),
        ),
        is_long=True,
    )


FLEET = (
    _fleet("workers", "sqlite", "SQLite"),
    _fleet("postgres-workers", "postgres", "PostgreSQL"),
    _claims("claims", "sqlite", "SQLite"),
    _claims("postgres-claims", "postgres", "PostgreSQL"),
    _sleepers("sleepers", "sqlite", "SQLite", 100_000),
    _sleepers("postgres-sleepers", "postgres", "PostgreSQL", 10_000),
)
