"""Several processes and many threads on one SQLite file: nobody is told that the database is locked."""

from __future__ import annotations

import json
import signal
import sqlite3
import subprocess
import sys
from collections import defaultdict
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from bide import Store
from tests.store.programs.crowd import STEPS, whole_lines
from tests.stories.programs.child import Child

PROCESSES, THREADS = 4, 25
PROGRAM = Path(__file__).parent / "programs" / "crowd.py"
PATIENCE_SECONDS = 100


def prepare(store: Store) -> None:
    sql = "CREATE TABLE bookings (thread TEXT, count INTEGER)"
    store.database.write("prepare", lambda tx: tx.connection.execute(sql))


@pytest.mark.complaint(35)
@pytest.mark.slow
def test_four_processes_with_many_threads_each_share_one_file(path):
    steps = 5
    with Store.open(f"sqlite:///{path}") as store, ExitStack() as stack:
        prepare(store)
        names = [f"process-{number}" for number in range(PROCESSES)]
        children = [stack.enter_context(Child("load.py", path.parent, name, THREADS, steps)) for name in names]
        for child in children:
            child.tell("go")
        ends = [child.hear() for child in children]
        codes = [child.process.wait() for child in children]

    assert ends == [{"finished": THREADS, "errors": []}] * PROCESSES
    assert codes == [0] * PROCESSES
    with closing(sqlite3.connect(path)) as database:
        booked = database.execute("SELECT thread, count FROM bookings ORDER BY thread, count").fetchall()
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    threads = sorted(f"{name}-{number}" for name in names for number in range(THREADS))
    assert booked == [(thread, count) for thread in threads for count in range(steps)]


# ── Everything at once ─────────────────────────────────────────────────────────────────────────────────────────────


class Crowd:
    """Processes with different habits on one file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.members: list[subprocess.Popen[str]] = []

    def __enter__(self) -> Crowd:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self.members:
            member.kill()
            member.communicate()

    def send(self, habit: str, who: str, rounds: int) -> subprocess.Popen[str]:
        command = [sys.executable, str(PROGRAM), habit, str(self.folder), who, str(rounds)]
        member = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.members.append(member)
        return member

    def kill_one_who_writes(self) -> None:
        """Let one more write, and kill it as soon as it has been told of something, wherever it is by then."""
        ledger = self.folder / "ledger-victim"
        before = len(whole_lines(ledger)) if ledger.exists() else 0
        victim = self.send("write", "victim", 10_000)
        while not ledger.exists() or len(whole_lines(ledger)) < before + 3:
            with pytest.raises(subprocess.TimeoutExpired):
                victim.wait(0.01)
        victim.kill()
        assert victim.wait(PATIENCE_SECONDS) == -signal.SIGKILL

    def ends(self) -> list[Any]:
        """What the others say at their end."""
        return [
            json.loads(member.communicate(timeout=PATIENCE_SECONDS)[0]) for member in self.members if not killed(member)
        ]


def killed(member: subprocess.Popen[str]) -> bool:
    return member.poll() == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.complaint(35)
def test_writers_readers_comers_backups_and_deaths_on_one_file_cost_nobody_anything(path):
    with Store.open(f"sqlite:///{path}") as store, Crowd(path.parent) as crowd:
        prepare(store)
        for number in range(4):
            crowd.send("write", f"writer-{number}", 12)
        for number in range(2):
            crowd.send("read", f"reader-{number}", 25)
        crowd.send("come_and_go", "guest", 15)
        crowd.send("back_up", "keeper", 4)
        for _ in range(5):
            crowd.kill_one_who_writes()
        ends = crowd.ends()
        longest_log = Path(f"{path}-wal").stat().st_size

    assert [end["errors"] for end in ends] == [[]] * 8
    assert longest_log < 64 * 1024 * 1024
    check_that_what_was_acknowledged_is_there_once(path)


def check_that_what_was_acknowledged_is_there_once(path: Path) -> None:
    acknowledged = [line.split() for ledger in path.parent.glob("ledger-*") for line in whole_lines(ledger)]
    booked: dict[str, list[int]] = defaultdict(list)
    with closing(sqlite3.connect(path)) as database:
        for thread, count in database.execute("SELECT thread, count FROM bookings ORDER BY thread, count"):
            booked[thread].append(count)
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert len(acknowledged) > 2 * (4 * 12 + 15)
    for kind, thread in acknowledged:
        least = STEPS if kind == "done" else STEPS // 2
        assert booked[thread][:least] == list(range(least)), f"{thread} was told that it is {kind}"
    assert all(counts == list(range(len(counts))) for counts in booked.values()), "something was done twice"
