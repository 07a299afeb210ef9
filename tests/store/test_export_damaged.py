"""Files that are not what `export_thread` wrote: refused by name, and nothing of them is imported."""

from __future__ import annotations

import io
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ormsgpack import packb

from bide import Store
from bide.errors import ExportFormatError, StoreError
from bide.store.portable import MAGIC, VERSION, PortableReader, PortableWriter, Record
from bide.store.seal import Checksums
from bide.store.stored_rows import OF_A_THREAD
from tests.store.inspected import count_graph, fill
from tests.threads import thread

EMPTY = {table.name: 0 for table in OF_A_THREAD}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """An empty store that nothing must get into."""
    with Store.open(f"sqlite:///{tmp_path / 'bide.db'}") as opened:
        yield opened


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A small file: a thread that has counted to three."""
    path = tmp_path_factory.mktemp("exported") / "thread.bide"
    with Store.open(":memory:") as source:
        count_graph(source).invoke({"count": 0}, thread("counted"))
        source.export_thread("counted", path)
    return path.read_bytes()


def is_empty(store: Store) -> bool:
    counts = store.stats()
    return counts.threads == counts.runs == counts.checkpoints == counts.events == counts.blobs == 0


def refused(store: Store, path: Path, data: bytes) -> str:
    """Import bytes that must be refused; return how."""
    path.write_bytes(data)
    with pytest.raises(StoreError) as refusal:
        store.import_thread(path)
    return str(refusal.value)


def test_file_that_is_cut_off_anywhere_is_refused(store, exported, tmp_path):
    for length in range(len(exported)):
        (tmp_path / "cut").write_bytes(exported[:length])
        with pytest.raises(ExportFormatError, match="Nothing was imported"):
            store.import_thread(tmp_path / "cut")

    assert is_empty(store)


def test_file_with_one_changed_byte_anywhere_is_refused(store, exported, tmp_path):
    for position in range(len(exported)):
        damaged = bytearray(exported)
        damaged[position] ^= 1 << position % 8
        (tmp_path / "damaged").write_bytes(damaged)
        with pytest.raises(ExportFormatError, match="Nothing was imported"):
            store.import_thread(tmp_path / "damaged")

    assert is_empty(store)


def test_file_with_something_behind_its_end_is_refused(store, exported, tmp_path):
    assert "its end does not fit" in refused(store, tmp_path / "longer", exported + b"x")
    assert is_empty(store)


def test_the_file_itself_is_imported(store, exported, tmp_path):
    (tmp_path / "whole").write_bytes(exported)

    assert store.import_thread(tmp_path / "whole").thread_id == "counted"


@pytest.mark.parametrize("data", [b"", b"{}", b"SQLite format 3\x00", b"\x80\x04}q\x00.", MAGIC], ids=repr)
def test_other_files_are_refused(store, tmp_path, data):
    assert "does not begin as one does" in refused(store, tmp_path / "other", data)


def test_file_of_a_newer_version_says_to_upgrade(store, exported, tmp_path):
    newer = bytearray(exported)
    newer[len(MAGIC) : len(MAGIC) + 2] = (VERSION + 1).to_bytes(2)

    assert "Upgrade bide" in refused(store, tmp_path / "newer", bytes(newer))


def test_records_of_another_file_do_not_fit(store, exported, tmp_path):
    with Store.open(":memory:") as source:
        fill(source).export_thread("counted", tmp_path / "other")
    other = (tmp_path / "other").read_bytes()
    start = len(MAGIC) + 3 + 16
    mixed = exported[:start] + other[start:]

    assert "damaged" in refused(store, tmp_path / "mixed", mixed)


# ── Files that are whole, and lie ──────────────────────────────────────────────────────────────────────────────────


def records_of(data: bytes) -> list[Record]:
    return list(PortableReader(io.BytesIO(data), Checksums(), 1 << 24).records())


def forged(records: list[Record]) -> bytes:
    """Write a file as the store would, of records that it would not write."""
    file = io.BytesIO()
    writer = PortableWriter(file, Checksums())
    for what, values in records:
        writer.add(what, values)
    writer.finish()
    return file.getvalue()


Lie = Callable[[list[Record]], list[Record]]


def without(what: str) -> Lie:
    return lambda records: [record for record in records if record.what != what]


def changed(what: str, position: int, value: Any) -> Lie:
    """Change a value in all records of a kind."""

    def change(records: list[Record]) -> list[Record]:
        return [
            Record(what, [*values[:position], value, *values[position + 1 :]]) if kind == what else Record(kind, values)
            for kind, values in records
        ]

    return change


LIES: dict[str, Lie] = {
    "no thread": without("thread"),
    "no runs": without("runs"),
    "no checkpoints": without("checkpoints"),
    "no events": without("events"),
    "twice the same": lambda records: [*records, records[-1]],
    "two threads": lambda records: [records[0], *records],
    "an unknown table": lambda records: [*records, Record("workers", ["w", "h", 1, "", 9])],
    "a table of the database": lambda records: [*records, Record("sqlite_schema", ["a", "b"])],
    "too many values": lambda records: [*records, Record("runs", [1] * 50)],
    "a number for a text": changed("runs", 0, 7),
    "a text for a number": changed("runs", 2, "7"),
    "a huge number": changed("runs", 2, 2**64 - 1),
    "a text with a zero byte": changed("runs", 4, "a\0b"),
    "a text that is none": changed("runs", 4, "\ud800" * 2000),
    "an unknown status": changed("runs", 1, "sleeping"),
    "a run that waits for nothing": changed("runs", 1, "waiting"),
    "another epoch": changed("checkpoints", 6, 99),
    "no frame": changed("checkpoints", 9, b"\x00"),
    "a frame of code": changed("checkpoints", 9, b"\x80\x04cos\nsystem\n(S'true'\ntR."),
    "a count that is not true": changed("thread", 3, 99),
    "neither pruned nor not": changed("thread", 7, 2),
    "bodies of None": changed("events", 5, None),
}


@pytest.mark.parametrize("lie", LIES)
def test_file_that_is_whole_and_makes_no_sense_is_refused(store, exported, tmp_path, lie):
    records = LIES[lie](records_of(exported))

    assert refused(store, tmp_path / "lie", forged(records))

    assert is_empty(store)
    assert store.verify().is_sound


def test_question_with_the_id_of_another_thread_is_refused(store, tmp_path):
    with Store.open(":memory:") as source:
        fill(source).export_thread("waiting", tmp_path / "waiting")
    records = records_of((tmp_path / "waiting").read_bytes())

    told = refused(store, tmp_path / "lie", forged(changed("waits", 0, "0" * 32)(records)))

    assert "an id that is not its own" in told
    assert is_empty(store)


@pytest.mark.parametrize("head", [b"\xdd\xff\xff\xff\xff", b"\x91" * 300, packb([[]] * 60_000), b"\xc1", b""])
def test_head_that_is_a_bomb_is_refused_in_little_memory(store, tmp_path, head):
    file = io.BytesIO()
    writer = PortableWriter(file, Checksums())
    seal = Checksums()
    body = len(head).to_bytes(4) + head
    sealed = seal.close(f"export/{writer._id.hex()}/0", body)
    data = file.getvalue() + len(sealed).to_bytes(4) + sealed + bytes(32)
    tracemalloc.start()

    told = refused(store, tmp_path / "bomb", data)

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "damaged" in told
    assert peak < 16_000_000


def test_length_that_is_a_bomb_is_refused_before_it_is_read(store, exported, tmp_path):
    start = len(MAGIC) + 3 + 16
    data = exported[:start] + b"\xff\xff\xff\xff" + exported[start + 4 :]

    assert "cut off" in refused(store, tmp_path / "bomb", data)


def test_no_module_is_loaded_for_what_a_file_says(store, exported, tmp_path):
    seen: list[str] = []
    (tmp_path / "lie").write_bytes(forged(LIES["a frame of code"](records_of(exported))))
    with pytest.raises(StoreError):
        store.import_thread(tmp_path / "lie")  # once, so that our own modules are there
    is_watching = True

    def watch(event: str, args: Any) -> None:
        if is_watching and event in ("import", "exec", "compile", "os.system", "subprocess.Popen", "pickle.find_class"):
            seen.append(event)

    sys.addaudithook(watch)
    with pytest.raises(StoreError):
        store.import_thread(tmp_path / "lie")
    is_watching = False

    assert seen == []
