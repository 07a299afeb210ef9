"""What `bide doctor` looks at. Each check says how it stands, and what to do when it does not stand well."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Literal

from bide.cli import words
from bide.cli.marks import FAILED, NOTE, OK, WARNING
from bide.types import RunStatus

if TYPE_CHECKING:
    from bide.cli.desk import Desk
    from bide.store import Store

Verdict = Literal["ok", "note", "warning", "failed"]
MARKS: dict[str, tuple[str, str]] = {
    "ok": (OK, "green"),
    "note": (NOTE, "dim"),
    "warning": (WARNING, "yellow"),
    "failed": (FAILED, "bold red"),
}
LATE = timedelta(minutes=1)
"""What was due so long ago should have been seen to by somebody."""
SKEWED = 5_000
LEAST_ROOM = 200 * 1024 * 1024


@dataclass(frozen=True)
class Check:
    """What one look has found."""

    about: str
    verdict: Verdict
    what: str
    advice: str = ""


def check_application(desk: Desk) -> Iterator[Check]:
    """Look at the graphs."""
    if not desk.loaded.is_given:
        what = "no graphs are named, so only the store is looked at"
        yield Check("application", "note", what, "Name them: --app shop.py:app, or export BIDE_APP=shop.py:app.")
        return
    names = ", ".join(one.name for one in desk.app.graphs)
    yield Check("application", "ok", f"{desk.place.app}: {names}")
    known = {one.name for one in desk.app.graphs}
    foreign = {row.graph for row in desk.store.threads(most=1000)} - known
    if foreign:
        what = f"the store has threads of graphs that this application does not know: {', '.join(sorted(foreign))}"
        yield Check("application", "note", what, "A worker of this application leaves them alone.")


def check_store(store: Store) -> Iterator[Check]:
    """Look at the database and its settings."""
    from bide.store.survey import settings

    found, stats = settings(store), store.stats()
    yield Check("store", "ok", f"{store.database.path}, schema {store.version}")
    yield Check("database", "ok", f"{found['engine']} {found['version']}, {words.size(stats.bytes_total)}")
    weak = _weak_settings(found)
    for name, value, why in weak:
        yield Check("durability", "warning", f"{name} is {value}: {why}", _ADVICE[found["engine"]])
    if not weak:
        names = ("synchronous", "fsync", "synchronous_commit", "full_page_writes", "journal_mode")
        yield Check("durability", "ok", ", ".join(f"{name} {found[name]}" for name in names if name in found))


_ADVICE = {
    "SQLite": "Bide opens it with FULL; another program has changed that.",
    "PostgreSQL": "Switch it on in postgresql.conf, unless this server is for tests.",
}


def _weak_settings(found: dict[str, str]) -> list[tuple[str, str, str]]:
    lost = "what was acknowledged may be lost when the machine fails"
    weak = [
        (name, found[name], lost)
        for name in ("fsync", "synchronous_commit", "full_page_writes")
        if found.get(name) == "off"
    ]
    if found.get("synchronous") in ("OFF", "NORMAL"):
        weak.append(("synchronous", found["synchronous"], lost))
    if found.get("journal_mode") not in (None, "wal", "memory"):
        weak.append(("journal_mode", found["journal_mode"], "readers and writers wait for each other"))
    return weak


def check_file(store: Store) -> Iterator[Check]:
    """Look at the file of a SQLite store: who may read it, and how much room there is."""
    path = store.database.path
    if not os.path.isfile(path):
        return
    if os.stat(path).st_mode & 0o004:
        yield Check("file", "note", f"everybody on this machine may read {path}", f"chmod o-r {path}")
    room = shutil.disk_usage(os.path.dirname(path)).free
    if room < LEAST_ROOM:
        yield Check("file", "warning", f"only {words.size(room)} are free on its disk", "Make room, or bide prune.")
    log = store.stats().bytes_log
    if log > LEAST_ROOM:
        what = f"its write-ahead log has {words.size(log)}: a reader has kept a snapshot open for long"
        yield Check("file", "warning", what, "Look for a program that forgot to end a transaction.")


def check_clock(store: Store) -> Iterator[Check]:
    """Look how far apart the clocks are. Bide goes by the store's alone; what the code of nodes reads may differ."""
    from bide.store.survey import clock_skew

    skew = clock_skew(store)
    ahead = "ahead of" if skew > 0 else "behind"
    told = f"this machine is {abs(skew) / 1000:.1f} s {ahead} the store"
    if abs(skew) > SKEWED:
        yield Check("clock", "warning", told, "Let it keep time (NTP); Bide itself goes by the store's clock.")
    else:
        yield Check("clock", "ok", told if abs(skew) > 1000 else "this machine and the store agree")


def check_workers(desk: Desk) -> Iterator[Check]:
    """Look who works, and who left without a word."""
    from bide.cli.attending import how_to_work
    from bide.store.survey import workers

    known, now = workers(desk.store), desk.now
    alive = [one for one in known if one.is_alive]
    gone = [one for one in known if not one.is_alive and one.holds]
    yield Check("workers", "ok" if alive else "note", f"{len(alive)} alive" if alive else "nobody works right now")
    for one in gone:
        who = f"{one.worker_id} ({one.host or 'unknown'}, pid {one.pid})"
        what = f"{who} is gone, and holds {words.count(one.holds, 'run')}"
        yield Check("workers", "warning", what, "Any worker takes them over: bide worker.")
    ready = desk.app.list(status=RunStatus.READY)
    late = [one for one in ready if one.updated_at is not None and now - one.updated_at > LATE]
    if ready and not alive:
        what = f"{words.count(len(ready), 'run')} ready, and nobody to drive them"
        yield Check("workers", "warning", what, how_to_work(desk))
    elif late:
        what = f"{words.count(len(late), 'run')} ready for more than a minute ({words.line(late[0].thread_id)}, …)"
        yield Check("workers", "warning", what, "Do the workers know their graphs, versions and queues? More of them?")


def check_stuck(desk: Desk) -> Iterator[Check]:
    """Look for what nobody gets on with."""
    from bide.store.survey import overdue

    store, found = desk.store, False
    for status, what, command in (
        (RunStatus.DEAD, "out of service: their workers were lost again and again", "bide release {}"),
        (
            RunStatus.BLOCKED,
            "blocked: their code does not fit their journal",
            "bide replay-check {0}; bide release {0}",
        ),
        (RunStatus.FAILED, "failed, and wait for somebody to look", "bide retry {}"),
    ):
        runs = desk.app.list(status=status)
        if runs:
            is_failed = status is RunStatus.FAILED  # which is an end, and nothing that is stuck
            found = found or not is_failed
            named = ", ".join(words.line(one.thread_id) for one in runs[:3]) + (", …" if len(runs) > 3 else "")
            first = words.line(runs[0].thread_id)
            told = f"{words.count(len(runs), 'thread')} {what} ({named})"
            advice = f"bide show {first}; then {command.format(first)}"
            yield Check("threads", "note" if is_failed else "warning", told, advice)
    late = overdue(store, LATE // timedelta(milliseconds=1))
    if late:
        found = True
        what = f"{words.count(len(late), 'wait')} past the deadline, and nobody has seen to it"
        yield Check("waits", "warning", what, "Any worker does: bide worker.")
    lost = desk.app.deliveries(unmatched=True, most=100)
    if lost:
        more = "at least " if len(lost) == 100 else ""
        what = f"{more}{words.count(len(lost), 'delivery').replace('deliverys', 'deliveries')} woke nobody"
        yield Check("deliveries", "note", what, f"bide explain {lost[0].id}")
    if not found:
        yield Check("threads", "ok", _counted(store))


def _counted(store: Store) -> str:
    counts = ", ".join(f"{count} {status}" for status, count in store.stats().threads_by_status.items())
    return f"nothing is stuck{f' ({counts})' if counts else ''}"
