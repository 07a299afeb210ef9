"""A store with encryption: what is on disk, what is refused, how keys are changed and old stores encrypted."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bide import Command, Store
from bide.errors import CorruptDataError, EncryptionError, UnknownKeyError, UnknownTypeError
from bide.store.encryption import Encryption
from bide.store.seal import Checksums
from tests.attacks.corpus import PICKLES
from tests.attacks.frames import ext, frame, packed
from tests.attacks.world import (
    COLUMNS,
    Place,
    State,
    attacker,
    bodies_in,
    build,
    graph_on,
    places_in,
    questions,
    readers,
    shown,
)
from tests.threads import one_node, thread

OLD, NEW = bytes(range(32)), bytes(range(100, 132))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "bide.db"


def opened(path: Path, encryption: Encryption | None = None) -> Store:
    return Store.open(f"sqlite:///{path}", encryption=encryption)


def one_of(path: Path, table: str, column: str, thread_id: str | None = "waiting") -> Place:
    """The last body of a column, for a thread."""
    return [
        place
        for place in bodies_in(path)
        if (place.table, place.column) == (table, column) and place.thread_id in (None, thread_id)
    ][-1]


def changed(path: Path, place: Place, stored: Any) -> None:
    with closing(attacker(path)) as database:
        place.write(database, stored)


# --- what is on disk --------------------------------------------------------------------------------------------------


def test_nothing_that_was_said_is_readable_in_the_file(path):
    build(path, encryption=Encryption({"2026-a": OLD}))

    on_disk = b"".join(file.read_bytes() for file in path.parent.iterdir())
    secrets = (b"a letter of more", b"a book, a book", b"Who signs?", b"Ada", b"READY", b"green", b"begun")
    assert [secret for secret in secrets if secret in on_disk] == []


def test_the_text_of_an_error_is_not_readable_in_the_file(path):
    def fail(state: dict[str, Any]) -> None:
        raise ValueError(f"cannot deliver to {state['said']}")

    with opened(path, Encryption({"2026-a": OLD})) as store:
        with pytest.raises(ValueError, match="Lindenallee"):
            one_node(State, fail, checkpointer=store).invoke({"said": ["Lindenallee 7"]}, thread("t"))
        told = [event.kind for event in store.events("t")]

    assert told[-1] == "run.failed"
    assert not any(b"Lindenallee" in file.read_bytes() for file in path.parent.iterdir())


def test_every_body_of_an_encrypted_store_is_encrypted(path):
    build(path, encryption=Encryption({"2026-a": OLD}))

    kinds = {place.stored.removeprefix(b"\x03")[0] for place in bodies_in(path)}
    assert kinds == {2}
    assert {(place.table, place.column) for place in bodies_in(path)} == set(COLUMNS)


# --- what is refused --------------------------------------------------------------------------------------------------

THREADS_OWN = [
    ("checkpoints", "body"),
    ("channel_log", "body"),
    ("journal", "body"),
    ("waits", "question"),
    ("waits", "answer"),
]


@pytest.mark.parametrize(("table", "column"), THREADS_OWN)
def test_a_plain_row_in_an_encrypted_store_is_refused(path, table, column):
    """No number: peers took a row without encryption for a row of theirs."""
    # Given an encrypted store,
    encryption = Encryption({"2026-a": OLD})
    build(path, encryption=encryption)
    place = one_of(path, table, column)
    where = places_in(path, encryption)["get_state"][place.stored]

    # when the same body lies in the same place, with a checksum that fits,
    changed(path, place, Checksums().close(where, encryption.open(where, place.stored)))

    # then it is refused for being plain.
    with opened(path, encryption) as store, pytest.raises(CorruptDataError, match="is not encrypted"):
        graph_on(store).get_state(thread("waiting"))


@pytest.mark.parametrize(("table", "column"), THREADS_OWN)
def test_rows_of_an_encrypted_store_cannot_be_swapped(path, table, column):
    """No number: peers decrypted a row wherever it was put."""
    encryption = Encryption({"2026-a": OLD})
    build(path, encryption=encryption)
    theirs = one_of(path, table, column, "done" if column == "answer" else "other")
    changed(path, one_of(path, table, column), theirs.stored)

    with opened(path, encryption) as store, pytest.raises(CorruptDataError, match="copied here from another row"):
        graph_on(store).get_state(thread("waiting"))


def test_a_whole_row_of_another_thread_does_not_open_under_this_one(path):
    encryption = Encryption({"2026-a": OLD})
    build(path, encryption=encryption)
    with closing(attacker(path)) as database:
        database.execute("DELETE FROM checkpoints WHERE thread_id = 'waiting'")
        database.execute("UPDATE checkpoints SET thread_id = 'waiting' WHERE thread_id = 'other'")
        database.commit()

    with opened(path, encryption) as store, pytest.raises(CorruptDataError, match="copied here from another row"):
        graph_on(store).get_state(thread("waiting"))


def test_a_pickle_in_the_cache_is_never_read(path):
    """CVE-2026-27794: cached results fell back to pickle."""
    build(path)
    place = one_of(path, "cache", "body")
    for payload in PICKLES.values():
        changed(path, place, payload)
        with opened(path) as store, pytest.raises(CorruptDataError, match="cache/"):
            graph_on(store).invoke({"note": "begun"}, thread("new"))
        with opened(path) as store:
            store.delete_thread("new")


def test_a_row_that_names_a_function_is_an_error(path):
    """CVE-2026-28277: an extension type named what to import and to call."""
    build(path)
    place = one_of(path, "items", "body")
    where = places_in(path, Checksums())["items.get"][place.stored]
    changed(path, place, Checksums().close(where, frame(ext(4, packed(["os.system", 1, {"command": "true"}])))))

    with opened(path) as store, pytest.raises(UnknownTypeError, match=r"'os\.system' is not registered"):
        store.items.get(("mine", "too"), "one")


# --- keys -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def encrypted(path: Path) -> Path:
    build(path, encryption=Encryption({"2026-a": OLD}))
    return path


def test_a_store_without_its_key_says_which_key_it_wants(encrypted):
    with opened(encrypted, Encryption({"2026-b": NEW})) as store, pytest.raises(UnknownKeyError) as refusal:
        graph_on(store).get_state(thread("waiting"))

    assert "'2026-a'" in str(refusal.value)
    assert refusal.value.key_id == "2026-a"


def test_a_store_that_is_opened_without_encryption_says_that_it_is_encrypted(encrypted):
    with pytest.raises(EncryptionError, match=r"encrypted.*encryption=Encryption"):
        opened(encrypted)


def test_a_thread_goes_on_under_a_new_key(encrypted):
    both = Encryption({"2026-a": OLD, "2026-b": NEW}, current="2026-b")

    with opened(encrypted, both) as store:
        graph = graph_on(store)
        graph.invoke(Command(resume=dict.fromkeys(questions(graph, "waiting").values(), "Bob")), thread("waiting"))
        values = graph.get_state(thread("waiting")).values

    assert values["signed"] == ["READY", "Bob"]
    newest = one_of(encrypted, "checkpoints", "body")
    assert both.is_current(newest.stored)


def test_a_store_that_was_plain_is_encrypted_row_by_row(path):
    # Given a store without encryption,
    build(path)
    with opened(path) as store:
        before = shown(graph_on(store).get_state(thread("waiting")))

    # when it is opened with encryption that is not required yet,
    moving = Encryption({"2026-a": OLD}, required=False)
    with opened(path, moving) as store:
        graph = graph_on(store)
        assert shown(graph.get_state(thread("waiting"))) == before
        graph.invoke({"note": "begun"}, thread("new"))

    # then old rows are read, and new ones are encrypted.
    kinds = {place.stored.removeprefix(b"\x03")[0] for place in bodies_in(path) if place.thread_id == "new"}
    assert kinds == {2}
    with opened(path, Encryption({"2026-a": OLD})) as store, pytest.raises(CorruptDataError, match="not encrypted"):
        graph_on(store).get_state(thread("waiting"))


def test_after_resealing_the_old_key_is_not_needed_and_every_reader_sees_what_was_there(encrypted):
    # Given what everybody sees under the old key,
    with opened(encrypted, Encryption({"2026-a": OLD})) as store:
        before = {name: read() for name, read in readers(store, graph_on(store), "waiting").items()}

    # when all is sealed anew,
    both = Encryption({"2026-a": OLD, "2026-b": NEW}, current="2026-b")
    with opened(encrypted, both) as store:
        assert store.reseal() > 0
        assert store.reseal() == 0

    # then the new key is enough.
    with opened(encrypted, Encryption({"2026-b": NEW})) as store:
        assert {name: read() for name, read in readers(store, graph_on(store), "waiting").items()} == before
    assert all(both.is_current(place.stored) for place in bodies_in(encrypted))


def test_after_resealing_a_store_that_was_plain_encryption_is_required(path):
    build(path)
    with opened(path) as store:
        before = {name: read() for name, read in readers(store, graph_on(store), "waiting").items()}

    with opened(path, Encryption({"2026-a": OLD}, required=False)) as store:
        store.reseal()

    with opened(path, Encryption({"2026-a": OLD})) as store:
        assert {name: read() for name, read in readers(store, graph_on(store), "waiting").items()} == before


def test_no_key_is_in_the_database(encrypted):
    with closing(sqlite3.connect(encrypted)) as database:
        dump = "\n".join(database.iterdump()).encode("utf-8", "surrogateescape")

    assert not any(shape in dump for shape in (OLD, OLD.hex().encode(), OLD.hex().upper().encode()))
