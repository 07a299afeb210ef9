"""Several processes and many threads on one SQLite file: nobody is told that the database is locked."""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack, closing

import pytest

from bide import Store
from tests.stories.programs.child import Child

PROCESSES, THREADS, STEPS = 4, 25, 5


@pytest.mark.complaint(35)
@pytest.mark.slow
def test_four_processes_with_many_threads_each_share_one_file(path):
    with Store.open(f"sqlite:///{path}") as store, ExitStack() as stack:
        store.database.write(
            "prepare", lambda tx: tx.connection.execute("CREATE TABLE bookings (thread TEXT, count INTEGER)")
        )
        names = [f"process-{number}" for number in range(PROCESSES)]
        children = [stack.enter_context(Child("load.py", path.parent, name, THREADS, STEPS)) for name in names]
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
    assert booked == [(thread, count) for thread in threads for count in range(STEPS)]
