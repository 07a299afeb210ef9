"""The feed tells the events of all threads in one order: each once, though transactions commit out of order."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import psycopg
import pytest

from bide import Bide, Store
from bide.errors import UnknownCursorError
from bide.store.database import Transaction
from bide.store.facts import event_of
from bide.store.feed import Feed, FeedEvent, latest_cursor, read_feed
from bide.store.outbox import Message, bookmark, mend_feed, post
from bide.store.sqlite import SqliteDatabase
from bide.store.writes import Writing
from tests.runtime.world import graph
from tests.stores import KINDS, SCHEMA, opened_store


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with opened_store(request, tmp_path) as opened:
        yield opened


@pytest.fixture
def postgres(postgres_url: str) -> Iterator[Store]:
    with Store.open(postgres_url, schema=SCHEMA) as opened:
        yield opened


def answering(state: dict[str, Any]) -> dict[str, Any]:
    return {"answer": state["given"]}


def app_over(store: Store) -> Bide:
    return Bide(store, [graph(answering, "answers")])


def run(app: Bide, thread_id: str, owner: str = "") -> None:
    app.start("answers", {"given": 1}, thread_id=thread_id, owner=owner)
    app.run_ready()


def log(tx: Transaction, store: Store, thread_id: str, *kinds: str) -> None:
    Writing(tx, store.bodies, store.clock.now()).log_events(thread_id, None, 0, [event_of(kind) for kind in kinds])


def write(store: Store, thread_id: str, *kinds: str) -> None:
    store.database.write("test", lambda tx: log(tx, store, thread_id, *kinds))


def all_of(store: Store, after: str | None = None, most: int = 100, owner: str | None = None) -> list[FeedEvent]:
    """Read to the end, page by page."""
    told: list[FeedEvent] = []
    while True:
        page = read_feed(store, after, most, owner)
        told += page.events
        after = page.cursor
        if not page.is_more:
            return told


def places(events: list[FeedEvent]) -> list[tuple[str, int]]:
    return [(event.thread_id, event.number) for event in events]


# ── What is in it ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("most", [1, 2, 100])
def test_lines_of_all_threads_are_told_once_whatever_the_size_of_a_page(store: Store, most: int) -> None:
    app = app_over(store)
    for name in ("a", "b"):
        run(app, name)

    told = all_of(store, most=most)

    assert places(told) == [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2), ("b", 3)]
    assert [event.kind for event in told[:3]] == ["run.ready", "run.started", "run.done"]
    assert told[2].body == {"error": None}
    assert told[2].graph == "answers"


def test_whoever_goes_on_behind_an_event_is_told_the_rest(store: Store) -> None:
    app = app_over(store)
    run(app, "a")
    first, second, *_ = all_of(store)
    run(app, "b")

    assert places(all_of(store, second.cursor)) == [("a", 3), ("b", 1), ("b", 2), ("b", 3)]
    assert places(all_of(store, first.cursor))[0] == ("a", 2)


def test_whoever_begins_now_is_told_only_what_comes(store: Store) -> None:
    app = app_over(store)
    run(app, "a")

    now = latest_cursor(store)
    run(app, "b")

    assert {event.thread_id for event in all_of(store, now)} == {"b"}


def test_an_owner_is_told_of_own_threads_alone_and_goes_on_behind_those_of_others(store: Store) -> None:
    app = app_over(store)
    for number in range(12):
        run(app, f"theirs-{number}", owner="them")
    run(app, "mine", owner="me")

    first = read_feed(store, None, 2, "me")
    told = all_of(store, most=2, owner="me")

    assert first.events == []
    assert first.is_more, "it looks at a few of all lines at once, and says that there are more"
    assert places(told) == [("mine", 1), ("mine", 2), ("mine", 3)]
    assert {event.owner for event in told} == {"me"}


def test_what_a_run_tells_while_it_runs_is_not_in_it(store: Store) -> None:
    run(app_over(store), "a")
    now = latest_cursor(store)

    write(store, "a", "told.updates", "wait.extended", "told.messages")

    assert [event.kind for event in all_of(store, now)] == ["wait.extended"]


def test_kinds_that_nobody_asked_for_are_left_out_and_passed_over(store: Store) -> None:
    run(app_over(store), "a")

    page = read_feed(store, None, 100, kinds={"run.done"})

    assert [event.kind for event in page.events] == ["run.done"]
    assert read_feed(store, page.cursor).events == []


def test_a_deleted_thread_leaves_the_feed_and_its_places_are_not_given_again(store: Store) -> None:
    app = app_over(store)
    run(app, "a")
    last = all_of(store)[-1].cursor

    store.delete_thread("a")
    run(app, "b")

    assert places(all_of(store, last)) == [("b", 1), ("b", 2), ("b", 3)]
    assert {event.thread_id for event in all_of(store)} == {"b"}


def test_the_past_of_an_imported_thread_is_no_news(store: Store, tmp_path: Path) -> None:
    app = app_over(store)
    run(app, "a")
    store.export_thread("a", tmp_path / "a.jsonl")
    now = latest_cursor(store)

    store.import_thread(tmp_path / "a.jsonl", thread_id="copy")
    store.import_thread(tmp_path / "a.jsonl", thread_id="another")
    told_of_the_past = all_of(store, now)
    run(app, "copy")

    assert told_of_the_past == []
    assert [(event.thread_id, event.kind) for event in all_of(store, now)] == [
        ("copy", "run.ready"),
        ("copy", "run.started"),
        ("copy", "run.done"),
    ]
    assert {event.thread_id for event in all_of(store)} == {"a", "copy"}
    assert store.verify().is_sound


def test_a_line_that_cannot_be_read_keeps_nobody_from_the_next(store: Store) -> None:
    run(app_over(store), "a")
    store.database.write(
        "test",
        lambda tx: tx.run(
            "reseal_events_body",
            {"thread_id": "a", "number": 2, "new": b"\x01damaged!", "old": tx.all("read_events", _second())[0][5]},
        ),
    )

    told = all_of(store)

    assert [event.body is None for event in told] == [False, True, False]


def _second() -> dict[str, Any]:
    return {"thread_id": "a", "after": 1, "most": 1}


@pytest.mark.parametrize("cursor", ["", "x", "12", "1-", "-1", "1-2-3", "0x1-2", "1-" + "9" * 40, "١-٢"])
def test_a_cursor_that_cannot_be_read_is_refused(store: Store, cursor: str) -> None:
    with pytest.raises(UnknownCursorError, match="is no place in the feed"):
        read_feed(store, cursor)


def test_a_cursor_of_another_database_is_refused(store: Store) -> None:
    run(app_over(store), "a")

    with pytest.raises(UnknownCursorError, match="comes from another database"):
        read_feed(store, f"{10**15}-{10**15}")


# ── Out of order ───────────────────────────────────────────────────────────────────────────────────────────────────


class Unfinished:
    """A transaction that has written its lines and commits only when it is told to."""

    def __init__(self, store: Store, pool: ThreadPoolExecutor, thread_id: str, *kinds: str) -> None:
        self._written, self._may_end = Event(), Event()

        def work(tx: Transaction) -> None:
            log(tx, store, thread_id, *kinds)
            tx.all("feed_end", {})  # sends what was written, to the server
            self._written.set()
            assert self._may_end.wait(30)

        self._future = pool.submit(store.database.write, "test", work)
        assert self._written.wait(30)

    def commit(self) -> None:
        self._may_end.set()
        self._future.result(30)


def test_what_commits_late_is_told_though_something_younger_was_seen_before(postgres: Store) -> None:
    app = app_over(postgres)
    run(app, "slow")
    run(app, "fast")
    now = latest_cursor(postgres)

    with ThreadPoolExecutor(2) as pool:
        slow = Unfinished(postgres, pool, "slow", "wait.extended")
        write(postgres, "fast", "wait.reminded")
        while_it_is_open = read_feed(postgres, now)
        slow.commit()
    told = all_of(postgres, while_it_is_open.cursor)

    assert while_it_is_open.events == [], "the younger one must wait: behind it the older one would never be told"
    assert [event.kind for event in told] == ["wait.extended", "wait.reminded"]


def test_what_is_taken_back_holds_nobody_up_for_good(postgres: Store) -> None:
    app = app_over(postgres)
    run(app, "a")
    now = latest_cursor(postgres)

    def fail(tx: Transaction) -> None:
        log(tx, postgres, "a", "wait.extended")
        tx.all("feed_end", {})
        raise Never

    with pytest.raises(Never):
        postgres.database.write("test", fail)
    write(postgres, "a", "wait.reminded")

    assert [event.kind for event in all_of(postgres, now)] == ["wait.reminded"]


def test_younger_transactions_that_take_earlier_positions_are_told_behind_older_ones(postgres: Store) -> None:
    """Positions are given when a line is written, transactions are counted when they first write: both orders occur."""
    app = app_over(postgres)
    for name in ("older", "younger"):
        run(app, name)
    now = latest_cursor(postgres)

    def work(tx: Transaction) -> None:
        log(tx, postgres, "older")  # counts as begun from here on
        tx.run("count_events", {"thread_id": "older", "added": 0})
        with ThreadPoolExecutor(1) as pool:
            pool.submit(write, postgres, "younger", "wait.extended").result(30)
        log(tx, postgres, "older", "wait.reminded")

    postgres.database.write("test", work)

    told = all_of(postgres, now)
    assert [event.thread_id for event in told] == ["older", "younger"]
    positions = [int(event.cursor.partition("-")[2]) for event in told]
    assert positions == sorted(positions, reverse=True)


class Never(Exception):
    """Takes a transaction back."""


class Crowd:
    """Some who write at once, now and then in vain, and some who read meanwhile."""

    names = ("t0", "t1", "t2", "t3")

    def __init__(self, store: Store) -> None:
        self.store = store
        self.is_over = Event()
        for name in self.names:
            run(app_over(store), name)
        self.begin = latest_cursor(store)

    def keep_writing(self, seed: int) -> int:
        """Write lines; return how many of them everybody must be told."""
        chance = random.Random(seed)
        return sum(self._write_some(chance) for _ in range(40))

    def _write_some(self, chance: random.Random) -> int:
        kinds = ["wait.extended"] * chance.randint(1, 3) + ["told.x"] * chance.randint(0, 1)
        name, fails = chance.choice(self.names), chance.random() < 0.2

        def work(tx: Transaction) -> None:
            log(tx, self.store, name, *kinds)
            if fails:
                tx.all("feed_end", {})
                raise Never

        try:
            self.store.database.write("test", work)
        except Never:
            return 0
        return kinds.count("wait.extended")

    def keep_reading(self, most: int) -> list[FeedEvent]:
        """Read until nobody writes any more."""
        told: list[FeedEvent] = []
        cursor, was_over = self.begin, False
        while True:
            page: Feed = read_feed(self.store, cursor, most)
            told, cursor = told + page.events, page.cursor
            if was_over and not page.is_more:
                return told
            was_over = self.is_over.is_set()


@pytest.mark.parametrize("seed", range(3))
def test_many_who_write_at_once_lose_nothing_and_tell_nothing_twice(store: Store, seed: int) -> None:
    crowd = Crowd(store)

    with ThreadPoolExecutor(6) as pool:
        readers = [pool.submit(crowd.keep_reading, most) for most in (1, 7)]
        writers = [pool.submit(crowd.keep_writing, seed * 100 + number) for number in range(4)]
        written = sum(writer.result(120) for writer in writers)
        crowd.is_over.set()
        first, second = (reader.result(120) for reader in readers)

    assert len(set(places(first))) == len(first) == written
    assert places(first) == places(second), "everybody is told in the same order"
    if isinstance(store.database, SqliteDatabase):
        assert [event.number for event in first if event.thread_id == "t0"] == sorted(
            event.number for event in first if event.thread_id == "t0"
        )


# ── After a dump was restored ──────────────────────────────────────────────────────────────────────────────────────


def test_a_dump_restored_on_a_server_that_has_counted_less_loses_nothing(postgres: Store, postgres_url: str) -> None:
    app = app_over(postgres)
    run(app, "told")
    bookmark(postgres, "reader")
    run(app, "untold")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        # As if the server that wrote all this had been a billion transactions ahead of this one.
        connection.execute(f'UPDATE "{SCHEMA}".events SET tx = tx + 1000000000')
        connection.execute(
            f"UPDATE \"{SCHEMA}\".bookmarks SET position = (split_part(position, '-', 1)::bigint + 1000000000) || '-' "
            "|| split_part(position, '-', 2)"
        )
    run(app, "since")

    was_mended, is_mended_again = mend_feed(postgres), mend_feed(postgres)
    told = all_of(postgres, bookmark(postgres, "reader"))

    assert was_mended
    assert not is_mended_again
    assert [thread_id for thread_id, _ in places(told)] == ["untold"] * 3 + ["since"] * 3


def test_a_feed_that_is_whole_is_left_alone(store: Store) -> None:
    run(app_over(store), "a")
    before = all_of(store)
    place = bookmark(store, "reader")

    assert not mend_feed(store)

    assert all_of(store) == before
    assert post(store, "reader", place, place, [Message("m", "", None, "k", "to", "url", "{}")])
