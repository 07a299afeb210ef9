"""A copy of a store that is in use: whole or not there at all, and a store of its own."""

from __future__ import annotations

import os
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event

import pytest

import bide.store.backup
from bide import Store
from bide.errors import StoreError, StoreFormatError, StoreUnavailableError
from bide.store.backup import back_up
from tests.store.conftest import Kept
from tests.threads import thread

PATIENCE_SECONDS = 30
ROOT = Path(__file__).parents[2]


@pytest.fixture
def copy(path: Path) -> Path:
    """Where the copy of this test will be."""
    return path.with_name("copy.db")


@pytest.fixture
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copy a few pages at a time, so that a small database has a middle."""
    monkeypatch.setattr(bide.store.backup, "PAGES_AT_ONCE", 2)


@pytest.fixture
def store(kept: Kept) -> Iterator[Store]:
    with Store.open(kept.url) as store:
        yield store


def files(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir() if not file.name.startswith("bide.db"))


# ── What is in it ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_copy_is_a_store_of_its_own_with_every_thread(store, kept, copy):
    assert back_up(store.database, copy) == copy

    Kept(copy).check()
    kept.check()


def test_copy_of_a_store_in_memory_is_a_store_in_a_file(copy):
    with Store.open(":memory:") as store:
        Kept.graph(store).invoke({"text": "Dear reader"}, thread("t"))
        back_up(store.database, copy)

    with Store.open(f"sqlite:///{copy}") as copied:
        assert Kept.graph(copied).get_state(thread("t")).values == {"text": "DEAR READER"}


def test_copy_has_what_was_acknowledged_before_and_nothing_half(store, copy, small_steps):
    """While it is made, somebody writes more than the whole store held before."""
    graph = Kept.graph(store)
    seen: list[tuple[int, int]] = []

    def write_beside(done: int, total: int) -> None:
        seen.append((done, total))
        graph.invoke({"text": Kept.text * 10}, thread(f"beside {done}"))

    back_up(store.database, copy, progress=write_beside)

    totals = {total for _, total in seen}
    assert [done for done, _ in seen] == [*range(2, max(totals), 2), max(totals)], "it began anew"
    assert len(totals) == 1
    assert len(store.threads()) == 2 + len(seen)
    with Store.open(f"sqlite:///{copy}") as copied:
        assert sorted(row.thread_id for row in copied.threads()) == ["finished", "waiting"]
    Kept(copy).check()


def test_writers_go_on_while_a_copy_is_made(store, copy, small_steps):
    """One who writes is not made to wait for the end of the copy: here the copy waits for the one who writes."""
    has_begun, has_written = Event(), Event()

    def wait_for_the_writer(done: int, total: int) -> None:
        has_begun.set()
        assert has_written.wait(PATIENCE_SECONDS)

    with ThreadPoolExecutor(1) as pool:
        copying = pool.submit(back_up, store.database, copy, progress=wait_for_the_writer)
        assert has_begun.wait(PATIENCE_SECONDS)
        with Store.open(f"sqlite:///{store.database.path}") as another:
            Kept.graph(another).invoke({"text": "beside"}, thread("beside"))
        has_written.set()

    assert copying.result() == copy
    assert "beside" in [row.thread_id for row in store.threads()]


# ── Its name ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_file_that_is_there_is_not_overwritten_unless_asked(store, copy):
    copy.write_text("precious")

    with pytest.raises(StoreUnavailableError, match=r"exists already.*overwrite=True"):
        back_up(store.database, copy)
    assert copy.read_text() == "precious"

    back_up(store.database, copy, overwrite=True)
    Kept(copy).check()


def test_file_that_appears_meanwhile_is_not_overwritten(store, copy, small_steps):
    def take_the_name(done: int, total: int) -> None:
        copy.write_text("precious")

    with pytest.raises(StoreUnavailableError, match="exists already"):
        back_up(store.database, copy, progress=take_the_name)

    assert copy.read_text() == "precious"
    assert files(copy.parent) == ["copy.db"]


def test_copy_onto_itself_is_refused_even_if_asked_for(store, path, kept):
    link = path.with_name("link.db")
    link.symlink_to(path)

    for target in (path, link, Path(f"{path}-wal"), Path(f"{path}-lock")):
        with pytest.raises(StoreUnavailableError, match="onto itself"):
            back_up(store.database, target, overwrite=True)

    kept.check()


@pytest.mark.parametrize("ending", ["-wal", "-journal"])
def test_name_with_the_log_of_another_database_is_refused(store, copy, ending):
    """SQLite would take what is in that log for a part of the copy."""
    copy.with_name(copy.name + ending).write_bytes(b"left over")

    with pytest.raises(StoreUnavailableError, match=r"in use, or was not closed"):
        back_up(store.database, copy, overwrite=True)

    assert files(copy.parent) == [copy.name + ending]


def test_store_that_somebody_has_open_is_not_overwritten(store, copy):
    with Store.open(f"sqlite:///{copy}") as other:
        Kept.graph(other).invoke({"text": "mine"}, thread("mine"))

        with pytest.raises(StoreUnavailableError, match="in use"):
            back_up(store.database, copy, overwrite=True)

        assert [row.thread_id for row in other.threads()] == ["mine"]


@pytest.mark.parametrize(("name", "match"), [("missing/copy.db", "no folder"), (".", "is a folder")])
def test_place_where_no_file_can_be_is_named(store, path, name, match):
    with pytest.raises(StoreUnavailableError, match=match):
        back_up(store.database, path.parent / name)


def test_copy_is_as_secret_as_the_store(store, path, copy):
    path.chmod(0o600)

    back_up(store.database, copy)

    assert stat.S_IMODE(copy.stat().st_mode) == 0o600


# ── What goes wrong ────────────────────────────────────────────────────────────────────────────────────────────────


def test_caller_who_gives_up_leaves_nothing_behind(store, copy, kept, small_steps):
    def give_up(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        back_up(store.database, copy, progress=give_up)

    assert files(copy.parent) == []
    kept.check()


def test_damaged_store_gets_no_backup_that_looks_sound(kept, path, copy):
    sound = path.read_bytes()
    page = int.from_bytes(sound[16:18])
    path.write_bytes(sound[: -3 * page] + b"\xff" * (3 * page))

    with Store.open(kept.url) as store, pytest.raises(StoreFormatError, match=r"damaged.*Keep the backups"):
        back_up(store.database, copy)

    assert files(copy.parent) == []


def test_disk_without_room_is_named_before_anything_is_written(store, copy, monkeypatch):
    monkeypatch.setattr(bide.store.backup.shutil, "disk_usage", lambda folder: (1000, 900, 100))

    with pytest.raises(StoreUnavailableError, match=r"needs [\d,]+ bytes.* has 100 left. Nothing was written"):
        back_up(store.database, copy)

    assert files(copy.parent) == []


def test_other_databases_are_sent_to_their_own_tools(copy):
    class Postgres:
        path = "postgresql://localhost/bide"

    with pytest.raises(StoreError, match="pg_dump"):
        back_up(Postgres(), copy)  # type: ignore[arg-type]


KILLED = """
import sys
import bide.store.backup
from bide import Store
bide.store.backup.PAGES_AT_ONCE = 2
with Store.open(sys.argv[1]) as store:
    bide.store.backup.back_up(store.database, sys.argv[2], overwrite=True)
"""


def killed_at(point: str, kept: Kept, copy: Path) -> int:
    return subprocess.run(
        [sys.executable, "-c", KILLED, kept.url, str(copy)],
        env={**os.environ, "BIDE_FAILPOINT": point, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        cwd=ROOT,
        check=False,
    ).returncode


@pytest.mark.slow
@pytest.mark.parametrize("point", ["backup:copying@1", "backup:copying@5", "backup:checked", "backup:named"])
@pytest.mark.parametrize("before", ["nothing", "an older copy"])
def test_backup_that_is_killed_leaves_a_whole_copy_or_what_was_there(kept, copy, point, before):
    if before == "an older copy":
        with Store.open(kept.url) as store:
            back_up(store.database, copy)
        kept.finish("newer")

    assert killed_at(point, kept, copy) == -signal.SIGKILL

    assert copy.exists() == (before == "an older copy" or point == "backup:named")
    if copy.exists():
        with closing(sqlite3.connect(copy)) as copied:
            assert copied.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        Kept(copy).check()
    with Store.open(kept.url) as store:
        back_up(store.database, copy, overwrite=True)
    assert not [name for name in files(copy.parent) if "partial" in name], "what was left behind is still there"
    Kept(copy).check()


def test_copy_that_another_is_making_is_not_taken_for_a_left_over_one(store, copy, small_steps):
    others = copy.parent / "copy.db.partial-0123"
    others.write_bytes(b"left behind by one who died")

    def make_another(done: int, total: int) -> None:
        if done == 2:
            back_up(store.database, copy)

    with pytest.raises(StoreUnavailableError, match="exists already"):
        back_up(store.database, copy, progress=make_another)

    assert files(copy.parent) == ["copy.db"]
    Kept(copy).check()
