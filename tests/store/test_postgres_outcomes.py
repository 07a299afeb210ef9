"""Whether a write was applied whose reply was lost: known from a note that it left in its own transaction."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from bide import Store
from bide.errors import LeaseLostError, StoreUnavailableError
from bide.store.postgres import PostgresDatabase
from bide.store.rows import CheckpointRow, EventRow, JournalRow, Stored, Transition
from bide.types import RunStatus
from tests.lossy_proxy import LossyProxy, lossy_proxy
from tests.store.test_postgres_fences import (
    BODY,
    LINE,
    NEW,
    NEXT,
    PATIENCE_SECONDS,
    transaction_under_way,
    wait_until_blocked,
)

MINE = {"slot": "mine", "token": 7}


@pytest.fixture
def store(postgres_url: str) -> Iterator[Store]:
    with Store.open(postgres_url, schema="bide") as store:
        yield store


def noted(store: Store, note: dict[str, Any]) -> int:
    return store.database.write("note", lambda tx: tx.run("note_outcome", note))


def closed(store: Store, slot: str = "mine") -> int:
    """Close a slot, and return the last write that was committed in it."""
    row = store.database.write("close", lambda tx: tx.one("close_slot", {"slot": slot}))
    assert row is not None
    return int(row[0])


def outcomes(url: str) -> dict[str, tuple[int, int]]:
    with psycopg.connect(url, autocommit=True) as connection:
        rows = connection.execute("SELECT slot, token, is_open FROM bide.outcomes").fetchall()
    return {slot: (token, is_open) for slot, token, is_open in rows}


def test_write_that_was_committed_is_known_by_its_token(store):
    assert noted(store, MINE) == 1

    assert closed(store) == 7


def test_write_that_never_came_is_known_not_to_be_there(store):
    assert closed(store) == 0


@pytest.mark.parametrize("came_before", [False, True])
def test_write_that_comes_after_it_was_asked_for_is_too_late(store, came_before):
    if came_before:
        noted(store, {**MINE, "token": 6})
    closed(store)

    assert noted(store, MINE) == 0


@pytest.mark.parametrize("came_before", [False, True])
def test_whoever_asks_waits_for_a_write_that_is_still_under_way(store, postgres_url, came_before):
    if came_before:
        noted(store, {**MINE, "token": 6})

    with (
        transaction_under_way(store, lambda tx: tx.run("note_outcome", MINE)) as commit,
        ThreadPoolExecutor(1) as thread,
    ):
        asked = thread.submit(closed, store)
        wait_until_blocked(postgres_url)
        commit()

        assert asked.result(PATIENCE_SECONDS) == 7


def test_each_write_leaves_its_note_and_one_row_serves_many(store, postgres_url):
    _, lease = store.begin(NEW)
    for seq in range(2, 12):
        store.commit(lease, Transition(seq - 1, CheckpointRow(seq, seq - 1, seq, "loop", BODY), over=("",)))

    found = outcomes(postgres_url)

    assert [is_open for _, is_open in found.values()] == [1]
    assert next(iter(found.values()))[0] == 11


def test_writes_at_the_same_time_have_notes_of_their_own(store, postgres_url):
    with transaction_under_way(store, lambda tx: tx.all("list_threads", {"most": 1})) as commit:
        store.begin(NEW)
        commit()

    assert len(outcomes(postgres_url)) == 2


def test_notes_of_yesterday_are_forgotten(store, postgres_url):
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("INSERT INTO bide.outcomes VALUES ('old', 1, 0, now() - interval '25 hours')")
        connection.execute("INSERT INTO bide.outcomes VALUES ('new', 1, 0, now() - interval '23 hours')")

    store.begin(NEW)

    assert "old" not in outcomes(postgres_url)
    assert "new" in outcomes(postgres_url)


# ── With connections that break ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[LossyProxy]:
    with lossy_proxy(postgres_url) as proxy:
        yield proxy


@pytest.fixture
def remote(proxy: LossyProxy) -> Iterator[Store]:
    """The same database, behind a proxy that loses what it is told to lose."""
    with Store.open(proxy.dsn, schema="bide") as store:
        # The end of the last reading is answered later, and that answer is not the one to be lost.
        store.database.write("nothing", lambda tx: None)
        yield store


LOSSES = pytest.mark.parametrize("lose", [LossyProxy.lose_reply, LossyProxy.lose_request], ids=["reply", "request"])


@LOSSES
def test_step_whose_reply_or_request_was_lost_is_written_once(remote, proxy, lose):
    _, lease = remote.begin(NEW)

    lose(proxy)
    remote.commit(lease, Transition(1, NEXT))
    remote.commit(lease, Transition(2, NEXT._replace(seq=3, parent=2)))

    assert proxy.lost == 1
    assert read(remote).head == 3


@LOSSES
def test_transition_whose_reply_or_request_was_lost_is_written_once(remote, proxy, lose):
    _, lease = remote.begin(NEW)
    events = (EventRow("paused", b""), EventRow("told", b""))

    lose(proxy)
    remote.commit(lease, Transition(1, NEXT, status=RunStatus.WAITING, events=events))

    assert proxy.lost == 1
    stored = read(remote)
    assert (stored.head, stored.run and stored.run.status) == (2, RunStatus.WAITING)
    assert [(event.number, event.kind) for event in remote.events("t")] == [(1, "paused"), (2, "told")]


@LOSSES
def test_thread_whose_beginning_was_lost_on_the_way_is_begun_once(remote, proxy, lose):
    lose(proxy)
    _, lease = remote.begin(NEW)

    assert proxy.lost == 1
    assert (lease.epoch, read(remote).head) == (1, 1)


@LOSSES
@pytest.mark.parametrize("when", ["before", "after"])
def test_users_own_sql_is_done_once_wherever_the_connection_breaks(remote, proxy, postgres_url, lose, when):
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE books (amount bigint)")
    _, lease = remote.begin(NEW)
    losses = iter([lose])

    def book(connection: Any) -> JournalRow:
        if when == "before":
            next(losses, lambda _: None)(proxy)
        connection.execute("INSERT INTO books VALUES (%s)", (5,))
        if when == "after":
            next(losses, lambda _: None)(proxy)
        return LINE

    assert remote.transact(lease, "task", "key", book) == LINE.body

    with psycopg.connect(postgres_url) as connection:
        booked = connection.execute("SELECT amount FROM books").fetchall()
    assert (proxy.lost, booked, remote.journal("t")) == (1, [(5,)], (LINE,))


def test_step_of_a_lost_lease_stays_refused_after_a_lost_connection(remote, proxy):
    _, lease = remote.begin(NEW)
    remote.delete_thread("t")

    proxy.lose_reply()
    with pytest.raises(LeaseLostError):
        remote.commit(lease, Transition(1, NEXT))

    assert proxy.lost == 1


def test_slot_of_a_lost_write_is_closed_and_not_used_again(remote, proxy, postgres_url):
    proxy.lose_reply()
    remote.begin(NEW)
    remote.begin(NEW._replace(thread_id="u"))

    assert sorted(is_open for _, is_open in outcomes(postgres_url).values()) == [0, 1]


def test_server_that_does_not_come_back_in_time_leaves_an_error_that_says_what_is_not_known(postgres_url):
    with lossy_proxy(postgres_url) as proxy:
        database = PostgresDatabase(proxy.dsn, schema="bide", patience=0.2)
        with Store(database) as store:
            store.begin(NEW)

            proxy.close()
            proxy.lose_reply()
            with pytest.raises(StoreUnavailableError, match=r"whether it was written is not known.*get_state"):
                store.begin(NEW._replace(thread_id="u"))


def read(store: Store) -> Stored:
    stored = store.load("t", None)
    assert stored is not None
    return stored
