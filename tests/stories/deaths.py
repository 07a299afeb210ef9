"""The two worlds in which an order is driven until it dies: a file for each story, or a schema of one server."""

from __future__ import annotations

import json
import signal
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

import psycopg

from tests.stories.programs.child import Child, run_program
from tests.stories.programs.order import InFile, Place, drive
from tests.stories.programs.order_on_server import OnServer

ONCE = {"charge", "dispatch.post"}
WIPE = """
DO $$
DECLARE found record;
BEGIN
    FOR found IN SELECT tablename FROM pg_tables WHERE schemaname = ':schema' AND tablename <> 'migrations' LOOP
        EXECUTE format('DELETE FROM :schema.%I', found.tablename);
    END LOOP;
END $$
"""

Column = Callable[[str], list[Any]]
"""Runs a query, and returns its only column."""


class Story(NamedTuple):
    """What a run has left behind."""

    state: dict[str, Any]
    ledger: list[str]
    bookings: list[str]


class World:
    """Where orders live; each has a place of its own."""

    errors: tuple[type[Exception], ...]
    """What its database may complain with."""
    stride: int
    """Of how many points one is tried, where not all are."""

    def in_peace(self, folder: Path, durability: str = "sync") -> tuple[list[str], Story]:
        """Run without a death; return the points that were passed, in order, and what was left behind."""
        place = self.new_place(folder)
        assert self.run(place, durability, "") == 0, said_in(folder)
        return trace_of(folder), self.story_of(place)

    def with_a_death_at(self, point: str, folder: Path, durability: str) -> Story:
        """Run until death at this point, then go on until the end."""
        place = self.new_place(folder, is_made=not point.startswith("migrate:"))
        assert self.run(place, durability, point) == -signal.SIGKILL, f"did not die: {said_in(folder)}"
        assert trace_of(folder)[-1] == point
        return self.story_of(place, drive(place, durability))

    def story_of(self, place: Any, state: dict[str, Any] | None = None) -> Story:
        """Tell what is left of a story that has ended, and whether all of it is in order."""
        check_effects_happened_once(place.folder)
        with self.looking_at(place) as column:
            check_store_is_at_rest(column)
            bookings = column("SELECT what FROM bookings ORDER BY what")
        if state is None:
            state = json.loads((place.folder / "state.json").read_text(encoding="utf-8"))
        return Story(state, sorted(what for _, what in lines_of(place.folder / "ledger.txt")), bookings)

    def new_place(self, folder: Path, *, is_made: bool = False) -> Place:
        """Make the place of a story; `is_made` says that its tables may be there already."""
        raise NotImplementedError

    def run(self, place: Any, durability: str, point: str) -> int:
        """Let another process drive the order, until the end or until this point; return its exit code."""
        raise NotImplementedError

    @contextmanager
    def looking_at(self, place: Any) -> Iterator[Column]:
        """Look into the database of a place."""
        raise NotImplementedError


class InFiles(World):
    """Each story in a SQLite file, each process started anew."""

    errors = (sqlite3.Error,)
    stride = 5

    def new_place(self, folder: Path, *, is_made: bool = False) -> InFile:
        folder.mkdir()
        return InFile(folder)

    def run(self, place: InFile, durability: str, point: str) -> int:
        armed = {"BIDE_FAILPOINT": point, "BIDE_FAILPOINT_TRACE": str(place.folder / "trace.txt")}
        ended = run_program("order.py", place.folder, durability, **armed)
        (place.folder / "state.json").write_text(ended.stdout, encoding="utf-8")
        (place.folder / "said.txt").write_text(ended.stderr, encoding="utf-8")
        return ended.returncode

    @contextmanager
    def looking_at(self, place: InFile) -> Iterator[Column]:
        with closing(sqlite3.connect(place.folder / "bide.db")) as database:
            assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            yield lambda query: [value for (value,) in database.execute(query)]


class InSchemas(World):
    """Each story in a schema of one server, or in one that was emptied; each process is born in a nursery."""

    errors = (psycopg.Error,)
    stride = 23

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self.nursery = Child("nursery.py")
        self.server = psycopg.connect(dsn, autocommit=True)
        self.count = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.nursery.__exit__()
        for number in range(self.count + 1):
            self.server.execute(f"DROP SCHEMA IF EXISTS story_{number} CASCADE")
        self.server.close()

    def new_place(self, folder: Path, *, is_made: bool = False) -> OnServer:
        folder.mkdir()
        if not is_made:
            # To make the tables takes longer than a whole story: only who dies of that gets a schema to itself.
            self.count += 1
        schema = f"story_{0 if is_made else self.count}"
        self.server.execute(WIPE.replace(":schema", schema))
        return OnServer(folder, self.dsn, schema)

    def run(self, place: OnServer, durability: str, point: str) -> int:
        return int(self.nursery.ask(str(place.folder), place.dsn, place.schema, durability, point))

    @contextmanager
    def looking_at(self, place: OnServer) -> Iterator[Column]:
        with psycopg.connect(place.dsn, options=f"-c search_path={place.schema}") as database:
            yield lambda query: [value for (value,) in database.execute(query)]


def trace_of(folder: Path) -> list[str]:
    return (folder / "trace.txt").read_text(encoding="utf-8").splitlines()


def said_in(folder: Path) -> str:
    return (folder / "said.txt").read_text(encoding="utf-8")


def lines_of(path: Path) -> list[list[str]]:
    return [line.split() for line in path.read_text(encoding="utf-8").splitlines()]


def check_effects_happened_once(folder: Path) -> None:
    """One line per key and per effect; a call that was repeated came with its old key; `once` was never repeated."""
    ledger, calls = lines_of(folder / "ledger.txt"), lines_of(folder / "calls.txt")
    assert len({key for key, _ in ledger}) == len({what for _, what in ledger}) == len(ledger)
    assert {tuple(call) for call in calls} == {tuple(line) for line in ledger}
    counts = Counter(what for _, what in calls)
    assert {what: counts[what] for what in ONCE} == dict.fromkeys(ONCE, 1)


def check_store_is_at_rest(column: Column) -> None:
    """The thread has ended: nobody runs, nobody waits, and its history has no hole and no second head."""
    assert set(column("SELECT status FROM runs")) <= {"done", "cancelled"}
    assert column("SELECT status FROM runs ORDER BY created_at DESC LIMIT 1") == ["done"]
    assert column("SELECT count(*) FROM waits WHERE status = 'open' OR consumed = 0") == [0]
    assert column("SELECT count(*) FROM journal") == [0]
    written_at = column("SELECT created_at FROM checkpoints ORDER BY seq")
    assert written_at == sorted(written_at)
    assert column("SELECT count(*) FROM checkpoints WHERE parent >= seq") == [0]
    numbers = column("SELECT number FROM events ORDER BY number")
    assert numbers == list(range(1, len(numbers) + 1))
