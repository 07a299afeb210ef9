"""Retention beside everything else: runs that go on, others who tidy up, crashes, and the thread in the background."""

from __future__ import annotations

import logging
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import bide.store.upkeep
from bide import MemorySaver, Store
from bide.store.retention import Retention
from bide.store.upkeep import prune, tidy_up
from tests.store.histories import Life, check_nothing_is_left_over, inner_states, points_of
from tests.stores import KINDS, SCHEMA, opened_store

PATIENCE_SECONDS = 60
WORDS = ["add", "note", "add", "huge", "replace", "club", "add", "count", "team", "add", "remove"] * 3


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with opened_store(request, tmp_path) as opened:
        yield opened


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'bide.db'}"


# ── Beside runs ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_runs_go_on_as_if_nothing_had_gone_while_two_others_tidy_up(store, durability):
    names = [f"thread {number}" for number in range(3)]
    lives = [Life(store, name) for name in names]
    are_done = threading.Event()
    rounds: list[int] = []

    def tidy() -> None:
        while not are_done.is_set():
            store.prune(keep_last=1)
            rounds.append(1)

    def live(life: Life) -> Any:
        for _ in range(2):
            life.do(WORDS, durability=durability)
        life.finish()
        return life.end()

    with ThreadPoolExecutor(5) as pool:
        tidying = [pool.submit(tidy) for _ in range(2)]
        running = [pool.submit(live, life) for life in lives]
        try:
            ends = [run.result(PATIENCE_SECONDS) for run in running]
        finally:
            are_done.set()
        for tidied in tidying:
            tidied.result(PATIENCE_SECONDS)

    with MemorySaver() as memory:
        expected = live(Life(memory))
    assert ends == [expected] * 3
    assert len(rounds) > 2
    store.prune(keep_last=1)
    for name in names:
        check_nothing_is_left_over(store, name)
        assert [point.seq for point in points_of(store, name) if not point.ns and not point.pruned] == [
            max(point.seq for point in points_of(store, name) if not point.ns)
        ]


def test_thread_that_somebody_holds_is_passed_over_in_the_background(postgres_url: str):
    """SKIP LOCKED: of several processes that tidy up, none waits for another."""
    with Store.open(postgres_url, schema=SCHEMA) as store, Store.open(postgres_url, schema=SCHEMA) as other:
        for name in ("held", "free"):
            Life(store, name)
        other.retention = Retention(keep_last=1)

        def hold_and_prune(tx: Any) -> Any:
            tx.one("hold_thread", {"thread_id": "held"})
            return prune(other, is_patient=False)

        pruned = store.database.write("hold", hold_and_prune)
        left = {name: len([p for p in points_of(store, name) if not p.pruned]) for name in ("held", "free")}

        assert pruned.failed == ()
        assert left == {"held": 4, "free": 1}
        assert other.prune().checkpoints > 0


# ── Crashes ────────────────────────────────────────────────────────────────────────────────────────────────────────


class Crash(BaseException):
    """The process is gone."""


def test_crash_after_any_transaction_leaves_a_sound_thread_and_the_next_round_finishes(store, monkeypatch):
    monkeypatch.setattr("bide.store.pruning.BATCH", 4)
    crashes = 0
    while True:
        store.delete_thread("t")
        life = Life(store)
        life.do(["add", "huge", "club", "team", "ask", "add", "huge", "add", "club"])
        life.finish()
        shown, inside, end = life.shown(), inner_states(store), life.end()
        left = [crashes + 1]
        write = store.database.write

        def crashing(name: str, work: Any, left: list[int] = left, write: Any = write) -> Any:
            value = write(name, work)
            left[0] -= name == "prune"
            if left[0] == 0:
                raise Crash
            return value

        monkeypatch.setattr(store.database, "write", crashing)
        try:
            store.prune(keep_last=2)
            is_over = True
        except Crash:
            is_over = False
        monkeypatch.setattr(store.database, "write", write)

        assert life.shown() == {seq: shown[seq] for seq in life.shown()}
        assert inner_states(store) == {place: inside[place] for place in inner_states(store)}
        store.prune(keep_last=2)
        assert list(life.shown()) == sorted(shown)[:-3:-1]
        assert life.end() == end
        check_nothing_is_left_over(store)
        if is_over:
            break
        crashes += 1
    assert crashes > 5


PROGRAM = """
import sys
import bide.store.pruning
from bide import Store

bide.store.pruning.BATCH = 8
with Store.open(sys.argv[1]) as store:
    store.prune(keep_last=2)
"""
POINTS = [
    "prune:begun",
    "prune:hold_life",
    "prune:drop_checkpoints@2",
    "prune:hide_checkpoint",
    "prune:drop_logged@2",
    "prune:drop_blob_use",
    "prune:drop_blob",
    "prune:written",
    "prune:committed@1",
    "prune:committed@2",
]


@pytest.mark.parametrize("point", POINTS)
def test_process_that_is_killed_while_it_prunes_leaves_what_it_had_not_finished_to_the_next(url, tmp_path, point):
    with Store.open(url) as store:
        life = Life(store)
        life.do(["add", "huge", "huge", "add", "note", "add", "add", "huge", "add"])
        shown = life.shown()

    killed = subprocess.run(
        [sys.executable, "-c", PROGRAM, url], env={**os.environ, "BIDE_FAILPOINT": point}, timeout=PATIENCE_SECONDS
    )

    assert killed.returncode == -9, f"{point} was not passed"
    with Store.open(url) as store:
        life.store, life.graph = store, Life(store, "another").graph
        assert life.shown() == {seq: shown[seq] for seq in life.shown()}
        store.prune(keep_last=2)
        assert list(life.shown()) == sorted(shown)[:-3:-1]
        check_nothing_is_left_over(store)
    with closing(sqlite3.connect(tmp_path / "bide.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


# ── Room ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.complaint(36)
def test_file_stops_growing_when_as_much_goes_as_comes(url, tmp_path):
    with Store.open(url) as store:
        life = Life(store)
        sizes = []
        for _ in range(8):
            life.do(["huge", "add", "note", "big", "huge"] * 2)
            life.finish()
            store.prune(keep_last=3)
            sizes.append(os.path.getsize(tmp_path / "bide.db"))

    assert sizes[-1] <= sizes[2] * 1.2


@pytest.mark.complaint(40)
def test_store_in_memory_with_a_policy_stays_small_however_long_a_thread_goes_on():
    def pages(store: Store) -> int:
        total, free = (
            store.database.read(lambda tx, what=what: tx.connection.execute(f"PRAGMA {what}").fetchone()[0])
            for what in ("page_count", "freelist_count")
        )
        return int(total - free)

    with MemorySaver(retention=Retention(keep_last=2, every="1h")) as store:
        life = Life(store)
        used = []
        for _ in range(6):
            life.do(["huge", "count", "big", "note"] * 3)
            store.prune()
            used.append(pages(store))

    assert max(used) < used[0] + 10


# ── In the background ──────────────────────────────────────────────────────────────────────────────────────────────


def background_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "bide-retention"]


def test_store_that_was_opened_with_a_policy_tidies_up_by_itself_until_it_is_closed(url, monkeypatch, caplog):
    caplog.set_level(logging.INFO, "bide.store")
    life_has_grown, has_tidied = threading.Event(), threading.Event()

    def watched(store: Store, stopped: threading.Event) -> None:
        is_grown = life_has_grown.is_set()
        tidy_up(store, stopped)
        if is_grown:
            has_tidied.set()

    monkeypatch.setattr(bide.store.upkeep, "tidy_up", watched)
    with Store.open(url, retention=Retention(keep_last=2, every=0.001)) as store:
        life = Life(store)
        life.do(["add"] * 10)
        life_has_grown.set()
        assert has_tidied.wait(PATIENCE_SECONDS)
        left = life.shown()
        running = background_threads()

    assert len(left) == 2
    assert [thread.daemon for thread in running] == [True]
    running[0].join(PATIENCE_SECONDS)
    assert background_threads() == []
    assert any("Retention let go 0 threads" in record.getMessage() for record in caplog.records)


def test_store_that_was_opened_without_a_policy_has_no_thread_for_it(url):
    with Store.open(url):
        assert background_threads() == []


def test_store_that_nobody_has_any_more_is_not_kept_alive_by_its_thread():
    stopped = threading.Event()
    bide.store.upkeep._go_round(lambda: None, 0.0, stopped)

    assert not stopped.is_set()


def test_round_that_cannot_be_made_is_told_to_the_log_and_to_nobody_else(url, caplog):
    store = Store.open(url)
    store.retention = Retention(keep_last=1)
    store.close()

    tidy_up(store, threading.Event())
    tidy_up(store, store._stopped)

    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "tries again later" in caplog.text


def test_damaged_thread_is_told_to_the_log(url, tmp_path, caplog):
    with Store.open(url) as store:
        Life(store)
        store.database.write("damage", lambda tx: tx.connection.execute("UPDATE checkpoints SET step = 77"))
        store.retention = Retention(keep_last=1)

        tidy_up(store, threading.Event())

    assert "leaves thread 't' as it is" in caplog.text


def test_forked_child_does_not_tidy_up(url):
    with Store.open(url, retention=Retention(keep_last=1, every="1h")):
        child = os.fork()
        if child == 0:
            os._exit(7 if background_threads() == [] else 8)
        _, status = os.waitpid(child, 0)

        assert os.waitstatus_to_exitcode(status) == 7
        assert len(background_threads()) == 1
