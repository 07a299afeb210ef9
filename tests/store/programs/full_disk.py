"""A process whose disk is full at every possible moment.

    python full_disk.py KIND FOLDER WHAT LEDGER

KIND is how the disk is made small. WHAT is the story: each is told again and again, each time with room for one page
more, until it ends without the disk being full. LEDGER, on another disk, says what was acknowledged. At the end the
program prints how often the disk was full, and everything that was not as it should be.
"""

from __future__ import annotations

import json
import operator
import os
import shutil
import sqlite3
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, TypedDict

import bide.store.backup
from bide import START, Command, CompiledGraph, StateGraph, Store, interrupt, step
from bide.errors import StoreUnavailableError
from bide.store.backup import back_up
from bide.store.migrate import Migration, migrate
from tests.store.small_disk import Limit, SmallDisk, Tmpfs

THREADS = 3
LINE = "x" * 5000
MOST_PAGES = 400
STEPS = {"run": 5}
"""By how many pages the room grows from story to story; one, where it is not said."""


class Log(TypedDict):
    lines: Annotated[list[str], operator.add]


def book(connection: Any, thread: str, name: str) -> None:
    connection.execute("INSERT INTO bookings (thread, name) VALUES (?, ?)", (thread, name))


def build(store: Store, thread: str) -> CompiledGraph:
    """Two nodes that book in the store's own transaction, and a question between them."""

    def first(state: Log) -> dict[str, Any]:
        step(book, thread, "first", effect="tx")
        return {"lines": [LINE]}

    def second(state: Log) -> dict[str, Any]:
        answer = interrupt("Go on?")
        step(book, thread, "second", effect="tx")
        return {"lines": [answer]}

    return StateGraph(Log).add_sequence([first, second]).add_edge(START, "first").compile(checkpointer=store)


class Story:
    """One disk that is full, with a fresh folder on it."""

    def __init__(self, disk: SmallDisk, folder: Path, ledger: Path, pages: int) -> None:
        self.disk, self.pages = disk, pages
        self.folder = folder / f"room-{pages}"
        self.folder.mkdir()
        self.path = self.folder / "bide.db"
        self.url = f"sqlite:///{self.path}"
        self.ledger = ledger
        self.complaints: list[str] = []
        self.was_full = 0

    def expect(self, is_so: bool, what: str) -> None:
        if not is_so:
            self.complaints.append(f"with {self.pages} pages: {what}")

    def acknowledge(self, line: str) -> None:
        with self.ledger.open("a", encoding="utf-8") as ledger:
            ledger.write(f"{self.pages} {line}\n")
            ledger.flush()
            os.fsync(ledger.fileno())

    def acknowledged(self, kind: str) -> set[str]:
        lines = [line.split() for line in self.ledger.read_text().splitlines()] if self.ledger.exists() else []
        return {thread for pages, found, thread in lines if (int(pages), found) == (self.pages, kind)}

    def try_it(self, call: Callable[[], Any]) -> Any:
        """Call something that a full disk may stop, with an error that says so."""
        try:
            return call()
        except StoreUnavailableError as refusal:
            self.was_full += 1
            self.expect("disk" in str(refusal) or "space" in str(refusal), f"unclear: {refusal}")
            self.expect(str(self.folder) in str(refusal), f"no path: {refusal}")
            return None

    # ── The stories ────────────────────────────────────────────────────────────────────────────────────────────────

    def run(self) -> None:
        """The disk is full in the middle of runs."""
        with Store.open(self.url) as store, ThreadPoolExecutor(THREADS) as pool:
            store.database.write(
                "t", lambda tx: tx.connection.execute("CREATE TABLE bookings (thread TEXT, name TEXT)")
            )
            threads = [f"t{number}" for number in range(THREADS)]
            self.disk.fill(self.pages)
            list(pool.map(lambda thread: self.try_it(lambda: self.live(store, thread)), threads))
            self.check_acknowledged(store)
            self.disk.free()
            list(pool.map(lambda thread: self.live(store, thread), threads))
            self.check_acknowledged(store)
            self.expect(self.acknowledged("done") == set(threads), "not all have finished")
        self.check_file()

    def live(self, store: Store, thread: str) -> None:
        """Bring a thread from wherever it is to its end."""
        graph, config = build(store, thread), {"configurable": {"thread_id": thread}}
        if thread not in [row.thread_id for row in store.threads()]:
            graph.invoke({"lines": ["input"]}, config)
        elif not graph.get_state(config).interrupts and graph.get_state(config).next:
            graph.invoke(None, config)
        if graph.get_state(config).interrupts:
            self.acknowledge(f"paused {thread}")
            graph.invoke(Command(resume="yes"), config)
        self.expect(graph.get_state(config).values["lines"] == ["input", LINE, "yes"], f"{thread} has another end")
        self.acknowledge(f"done {thread}")

    def check_acknowledged(self, store: Store) -> None:
        """Also while the disk is full: reading needs no room."""
        for thread in self.acknowledged("paused"):
            lines = build(store, thread).get_state({"configurable": {"thread_id": thread}}).values.get("lines", [])
            self.expect(lines[:2] == ["input", LINE], f"{thread} was told that it is saved, and is not")
            if thread in self.acknowledged("done"):
                self.expect(lines[2:] == ["yes"], f"{thread} was told that it is done, and is not")

    def check_file(self) -> None:
        with closing(sqlite3.connect(self.path)) as database:
            self.expect(database.execute("PRAGMA integrity_check").fetchall() == [("ok",)], "damaged")
            booked = database.execute("SELECT thread, name FROM bookings ORDER BY 1, 2").fetchall()
        once = [(f"t{number}", name) for number in range(THREADS) for name in ("first", "second")]
        self.expect(booked == once, f"booked {booked}")

    def open(self) -> None:
        """The disk is full when a store is to be made."""
        self.disk.fill(self.pages)
        store = self.try_it(lambda: Store.open(self.url))
        if store is not None:
            store.close()
        self.disk.free()
        with Store.open(self.url) as store:
            store.database.write(
                "t", lambda tx: tx.connection.execute("CREATE TABLE bookings (thread TEXT, name TEXT)")
            )
            for number in range(THREADS):
                self.live(store, f"t{number}")
        self.check_file()

    def migrate(self) -> None:
        """The disk is full when a database is brought to a newer schema: all of it is done, or nothing."""
        script = (
            "CREATE TABLE more (x BLOB); INSERT INTO more VALUES (zeroblob(150000)); CREATE INDEX extra ON more (x);"
        )
        steps = [Migration(900, "more", script)]
        with Store.open(self.url) as store:
            self.disk.fill(self.pages)
            done = self.try_it(lambda: migrate(store.database, 0, steps))
            made = store.database.read(
                lambda tx: tx.connection.execute(
                    "SELECT count(*) FROM sqlite_master WHERE name IN ('more', 'extra')"
                ).fetchone()[0]
            )
            self.expect(made == (2 if done else 0), f"{made} of 2 things made, and it says {done}")
            self.disk.free()
            self.expect(migrate(store.database, 0, steps) == 900, "cannot be brought there afterwards")

    def fill_in_the_middle(self, done: int, total: int) -> None:
        if done == bide.store.backup.PAGES_AT_ONCE:
            self.disk.fill(self.pages, next(self.folder.glob("*.partial-*")))

    def backup(self) -> None:
        """The disk is full in the middle of a copy."""
        bide.store.backup.PAGES_AT_ONCE = 4
        copy = self.folder / "copy.db"
        with Store.open(self.url) as store:
            store.database.write(
                "t", lambda tx: tx.connection.execute("CREATE TABLE bookings (thread TEXT, name TEXT)")
            )
            for number in range(THREADS):
                self.live(store, f"t{number}")
            done = self.try_it(lambda: back_up(store.database, copy, progress=self.fill_in_the_middle))
            self.expect(copy.exists() == bool(done), "there is a copy, or there is none, and it says the contrary")
            self.expect(not list(self.folder.glob("*.partial-*")), "something is left behind")
            self.disk.free()
            self.check_acknowledged(store)
            back_up(store.database, copy, overwrite=True)
        self.path = copy
        self.check_file()


def main(kind: str, folder: Path, what: str, ledger: Path) -> None:
    disk: SmallDisk = {"tmpfs": Tmpfs, "limit": Limit}[kind](folder)
    times, complaints = 0, []
    for pages in range(0, MOST_PAGES, STEPS.get(what, 1)):
        story = Story(disk, folder, ledger, pages)
        getattr(story, what)()
        times += story.was_full
        complaints += story.complaints
        shutil.rmtree(story.folder)
        if not story.was_full:
            break
    print(json.dumps({"full": times, "enough": pages, "complaints": complaints}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4]))
