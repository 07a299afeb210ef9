"""A thread that waits for the world is exported with what it needs, and the world finds it where it is imported."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bide import Encryption, Store
from bide.errors import ExportFormatError, StoreError
from bide.store.portable import VERSION, PortableReader
from bide.store.seal import Checksums
from bide.store.stored_rows import CONDITIONS, DELIVERIES, RUNS, WAITS
from tests.runtime.world import StillClock
from tests.store.inspected import LARGE, all_rows, execute
from tests.store.test_export_damaged import forged, records_of
from tests.store.waited import THREADS, fill_waits, world_of
from tests.stores import KINDS, opened_store

KEYS = {"default": bytes(range(32))}


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: StillClock) -> Iterator[Store]:
    """The store that a thread comes from."""
    with opened_store(request, tmp_path, clock=clock) as opened:
        fill_waits(opened, clock)
        yield opened


@pytest.fixture
def other(tmp_path: Path, clock: StillClock) -> Iterator[Store]:
    """An empty store that a thread goes to, of another owner and with keys of its own."""
    with Store.open(
        f"sqlite:///{tmp_path / 'other.db'}", clock=clock, owner="acme", encryption=Encryption(KEYS)
    ) as opened:
        yield opened


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "thread.bide"


@pytest.mark.parametrize("name", THREADS)
def test_thread_is_the_same_in_another_store_and_beside_itself(store, other, file, name):
    store.export_thread(name, file)

    other.import_thread(file)
    store.import_thread(file, "copy")

    for found in (other, store):
        assert found.verify().is_sound, str(found.verify())
    kept = ("number", "kind", "due_at", "is_open", "delivery_id")
    for found, copy in ((other, name), (store, "copy")):
        assert [[row[part] for part in kept] for row in all_rows(found, CONDITIONS, copy)] == [
            [row[part] for part in kept] for row in in_order(store, name, found, copy)
        ]
    runs = [{**row, "owner": "acme", "input": None, "options": None} for row in all_rows(store, RUNS, name)]
    assert [{**row, "input": None, "options": None} for row in all_rows(other, RUNS, name)] == runs


def in_order(store: Store, name: str, found: Store, copy: str) -> list[dict[str, Any]]:
    """The conditions of a thread in the order of those of its copy: new ids of waits sort otherwise."""
    tasks = {row["wait_id"]: (row["task_id"], row["key"]) for row in all_rows(store, WAITS, name)}
    places = {(row["task_id"], row["key"]): row["wait_id"] for row in all_rows(found, WAITS, copy)}
    rows = all_rows(store, CONDITIONS, name)
    return sorted(rows, key=lambda row: (places[tasks[row["wait_id"]]], row["number"]))


def test_fact_finds_a_thread_where_it_was_imported_whoever_owns_it_there(store, other, file):
    store.export_thread("pays", file)
    other.import_thread(file)
    there = world_of(other, other.clock)

    there.app.deliver("paid", {"order": 8}, external_id="there")
    there.settle()

    assert there.app.get("pays").values["answer"] == {"order": 8}
    assert other.verify().is_sound, str(other.verify())
    assert world_of(store, store.clock).app.get("pays").status == "waiting"


def test_copy_beside_the_original_waits_for_the_same_and_each_fact_is_only_ones_own(store, file):
    store.export_thread("pays", file)
    store.import_thread(file, "copy")
    here = world_of(store, store.clock)

    here.app.deliver("paid", {"order": 8}, external_id="first")
    here.app.deliver("paid", {"order": 8}, external_id="second")
    here.settle()

    assert [here.app.get(name).status for name in ("pays", "copy")] == ["done", "done"]
    assert [row["wakes"] for row in all_rows(store, DELIVERIES)[-2:]] == [1, 1]
    assert store.verify().is_sound, str(store.verify())


def test_fact_that_came_between_export_and_import_was_not_passed_over(store, file):
    store.export_thread("both", file)
    here = world_of(store, store.clock)
    store.clock.pass_by(hours=1)
    here.app.deliver("two", 2, external_id="between")
    here.settle()
    store.clock.pass_by(hours=1)

    store.import_thread(file, "copy")

    assert here.app.get("both").status == "done"
    assert store.verify().is_sound, str(store.verify())


def test_question_that_is_snoozed_stays_so_in_the_inbox_of_whoever_has_it_then(store, other, file):
    here = world_of(store, store.clock)
    (asked,) = here.app.waits(thread_id="line")
    here.app.snooze(asked.id, "1h")
    (snoozed,) = here.app.waits(thread_id="line")
    store.export_thread("line", file)
    other.import_thread(file)
    there = world_of(other, other.clock)

    assert [wait.snoozed_until for wait in there.app.waits(owner="acme")] == [snoozed.snoozed_until]
    assert snoozed.snoozed_until is not None
    assert there.app.waits(owner="acme", snoozed=False) == []
    assert other.verify().is_sound, str(other.verify())


def test_what_a_queued_run_was_started_with_comes_along_and_is_run(store, other, file):
    store.export_thread("line", file)
    other.import_thread(file)
    there = world_of(other, other.clock)

    for answer in ("Ada", "Bob"):
        there.app.wake(there.app.waits(thread_id="line")[0].id, answer)
        there.settle()

    assert there.app.get("line").values["given"] == LARGE
    assert there.app.get("line").values["answer"] == "Bob"
    assert other.verify().is_sound, str(other.verify())


def test_child_keeps_whose_it_was_and_its_parent_hears_of_the_original_alone(store, file):
    here = world_of(store, store.clock)
    (name,) = here.app.children("parent")
    store.export_thread(name, file)
    store.import_thread(file, "copy")

    here.app.wake(here.app.waits(thread_id="copy")[0].id, "Ada")
    here.settle()
    assert here.app.get("parent").status == "waiting"
    here.app.wake(here.app.waits(thread_id=name)[0].id, "Bob")
    here.settle()

    assert set(here.app.children("parent")) == {name, "copy"}
    assert here.app.get("parent").values["answer"] == "done"
    assert store.verify().is_sound, str(store.verify())


def test_running_run_is_nobodys_where_it_is_imported_and_the_next_look_makes_it_ready(store, other, file):
    execute(store, "UPDATE runs SET status = 'running', worker_id = 'elsewhere' WHERE thread_id = 'ready'")
    store.export_thread("ready", file)
    other.import_thread(file)
    there = world_of(other, other.clock)

    there.settle()

    assert there.app.get("ready").status == "waiting"
    assert other.verify().is_sound, str(other.verify())


def test_lines_of_the_log_speak_of_the_questions_of_the_copy(store, file):
    store.export_thread("asks", file)
    store.import_thread(file, "copy")

    def told(name: str) -> list[bytes]:
        return [event.body for event in store.events(name) if event.kind == "wait.answered"]

    (old,), (new,) = all_rows(store, WAITS, "asks"), all_rows(store, WAITS, "copy")
    assert [old["wait_id"].encode() in body for body in told("asks")] == [True]
    assert [new["wait_id"].encode() in body for body in told("copy")] == [True]


def test_file_does_not_tell_who_owned_the_thread(other, file, tmp_path, clock):
    with Store.open(":memory:", clock=clock, owner="a-secret-owner") as source:
        fill_waits(source, clock)
        source.export_thread("both", file)

    assert b"a-secret-owner" not in file.read_bytes()


def test_file_of_the_version_before_is_refused_with_what_to_do(other, file, clock):
    with Store.open(":memory:", clock=clock) as source:
        fill_waits(source, clock)
        source.export_thread("both", file)
    data = bytearray(file.read_bytes())
    data[9:11] = (VERSION - 1).to_bytes(2)
    file.write_bytes(data)

    with pytest.raises(ExportFormatError, match="older Bide"):
        other.import_thread(file)


# ── Files that are whole, and lie ──────────────────────────────────────────────────────────────────────────────────

LIES = {
    "a leaf of no wait": ("conditions", 0, "0" * 32),
    "a leaf of another number": ("conditions", 1, 77),
    "a kind that there is not": ("conditions", 2, "earthquake"),
    "another key": ("conditions", 3, "event:everything"),
    "a leaf that is neither open nor closed": ("conditions", 5, 2),
    "a wake that is none": ("conditions", 9, b"\x01\x07"),
    "needs that are none": ("waits", 19, b"\x01\x07"),
    "a run that is ready at no moment": ("runs", 1, "ready"),
    "a parent that is a number": ("thread", 8, 7),
    "an end that there is not": ("thread", 9, "explode"),
}


@pytest.mark.parametrize("lie", LIES)
def test_file_that_lies_about_what_a_thread_waits_for_is_refused(other, file, clock, lie):
    what, position, value = LIES[lie]
    with Store.open(":memory:", clock=clock) as source:
        fill_waits(source, clock)
        execute(source, "UPDATE runs SET due_at = NULL WHERE status <> 'ready'")
        source.export_thread("both", file)
    records = [
        record._replace(values=[*record.values[:position], value, *record.values[position + 1 :]])
        if record.what == what
        else record
        for record in records_of(file.read_bytes())
    ]
    file.write_bytes(forged(records))

    with pytest.raises(StoreError):
        other.import_thread(file)

    assert other.stats().threads == 0
    assert other.verify().is_sound


def test_records_can_be_read_by_whoever_has_the_file(file, clock):
    with Store.open(":memory:", clock=clock) as source:
        fill_waits(source, clock)
        source.export_thread("both", file)

    with file.open("rb") as opened:
        kinds = [record.what for record in PortableReader(opened, Checksums(), 1 << 24).records()]

    assert kinds.count("conditions") == 2
