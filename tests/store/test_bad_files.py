"""Files and places that cannot be a store: each is refused with a sentence that says what to do, and left as it was."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from bide import START, StateGraph, Store
from bide.errors import StoreError, StoreFormatError, StoreUnavailableError
from bide.store.gate import Gate
from bide.store.sqlite_header import APPLICATION_ID
from tests.store.conftest import Kept
from tests.threads import thread

NOBODY = 65534
ROOT = Path(__file__).parents[2]


def bytes_of(path: Path) -> dict[str, bytes]:
    """What lies beside and in a database, without the lock file that Bide may leave."""
    return {
        found.name: found.read_bytes()
        for found in sorted(path.parent.glob(f"{path.name}*"))
        if not found.name.endswith("-lock")
    }


def check_refused_untouched(path: Path, error: type[StoreError], match: str) -> None:
    before = bytes_of(path)
    with pytest.raises(error, match=match) as refusal:
        Store.open(f"sqlite:///{path}")
    assert str(path) in str(refusal.value)
    assert bytes_of(path) == before


# ── Not a database ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "content",
    [b"Dear diary,\n", b"x", bytes(4096), b"SQLite format 3\0", b"SQLite format 3\0" + bytes(range(256)) * 40],
    ids=["a text", "one byte", "zeros", "only the first words", "junk after the first words"],
)
def test_file_that_is_no_database_is_refused_and_left_as_it_was(path, content):
    path.write_bytes(content)

    check_refused_untouched(path, StoreFormatError, match="Choose another path")


@pytest.mark.parametrize("journal_mode", ["delete", "wal"])
def test_database_of_another_program_is_refused_and_left_as_it_was(path, journal_mode):
    with closing(sqlite3.connect(path)) as foreign:
        foreign.execute(f"PRAGMA journal_mode = {journal_mode}")
        foreign.execute("CREATE TABLE songs (title TEXT)")
        foreign.execute("INSERT INTO songs VALUES ('Greensleeves')")
        foreign.commit()

    check_refused_untouched(path, StoreFormatError, match=r"database of another program.*Choose another path")

    with closing(sqlite3.connect(path)) as foreign:
        assert foreign.execute("SELECT title FROM songs").fetchall() == [("Greensleeves",)]
        assert foreign.execute("PRAGMA journal_mode").fetchall() == [(journal_mode,)]


def test_database_of_another_program_stays_usable_while_that_program_has_it_open(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as foreign:
        foreign.execute("CREATE TABLE songs (title TEXT)")

        with pytest.raises(StoreFormatError):
            Store.open(f"sqlite:///{path}")

        foreign.execute("INSERT INTO songs VALUES ('Greensleeves')")
        assert foreign.execute("SELECT count(*) FROM songs").fetchall() == [(1,)]


def test_empty_file_becomes_a_store(path):
    path.touch()

    Store.open(f"sqlite:///{path}").close()

    Kept(path).write().check()


# ── Ours, but not as we left it ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("share", [0.999, 0.9, 0.5, 0.1, 0.01, 0.001])
def test_file_that_was_cut_short_is_refused_and_comes_back_with_its_backup(kept, path, share):
    backup = path.read_bytes()
    path.write_bytes(backup[: int(len(backup) * share)])

    check_refused_untouched(path, StoreFormatError, match="(backup|move that file away)")

    path.write_bytes(backup)
    kept.check()


def die_with_a_log(kept: Kept) -> Path:
    """Run one more thread in a process that is killed before it can close its store; return the log that it leaves."""
    program = "import sys; from pathlib import Path; from tests.store.conftest import Kept; "
    killed = subprocess.run(
        [sys.executable, "-c", program + "Kept(Path(sys.argv[1])).finish('more')", str(kept.path)],
        env={**os.environ, "BIDE_FAILPOINT": "leave:begun"},
        cwd=ROOT,
        check=False,
    )
    log = Path(f"{kept.path}-wal")
    assert killed.returncode == -signal.SIGKILL
    assert log.stat().st_size > 0
    return log


def test_log_with_a_half_written_end_holds_everything_that_was_acknowledged(kept):
    """A power cut in the middle of a write leaves such an end; what was committed before it is whole."""
    log = die_with_a_log(kept)

    with log.open("ab") as torn:
        torn.write(os.urandom(5000))

    with Store.open(kept.url) as store:
        assert kept.graph(store).get_state(thread("more")).values["signed_by"] == "Ada"
    kept.check()


@pytest.mark.parametrize("share", [0.5, 0.1])
def test_file_that_was_cut_short_beside_a_log_is_refused_before_anything_is_added_to_it(kept, path, share):
    """Pages that the file lacks may be in the log, after a crash in a checkpoint; here some are in neither."""
    die_with_a_log(kept)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])

    with pytest.raises(StoreFormatError, match="backup"):
        Store.open(kept.url)

    path.write_bytes(whole)
    kept.check()


def test_file_that_lacks_pages_which_its_log_has_is_whole(kept, path):
    """So it is after a crash in a checkpoint, which copies the first page first, with the new number of pages in it."""
    frames, size = die_with_a_log(kept).read_bytes(), int.from_bytes(path.read_bytes()[16:18])
    firsts = [at for at in range(32, len(frames), 24 + size) if frames[at : at + 4] == b"\0\0\0\1"]
    first = frames[firsts[-1] + 24 :][:size]
    with path.open("r+b") as file:
        file.write(first)

    assert int.from_bytes(first[28:32]) * size > path.stat().st_size
    with Store.open(kept.url) as store:
        assert kept.graph(store).get_state(thread("more")).values["signed_by"] == "Ada"
    kept.check()


def test_file_is_not_judged_while_another_process_is_in_the_middle_of_writing_it(kept, path):
    """Who closes a store copies its log into the file. Seen in the middle of that, a sound file looks cut short."""
    whole = path.read_bytes()
    with ThreadPoolExecutor(1) as pool:

        def let_another_open_it_half_written() -> Future[Store]:
            path.write_bytes(whole[: len(whole) // 2])
            opening = pool.submit(Store.open, kept.url)
            with pytest.raises(TimeoutError):
                opening.result(timeout=0.2)
            path.write_bytes(whole)
            return opening

        Gate(f"{path}-lock").inside(let_another_open_it_half_written).result().close()

    kept.check()


def test_database_of_a_newer_version_is_refused_and_left_as_it_was(kept, path):
    with closing(sqlite3.connect(path, isolation_level=None)) as future:
        future.execute("INSERT INTO migrations (version, name, applied_at) VALUES (999, 'from the future', 0)")

    check_refused_untouched(path, StoreFormatError, match=r"newer Bide \(schema 999.*Upgrade bide")

    with closing(sqlite3.connect(path, isolation_level=None)) as future:
        future.execute("DELETE FROM migrations WHERE version = 999")
    kept.check()


@pytest.mark.parametrize(
    "damage",
    ["DROP TABLE migrations", "DELETE FROM migrations", "UPDATE migrations SET version = 'one'"],
    ids=["no table of versions", "no version", "no number"],
)
def test_database_without_a_version_is_refused_and_left_as_it_was(kept, path, damage):
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute(damage)

    check_refused_untouched(path, StoreFormatError, match="backup")


def test_database_whose_table_is_gone_says_so_when_it_is_used(kept, path):
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("ALTER TABLE waits RENAME TO hidden")

    with Store.open(kept.url) as store, pytest.raises(StoreFormatError, match=r"no such table: waits.*backup"):
        store.open_waits()

    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("ALTER TABLE hidden RENAME TO waits")
    kept.check()


def test_page_that_was_overwritten_is_reported_as_damage_and_not_as_a_state(kept, path):
    backup = path.read_bytes()
    page = int.from_bytes(backup[16:18])
    path.write_bytes(backup[:page] + b"\xff" * (len(backup) - page))

    with pytest.raises(StoreFormatError, match="backup"), Store.open(kept.url) as store:
        kept.graph(store).get_state(thread("finished"))

    path.write_bytes(backup)
    kept.check()


def test_application_id_alone_does_not_make_a_store(path):
    with closing(sqlite3.connect(path)) as pretender:
        pretender.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        pretender.execute("CREATE TABLE songs (title TEXT)")
        pretender.commit()

    with pytest.raises(StoreFormatError, match="not a sound Bide database"):
        Store.open(f"sqlite:///{path}")


# ── Places ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_folder_that_does_not_exist_is_named_and_not_made(path):
    missing = path.parent / "missing" / "bide.db"

    with pytest.raises(StoreUnavailableError, match=r"There is no folder .*missing") as refusal:
        Store.open(f"sqlite:///{missing}")

    assert str(missing) in str(refusal.value)
    assert not missing.parent.exists()


@pytest.mark.parametrize("place", ["/proc/bide.db", "/sys/bide.db"])
def test_folder_that_nobody_can_write_to_is_named_even_to_root(place):
    with pytest.raises(StoreUnavailableError, match=r"writable.*choose another path") as refusal:
        Store.open(f"sqlite:///{place}")

    assert place in str(refusal.value)


def test_folder_in_place_of_a_file_is_refused(path):
    path.mkdir()

    with pytest.raises(StoreUnavailableError, match="choose another"):
        Store.open(f"sqlite:///{path}")


def test_file_in_place_of_a_folder_is_refused(path):
    path.write_text("I am a file")

    with pytest.raises(StoreUnavailableError, match="choose another"):
        Store.open(f"sqlite:///{path / 'bide.db'}")


@contextmanager
def ordinary_user() -> Iterator[None]:
    """Be somebody whom permissions stop: root becomes `nobody` for a while, others stay who they are."""
    if os.geteuid() != 0:
        yield
        return
    # The code itself may lie where that user cannot read: what is loaded when it is needed is loaded before.
    with Store.open(":memory:") as store:
        Kept.graph(store).invoke({"text": "warm"}, thread("warm"))
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def own_kept() -> Iterator[Kept]:
    """Threads in a folder that belongs to the ordinary user. pytest's own folders would be closed to that user."""
    with ordinary_user():
        folder = Path(tempfile.mkdtemp(prefix="bide-test-"))
        yield Kept(folder / "bide.db").write()
        folder.chmod(stat.S_IRWXU)
        shutil.rmtree(folder)


def test_read_only_folder_is_reported_and_loses_nothing(own_kept):
    with ordinary_user():
        own_kept.path.parent.chmod(0o555)

        with pytest.raises(StoreUnavailableError, match=r"writable.*permissions") as refusal:
            Store.open(own_kept.url)

        assert str(own_kept.path) in str(refusal.value)
        own_kept.path.parent.chmod(0o755)
        own_kept.check()


def test_read_only_file_is_refused_before_anything_is_made_beside_it(own_kept):
    """SQLite would give its log the same permissions, and then the file alone could not be made writable again."""
    with ordinary_user():
        own_kept.path.chmod(0o444)
        before = bytes_of(own_kept.path)

        with pytest.raises(StoreUnavailableError, match=r"writable.*permissions") as refusal:
            Store.open(own_kept.url)

        assert str(own_kept.path) in str(refusal.value)
        assert bytes_of(own_kept.path) == before
        own_kept.path.chmod(0o644)
        own_kept.check()


def test_file_that_may_not_be_read_is_reported_and_loses_nothing(own_kept):
    with ordinary_user():
        own_kept.path.chmod(0o000)

        with pytest.raises(StoreUnavailableError, match="permissions"):
            Store.open(own_kept.url)

        own_kept.path.chmod(0o644)
        own_kept.check()


def test_folder_that_becomes_read_only_while_a_store_is_open_loses_nothing(own_kept):
    with ordinary_user(), Store.open(own_kept.url) as store:
        graph = own_kept.graph(store)
        own_kept.path.parent.chmod(0o555)
        graph.invoke({"text": "late"}, thread("late"))
        own_kept.path.parent.chmod(0o755)

    with ordinary_user():
        with Store.open(own_kept.url) as store:
            assert own_kept.graph(store).get_state(thread("late")).values == {"text": "LATE"}
            store.delete_thread("late")
        own_kept.check()


# ── URLs ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "url",
    [
        "bide.db",
        "/var/lib/bide.db",
        "sqlite:bide.db",
        "sqlite:/bide.db",
        "sqlite://bide.db",
        "mysql://db/bide",
        "",
        "sqlite:///",
    ],
)
def test_url_that_is_none_is_refused_with_examples_of_good_ones(url, path, monkeypatch):
    monkeypatch.chdir(path.parent)

    with pytest.raises(StoreUnavailableError, match=r"sqlite:///bide\.db") as refusal:
        Store.open(url)

    assert repr(url) in str(refusal.value)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("given", [Path("bide.db"), None, 7])
def test_something_else_than_a_url_is_refused_with_examples_of_good_ones(given):
    with pytest.raises(StoreUnavailableError, match=r"sqlite:///bide\.db"):
        Store.open(given)


def test_bad_url_is_refused_by_compile_too(path):
    graph: Any = StateGraph({"x": int}).add_node("node", lambda state: None).add_edge(START, "node")

    with pytest.raises(StoreUnavailableError, match="no URL of a store"):
        graph.compile(checkpointer="bide.db")
