"""Taking a thread, guard by guard: what was read must still be so, or nothing at all is written.

In a race several guards stand behind each other. Here each is met alone, so that none can be lost unnoticed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

import pytest

from bide import Store, interrupt
from bide.errors import AlreadyAnsweredError, ConflictError, ThreadBusyError
from bide.store.database import Transaction
from bide.store.postgres_sql import our_tables
from bide.store.rows import CheckpointRow, Stored, Taking, Transition
from bide.types import RunStatus
from tests.stores import KINDS, opened_store
from tests.threads import one_node, thread


class State(TypedDict):
    x: int


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with opened_store(request, tmp_path) as store:
        yield store


def asking(store: Store) -> None:
    """Make a thread that waits."""
    one_node(State, lambda state: {"x": interrupt("?")}, checkpointer=store).invoke({"x": 1}, thread("waiting"))


def read(store: Store, name: str) -> Stored:
    stored = store.load(name, None)
    assert stored is not None
    return stored


def taking(name: str, stored: Stored | None) -> Taking:
    """What a caller would write who goes on with a thread as it was read."""
    return Taking(
        thread_id=name,
        graph="graph",
        uid=None if stored is None else stored.uid,
        head=0 if stored is None else stored.head,
        claim=None if stored is None else stored.run,
        supersede=None,
        answers=(),
        forget=False,
        checkpoint=None,
        events=(),
    )


def contents(store: Store) -> dict[str, list[Any]]:
    """Every row of every table, but the notes of writes that were taken back."""
    place = "bide." if store.database.path.startswith("postgresql:") else ""
    shared = set(our_tables()) - {"outcomes"}

    def read(tx: Transaction) -> dict[str, list[Any]]:
        return {table: sorted(tx.connection.execute(f"SELECT * FROM {place}{table}"), key=repr) for table in shared}

    return store.database.read(read)


def check_refused_whole(store: Store, wish: Taking, error: type[ConflictError]) -> None:
    before = contents(store)
    with pytest.raises(error, match="Nothing was written"):
        store.begin(wish)
    assert contents(store) == before


def test_run_that_was_taken_since_it_was_read_is_refused(store):
    asking(store)
    stored = read(store, "waiting")
    store.begin(taking("waiting", stored))

    check_refused_whole(store, taking("waiting", stored), ThreadBusyError)


def test_run_that_was_taken_and_waits_again_is_another_epoch(store):
    asking(store)
    stored = read(store, "waiting")
    _, lease = store.begin(taking("waiting", stored))
    store.commit(lease, Transition(stored.head, status=RunStatus.WAITING))
    again = read(store, "waiting")

    assert stored.run is not None
    assert again.run is not None
    assert (again.run.run_id, again.run.status) == (stored.run.run_id, stored.run.status)
    check_refused_whole(store, taking("waiting", stored), ThreadBusyError)


@pytest.mark.parametrize("status", [RunStatus.DONE, RunStatus.FAILED, RunStatus.WAITING])
def test_run_that_was_ended_by_its_owner_since_it_was_read_is_not_revived(store, status):
    """Its worker was believed dead, and only late."""
    asking(store)
    _, lease = store.begin(taking("waiting", read(store, "waiting")))
    under_way = read(store, "waiting")
    store.commit(lease, Transition(under_way.head, status=status))

    check_refused_whole(store, taking("waiting", under_way), ThreadBusyError)


def test_question_that_was_answered_since_it_was_read_takes_the_claim_back_too(store):
    asking(store)
    stored = read(store, "waiting")
    wait_id = stored.waits[0].wait_id
    store.database.write(
        "test", lambda tx: tx.run("answer_wait", {"wait_id": wait_id, "answer": b"", "via": "test", "now": 1})
    )

    wish = taking("waiting", stored)._replace(answers=((wait_id, b"\x01\x07"),))

    check_refused_whole(store, wish, AlreadyAnsweredError)


def test_second_live_run_on_a_thread_is_refused(store):
    asking(store)

    check_refused_whole(store, taking("waiting", read(store, "waiting"))._replace(claim=None), ThreadBusyError)


def test_thread_that_was_made_since_it_was_missed_is_refused(store):
    asking(store)

    check_refused_whole(store, taking("waiting", None), ThreadBusyError)


def test_thread_that_moved_on_since_it_was_read_is_refused(store):
    graph = one_node(State, lambda state: {"x": 2}, checkpointer=store)
    graph.invoke({"x": 1}, thread("done"))
    stored = read(store, "done")
    graph.invoke({"x": 1}, thread("done"))

    check_refused_whole(store, taking("done", stored), ThreadBusyError)
    stale = CheckpointRow(stored.head + 1, stored.head, 0, "input", b"")
    check_refused_whole(store, taking("done", stored)._replace(checkpoint=stale), ThreadBusyError)


def test_run_that_was_taken_since_it_was_read_is_not_superseded(store):
    asking(store)
    stored = read(store, "waiting")
    store.begin(taking("waiting", stored))

    wish = taking("waiting", stored)._replace(claim=None, supersede=stored.run)

    check_refused_whole(store, wish, ThreadBusyError)


def test_edit_is_refused_while_a_run_is_under_way(store):
    asking(store)
    stored = read(store, "waiting")
    store.begin(taking("waiting", stored))
    before = contents(store)

    with pytest.raises(ThreadBusyError):
        store.edit(
            taking("waiting", stored)._replace(claim=None),
            CheckpointRow(stored.head + 1, stored.head, 0, "update", b""),
        )

    assert contents(store) == before


def test_edit_of_a_thread_that_moved_on_since_it_was_read_is_refused(store):
    graph = one_node(State, lambda state: {"x": 2}, checkpointer=store)
    graph.invoke({"x": 1}, thread("done"))
    stored = read(store, "done")
    graph.invoke({"x": 1}, thread("done"))
    before = contents(store)

    with pytest.raises(ThreadBusyError):
        store.edit(taking("done", stored), CheckpointRow(stored.head + 1, stored.head, 0, "update", b""))

    assert contents(store) == before
