"""A worker that lost its run writes nothing, also when it was writing at the very moment it lost it.

PostgreSQL lets transactions run side by side, each seeing what was committed when its statement began. So whoever
writes by a lease locks the run's row, and whoever takes the run over waits for that lock, or makes the other wait.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event
from typing import Any

import psycopg
import pytest

from bide import Store
from bide.errors import LeaseLostError, ThreadBusyError
from bide.store.database import Transaction
from bide.store.frames import Frame, pack_frame
from bide.store.rows import CheckpointRow, EventRow, JournalRow, Lease, Taking, Transition
from bide.store.writes import plain_step
from bide.types import RunStatus

PATIENCE_SECONDS = 30
BODY = pack_frame(Frame(1, None, {}, {}, None))
NEW = Taking("t", "graph", None, 0, None, None, (), False, CheckpointRow(1, None, 0, "input", BODY), ())
NEXT = CheckpointRow(2, 1, 1, "loop", BODY)
LINE = JournalRow("task", "key", "step", "done", "name", "digest", b"line")


@pytest.fixture
def open_store(postgres_url: str) -> Iterator[Callable[[], Store]]:
    """Opens the same database each time it is called, as another process would."""
    opened: list[Store] = []

    def open_another() -> Store:
        opened.append(Store.open(postgres_url, schema="bide"))
        return opened[-1]

    yield open_another
    for store in opened:
        store.close()


@contextmanager
def transaction_under_way(store: Store, work: Callable[[Transaction], Any]) -> Iterator[Callable[[], None]]:
    """Do some work in a transaction that stays open, until the function that is given is called."""
    is_done, may_end = Event(), Event()

    def hold(tx: Transaction) -> None:
        work(tx)
        is_done.set()
        assert may_end.wait(PATIENCE_SECONDS)

    with ThreadPoolExecutor(1) as thread:
        held = thread.submit(store.database.write, "held", hold)
        assert is_done.wait(PATIENCE_SECONDS)

        def end() -> None:
            may_end.set()
            held.result(PATIENCE_SECONDS)

        try:
            yield end
        finally:
            may_end.set()


def wait_until_blocked(url: str) -> None:
    """Return when a transaction waits for the lock of another."""
    blocked = "SELECT count(*) FROM pg_stat_activity WHERE cardinality(pg_blocking_pids(pid)) > 0"
    with psycopg.connect(url, autocommit=True) as connection:
        for _ in range(20_000):
            if connection.execute(blocked).fetchone() != (0,):
                return
    pytest.fail("nobody waits for a lock")


def claim(tx: Transaction, lease: Lease) -> None:
    """Take a run over, as `Store.begin` does."""
    seen = {**lease._asdict(), "status": "running", "worker_id": "another", "now": 1}
    assert tx.run("claim_run", seen) == 1


def checkpoints(store: Store) -> list[int]:
    rows = store.database.read(
        lambda tx: tx.all("list_checkpoints", {"thread_id": "t", "ns": "", "before": 9, "most": 9})
    )
    return sorted(row[0] for row in rows)


def late_writes(store: Store, lease: Lease) -> dict[str, Callable[[], None]]:
    return {
        "step": lambda: store.commit(lease, Transition(1, NEXT)),
        "pause": lambda: store.commit(lease, Transition(1, NEXT, status=RunStatus.WAITING)),
        "end": lambda: store.commit(lease, Transition(1, status=RunStatus.DONE, events=(EventRow("done", b""),))),
        "journal": lambda: store.keep(lease, LINE),
        "user's own SQL": lambda: store.transact(lease, "task", "key", lambda connection: LINE) and None,
    }


@pytest.mark.parametrize("kind", ["step", "pause", "end", "journal", "user's own SQL"])
def test_late_write_that_waits_for_the_takeover_writes_nothing(open_store, postgres_url, kind):
    slow, quick = open_store(), open_store()
    _, lease = slow.begin(NEW)

    # Another worker takes the run, and has not committed yet when the slow one writes.
    with transaction_under_way(quick, lambda tx: claim(tx, lease)) as commit, ThreadPoolExecutor(1) as thread:
        late: Future[None] = thread.submit(late_writes(slow, lease)[kind])
        wait_until_blocked(postgres_url)
        commit()

        with pytest.raises(LeaseLostError, match="Nothing was written"):
            late.result(PATIENCE_SECONDS)

    assert checkpoints(quick) == [1]
    assert quick.journal("t") == ()
    assert quick.events("t") == []


def test_takeover_that_waits_for_a_last_step_finds_it_and_is_refused(open_store, postgres_url):
    slow, quick = open_store(), open_store()
    _, lease = slow.begin(NEW)
    seen = quick.load("t", None)
    assert seen is not None
    assert seen.run is not None
    wish = NEW._replace(uid=seen.uid, head=1, claim=seen.run, checkpoint=NEXT)

    def step_slowly(tx: Transaction) -> None:
        params = plain_step(lease, NEXT, slow.bodies, 1)
        assert params is not None
        assert tx.run("write_checkpoint", params) == 1

    # The slow worker's step is written, and not committed yet, when the other takes the run.
    with transaction_under_way(slow, step_slowly) as commit, ThreadPoolExecutor(1) as thread:
        taken = thread.submit(quick.begin, wish)
        wait_until_blocked(postgres_url)
        commit()

        with pytest.raises(ThreadBusyError, match="Nothing was written"):
            taken.result(PATIENCE_SECONDS)

    after = quick.load("t", None)
    assert after is not None
    assert (after.head, after.run) == (2, seen.run)


def test_two_who_make_the_same_thread_at_once_make_one(open_store, postgres_url):
    slow, quick = open_store(), open_store()
    row = {"thread_id": "t", "uid": "first", "owner": "", "graph": "graph", "now": 1}

    with transaction_under_way(slow, lambda tx: tx.run("insert_thread", row)) as commit, ThreadPoolExecutor(1) as other:
        second = other.submit(quick.begin, NEW)
        wait_until_blocked(postgres_url)
        commit()

        with pytest.raises(ThreadBusyError, match="Nothing was written"):
            second.result(PATIENCE_SECONDS)

    assert checkpoints(quick) == []


@pytest.mark.complaint(32)
def test_lines_of_parallel_tasks_do_not_wait_for_each_other(open_store):
    store, other = open_store(), open_store()
    _, lease = store.begin(NEW)

    # A write that holds the lease is under way, and another by the same lease is through before it ends.
    with transaction_under_way(other, lambda tx: tx.one("hold_lease", lease._asdict())) as commit:
        store.keep(lease, LINE)
        kept = store.journal("t")
        commit()

    assert kept == (LINE,)
