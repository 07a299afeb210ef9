"""Changing keys: what was sealed otherwise is sealed anew, beside whoever writes, and then the old key can go."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bide import Command, Encryption, Store
from bide.errors import CorruptDataError, UnknownKeyError
from bide.store.cache import StoredCache
from bide.store.database import queries, sql_text
from bide.store.notes import note_thread, noted_threads, run_notes
from bide.store.stored_rows import BESIDE_THREADS, BLOB_USES, BLOBS, CHECKPOINTS, NOTES, OF_A_THREAD, WAITS
from tests.store.inspected import LARGE, all_rows, change_body, execute, fill, paper_graph
from tests.store.waited import THREADS as WAITING
from tests.store.waited import fill_waits, world_of
from tests.stores import KINDS, SCHEMA
from tests.threads import thread

OLD, NEW = Encryption.generate_key(), Encryption.generate_key()
THREADS = ("done", "waiting", "counted", *WAITING)

PARENT = {"thread_id": "parent"}

Open = Callable[..., Store]


def old_key() -> Encryption:
    return Encryption({"old": OLD})


def both_keys() -> Encryption:
    return Encryption({"old": OLD, "new": NEW}, "new")


def new_key(**options: Any) -> Encryption:
    return Encryption({"new": NEW}, **options)


@pytest.fixture(params=[kind for kind in KINDS if kind != "memory"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Opens the same database again and again."""
    if request.param == "file":
        return lambda **options: Store.open(f"sqlite:///{tmp_path / 'bide.db'}", **options)
    url = request.getfixturevalue("postgres_url")
    return lambda **options: Store.open(url, schema=SCHEMA, **options)


def write(open_store: Open, encryption: Encryption | None) -> None:
    with open_store(encryption=encryption) as store:
        fill(store)
        fill_waits(store)
        store.items.put(("large",), "book", {"text": LARGE})
        StoredCache(store).put("graph", "key", b"result", None)
        values = [store.bodies.seal.close(f"saver_values/t//c/{number}", b"a value") for number in (1, 2)]
        for number, body in enumerate(values, 1):
            params = {"thread_id": "t", "ns": "", "channel": "c", "seq": number, "body": body}
            store.database.write("test", lambda tx, params=params: tx.run("saver_put_value", params))
        life = {"thread_id": "t", "life": "l", "now": 1}
        store.database.write("test", lambda tx: tx.run("saver_insert_thread", life))


def bodies_of(store: Store) -> list[bytes]:
    """Return every body as it is stored."""
    names = (*THREADS, *store.database.read(lambda tx: [row[0] for row in tx.all("list_children", PARENT)]))
    threads = [(table, row) for table in OF_A_THREAD for name in names for row in all_rows(store, table, name)]
    beside = [(table, row) for table in (*BESIDE_THREADS, BLOBS) for row in all_rows(store, table)]
    return [row[column] for table, row in (*threads, *beside) for column in table.places if row[column] is not None]


def check_everything_reads(store: Store) -> None:
    assert store.verify().is_sound, str(store.verify())
    graph = paper_graph(store)
    assert graph.get_state(thread("done")).values["text"] == LARGE
    assert len(list(graph.get_state_history(thread("done")))) == 5
    assert store.items.get(("users",), "ada").value == {"colour": "green"}
    assert StoredCache(store).get("graph", "key") == b"result"
    assert graph.invoke(Command(resume="Bob"), thread("waiting")).value["signed_by"] == "Bob"
    assert store.items.get(("large",), "book").value == {"text": LARGE}
    check_that_the_world_is_heard(store)


def check_that_the_world_is_heard(store: Store) -> None:
    """Waits, facts, starts and schedules are read as ever."""
    here = world_of(store)
    here.app.deliver("two", 2, external_id="mail-9")
    here.settle()
    assert here.app.get("both").values["answer"] == ["one", "two"]
    assert here.app.get("ready").status == "waiting"
    assert [schedule.name for schedule in here.app.schedules()] == ["daily"]
    here.app.wake(here.app.waits(thread_id="line")[0].id, "Ada")
    here.settle()
    assert here.app.get("line").values["given"] == LARGE
    assert store.verify().is_sound, str(store.verify())


def test_after_it_the_old_key_is_not_needed_any_more(open_store):
    write(open_store, old_key())
    with open_store(encryption=both_keys()) as store:
        count = store.reseal()
        stored = bodies_of(store)

    assert count == len(stored) - 2  # the blobs go along with those who speak of them
    with open_store(encryption=new_key()) as store:
        assert all(store.bodies.seal.is_current(body) for body in stored)
        check_everything_reads(store)


def test_what_clients_have_said_about_a_thread_is_sealed_anew_and_found_again(open_store):
    said = {"colour": "green", "text": LARGE}
    with open_store(encryption=old_key()) as store:
        here = world_of(store)
        here.app.start("asks", {"given": 1}, thread_id="noted", notes={"asked": LARGE})
        here.settle()
        note_thread(store, "", "noted", said)
        run_id = here.app.get("noted").run.run_id
    with open_store(encryption=both_keys()) as store:
        assert store.reseal() > 0
        assert store.reseal() == 0
        store.prune(keep_last=1)
        assert store.verify().is_sound, str(store.verify())

    with open_store(encryption=new_key()) as store:
        (found,) = noted_threads(store, "", ("colour", "green"))
        assert found.metadata == said
        assert run_notes(store, "noted", run_id)["asked"] == LARGE
        assert store.verify().is_sound, str(store.verify())


def test_every_column_that_holds_a_body_is_known_to_verify_and_reseal():
    columns = re.compile(r"^ +(\w+) +BYTEA", re.MULTILINE)
    tables = re.findall(r"^CREATE TABLE (\w+) \((.*?)^\)", sql_text("schema.sql"), re.MULTILINE | re.DOTALL)
    named = {("blobs", "hash"), ("blob_uses", "hash"), ("items", "namespace"), ("items", "key")}  # no bodies, but names
    held = {(name, column) for name, text in tables for column in columns.findall(text)}
    known = {
        (table.name, column) for table in (*OF_A_THREAD, *NOTES, *BESIDE_THREADS, BLOBS) for column in table.places
    }

    assert held - named == known


@pytest.mark.parametrize("table", [*OF_A_THREAD, *NOTES, *BESIDE_THREADS, BLOBS, BLOB_USES], ids=lambda one: one.name)
def test_queries_of_a_table_give_the_columns_that_it_is_described_with(table):
    for prefix in ("page", "references"):
        query = queries().get(f"{prefix}_{table.name}")
        assert query is not None or prefix == "references"
        if query is not None:
            listed = re.search(r"SELECT (.*?)\sFROM", query, re.DOTALL)[1]
            assert [name.strip().split(".")[-1] for name in listed.split(",")] == list(table.columns)


def test_without_it_the_old_key_is_needed(open_store):
    write(open_store, old_key())

    with open_store(encryption=new_key()) as store, pytest.raises(UnknownKeyError):
        paper_graph(store).get_state(thread("done"))


def test_store_that_was_plain_is_encrypted_and_no_plain_row_is_left(open_store):
    write(open_store, None)
    with open_store(encryption=new_key(required=False)) as store:
        hashes = {row["hash"] for row in all_rows(store, BLOBS)}
        assert store.reseal() > 0
        assert not any(body[:1] == b"\x01" or body[:2] == b"\x03\x01" for body in bodies_of(store))
        assert not hashes & {row["hash"] for row in all_rows(store, BLOBS)}  # a hash without a key tells what it is of

    with open_store(encryption=new_key(required=True)) as store:
        check_everything_reads(store)


def test_second_time_there_is_nothing_to_do(open_store):
    write(open_store, old_key())

    with open_store(encryption=both_keys()) as store:
        assert store.reseal() > 0
        stored = bodies_of(store)
        assert store.reseal() == 0
        assert bodies_of(store) == stored


def test_store_whose_key_is_current_is_left_alone(open_store):
    write(open_store, old_key())

    with open_store(encryption=old_key()) as store:
        stored = bodies_of(store)
        assert store.reseal() == 0
        assert bodies_of(store) == stored


def test_it_can_be_done_in_small_parts_and_from_the_beginning_again(open_store):
    write(open_store, old_key())
    counts = []
    while not counts or counts[-1]:
        with open_store(encryption=both_keys()) as store:
            counts.append(store.reseal(most=7))

    assert counts[:3] == [7, 7, 7]
    assert all(count <= 7 for count in counts)
    with open_store(encryption=new_key()) as store:
        check_everything_reads(store)


def test_blobs_of_the_old_key_are_gone_and_their_uses_are_noted_anew(open_store):
    write(open_store, old_key())
    with open_store(encryption=both_keys()) as store:
        before = {row["hash"] for row in all_rows(store, BLOBS)}
        store.reseal()

        after = {row["hash"] for row in all_rows(store, BLOBS)}
        uses = {row["hash"] for name in THREADS for row in all_rows(store, BLOB_USES, name)}

    assert len(before) == len(after) == 2
    assert not before & after
    assert after == uses


def test_row_that_somebody_changes_meanwhile_is_looked_at_again(open_store):
    write(open_store, old_key())
    with open_store(encryption=both_keys()) as store:
        write_now, answers = store.database.write, ["Bob"]

        def write_later(name: str, work: Any) -> Any:
            if name == "reseal" and answers:
                # Between the look at a page and its writing, somebody answers.
                paper_graph(store).invoke(Command(resume=answers.pop()), thread("waiting"))
            return write_now(name, work)

        store.database.write = write_later  # type: ignore[method-assign]
        store.reseal()
        store.database.write = write_now  # type: ignore[method-assign]

    with open_store(encryption=new_key()) as store:
        assert store.verify().is_sound, str(store.verify())
        assert paper_graph(store).get_state(thread("waiting")).values["signed_by"] == "Bob"
        (wait,) = all_rows(store, WAITS, "waiting")
        assert wait["status"] == "answered"


def test_row_that_cannot_be_read_is_left_and_told_and_the_rest_is_done(open_store):
    write(open_store, old_key())
    with open_store(encryption=both_keys()) as store:
        row = all_rows(store, CHECKPOINTS, "counted")[0]
        change_body(store, CHECKPOINTS, row, "body", row["body"][:-1] + b"?")
        with pytest.raises(CorruptDataError, match="1 body, which verify") as raised:
            store.reseal()

    assert "checkpoints/counted//1" in str(raised.value)
    with open_store(encryption=new_key()) as store:
        assert {problem.thread_id for problem in store.verify().problems} == {"counted"}
        assert paper_graph(store).get_state(thread("done")).values["text"] == LARGE


def test_key_that_is_lost_is_named_with_how_much_it_sealed_and_the_rest_is_done(open_store):
    write(open_store, old_key())
    lost = Encryption({"lost": Encryption.generate_key(), "old": OLD}, "lost")
    with open_store(encryption=lost) as store:
        store.items.put(("users",), "bob", {"colour": "red"})
        store.items.put(("users",), "cleo", {"colour": "blue"})

    with open_store(encryption=both_keys()) as store:
        with pytest.raises(UnknownKeyError, match=r"2 bodies of the key 'lost'.*Do not throw an older key") as raised:
            store.reseal()
        current = [store.bodies.seal.is_current(body) for body in bodies_of(store)]

    assert raised.value.key_id == "lost"
    assert current.count(False) == 2


def test_parts_pass_over_what_cannot_be_opened_and_the_last_one_tells(open_store):
    write(open_store, old_key())
    with open_store(encryption=Encryption({"lost": Encryption.generate_key(), "old": OLD}, "lost")) as store:
        for name in "abc":
            store.items.put(("a",), name, {"number": 1})

    with open_store(encryption=both_keys()) as store:
        with pytest.raises(UnknownKeyError, match="3 bodies of the key 'lost'"):
            [*iter(lambda: store.reseal(most=2), 0)]

        assert [store.bodies.seal.is_current(body) for body in bodies_of(store)].count(False) == 3


def test_plain_rows_are_not_taken_where_encryption_is_required(open_store):
    write(open_store, None)

    with open_store(encryption=new_key()) as store:
        with pytest.raises(CorruptDataError, match=r"reseal\(\) left.*required=False"):
            store.reseal()
        with pytest.raises(CorruptDataError, match="required=False"):
            paper_graph(store).get_state(thread("done"))


def test_rows_whose_thread_is_lost_are_sealed_anew_too(open_store):
    write(open_store, old_key())
    with open_store(encryption=both_keys()) as store:
        execute(store, "DELETE FROM threads WHERE thread_id = 'counted'")
        store.reseal()

        assert all(store.bodies.seal.is_current(row["body"]) for row in all_rows(store, CHECKPOINTS, "counted"))
