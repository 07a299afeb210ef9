"""`store.verify()`: what is sound is told to be, and damage is named by the invariant that it breaks, and by no other.

Each damage is done straight in the database, with rows that are sealed as the store itself seals them: what is found is
what the check is about, and not a checksum.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bide import Store
from bide.errors import UnknownThreadError
from bide.store.findings import INVARIANTS
from bide.store.frames import Frame, pack_frame, unpack_frame
from bide.store.queue_rows import Start
from bide.store.stored_rows import (
    BLOB_USES,
    BLOBS,
    CHANNEL_LOG,
    CHECKPOINTS,
    EVENTS,
    ITEMS,
    JOURNAL,
    RUNS,
    WAITS,
    Table,
)
from tests.store.inspected import Counted, all_rows, change_body, count_graph, execute, fill, forge
from tests.store.test_verify_waits import DAMAGES as WAITING_DAMAGES
from tests.stores import KINDS, opened_store
from tests.threads import one_node, thread


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with opened_store(request, tmp_path) as opened:
        yield fill(opened)


def test_store_after_ordinary_work_is_sound(store):
    found = store.verify()

    assert found.problems == ()
    assert found.is_sound
    assert str(found).startswith("Sound: looked at ")
    assert set(found.checked) >= {"threads", "runs", "checkpoints", "channel_log", "journal", "waits", "events"}
    assert found.checked["threads"] == 3


def test_empty_store_is_sound(tmp_path):
    with Store.open(f"sqlite:///{tmp_path / 'empty.db'}") as store:
        assert str(store.verify()) == "Sound: looked at an empty store."


# ── One damage, one invariant ──────────────────────────────────────────────────────────────────────────────────────

Damage = Callable[[Store], Any]
DAMAGES: dict[str, tuple[str, str | None, Damage]] = {}


def damage(invariant: str, thread_id: str | None) -> Callable[[Damage], Damage]:
    """Say which invariant a damage breaks, and in which thread."""

    def note(do: Damage) -> Damage:
        DAMAGES[do.__name__] = invariant, thread_id, do
        return do

    return note


@damage("I2", "counted")
def lost_checkpoint(store):
    assert execute(store, "DELETE FROM checkpoints WHERE thread_id = 'counted' AND seq = 2") == 1


@damage("I2", "counted")
def lost_beginning(store):
    assert execute(store, "DELETE FROM checkpoints WHERE thread_id = 'counted' AND seq = 1") == 1


@damage("I2", "counted")
def lost_head(store):
    assert execute(store, "DELETE FROM checkpoints WHERE thread_id = 'counted' AND seq = 4") == 1


@damage("I2", "counted")
def epoch_goes_back(store):
    second = all_rows(store, CHECKPOINTS, "counted")[1]
    execute(
        store,
        "UPDATE runs SET epoch = 2 WHERE thread_id = 'counted'",
        "DELETE FROM checkpoints WHERE thread_id = 'counted' AND seq = 2",
    )
    forge(store, CHECKPOINTS, second, epoch=2)


@damage("I2", "counted")
def epoch_that_never_was(store):
    last = all_rows(store, CHECKPOINTS, "counted")[-1]
    execute(store, "DELETE FROM checkpoints WHERE thread_id = 'counted' AND seq = 4")
    forge(store, CHECKPOINTS, last, epoch=2)


@damage("I2", "counted")
def checkpoint_of_an_unknown_run(store):
    last = all_rows(store, CHECKPOINTS, "counted")[-1]
    execute(store, "DELETE FROM checkpoints WHERE thread_id = 'counted' AND seq = 4")
    forge(store, CHECKPOINTS, last, run_id="nobody")


@damage("I2", "counted")
def checkpoint_before_its_parent(store):
    last = all_rows(store, CHECKPOINTS, "counted")[-1]
    execute(store, "DELETE FROM checkpoints WHERE thread_id = 'counted' AND seq = 4")
    forge(store, CHECKPOINTS, last, parent=4)


@damage("I4", "waiting")
def waiting_for_nothing(store):
    assert execute(store, "UPDATE waits SET status = 'cancelled', consumed = 1 WHERE thread_id = 'waiting'") == 1


@damage("I4", "done")
def open_wait_of_a_thread_that_is_done(store):
    empty = "answer = NULL, answered_at = NULL, answered_via = NULL"
    assert execute(store, f"UPDATE waits SET status = 'open', consumed = 0, {empty} WHERE thread_id = 'done'") == 1


@damage("I4", "waiting")
def open_wait_whose_step_is_over(store):
    assert execute(store, "UPDATE waits SET consumed = 1 WHERE thread_id = 'waiting'") == 1


@damage("I5", "done")
def answer_without_its_way(store):
    assert execute(store, "UPDATE waits SET answered_via = NULL WHERE thread_id = 'done'") == 1


@damage("I5", "done")
def answered_without_an_answer(store):
    assert execute(store, "UPDATE waits SET answer = NULL WHERE thread_id = 'done'") == 1


@damage("I5", "done")
def answer_that_nobody_went_on_with(store):
    assert execute(store, "UPDATE waits SET answered_at = answered_at + 1 WHERE thread_id = 'done'") == 1


@damage("I7", "waiting")
def journal_from_the_future(store):
    assert execute(store, "UPDATE journal SET epoch = 99 WHERE thread_id = 'waiting'") == 1


@damage("I7", "waiting")
def journal_of_an_unknown_run(store):
    assert execute(store, "UPDATE journal SET run_id = 'nobody' WHERE thread_id = 'waiting'") == 1


@damage("I7", "waiting")
def journal_of_a_step_that_is_over(store):
    forge(store, JOURNAL, all_rows(store, JOURNAL, "waiting")[0], task_id="1.one")


@damage("I7", "waiting")
def result_that_is_only_intended(store):
    forge(store, JOURNAL, all_rows(store, JOURNAL, "waiting")[0], kind="result", phase="intent", key="")


@damage("I8", "done")
def lost_event(store):
    assert execute(store, "DELETE FROM events WHERE thread_id = 'done' AND number = 2") == 1


@damage("I8", "done")
def event_that_was_not_counted(store):
    assert execute(store, "UPDATE threads SET events = events - 1 WHERE thread_id = 'done'") == 1


@damage("I8", "done")
def end_without_an_event(store):
    last = all_rows(store, EVENTS, "done")[-1]
    statements = (
        f"DELETE FROM events WHERE thread_id = 'done' AND number = {last['number']}",
        "UPDATE threads SET events = events - 1 WHERE thread_id = 'done'",
    )
    assert last["kind"] == "run.done"
    assert execute(store, *statements) == 1


@damage("I8", "counted")
def run_without_an_event(store):
    run = all_rows(store, RUNS, "counted")[0]
    forge(store, RUNS, run, run_id=f"{run['run_id'][:-1]}-", status="cancelled")


@damage("I9", "done")
def lost_row_of_the_channel_log(store):
    last = max(row["seq"] for row in all_rows(store, CHANNEL_LOG, "done") if row["channel"] == "log")
    statement = f"DELETE FROM channel_log WHERE thread_id = 'done' AND channel = 'log' AND seq = {last}"
    assert execute(store, statement) == 1


@damage("I9", "done")
def lost_channel(store):
    assert execute(store, "DELETE FROM channel_log WHERE thread_id = 'done' AND channel = 'log'") > 1


@damage("I9", "done")
def list_whose_beginning_builds_on_another(store):
    first, second = [row for row in all_rows(store, CHANNEL_LOG, "done") if row["channel"] == "log"][:2]
    statement = "DELETE FROM channel_log WHERE thread_id = 'done' AND channel = 'log' AND seq = "
    execute(store, f"{statement}{first['seq']}")
    forge(store, CHANNEL_LOG, second, seq=first["seq"])


@damage("I9", "done")
def row_of_the_channel_log_that_nobody_reaches(store):
    forge(store, CHANNEL_LOG, all_rows(store, CHANNEL_LOG, "done")[0], channel="nobody")


@damage("I9", "waiting")
def lost_base(store):
    assert frame_of(store, all_rows(store, CHECKPOINTS, "waiting")[1]).base == 1
    execute(store, "UPDATE threads SET pruned = 1 WHERE thread_id = 'waiting'")
    assert execute(store, "DELETE FROM checkpoints WHERE thread_id = 'waiting' AND seq = 1") == 1


@damage("I9", "waiting")
def base_that_builds_on_another(store):
    third = all_rows(store, CHECKPOINTS, "waiting")[2]
    frame = frame_of(store, third)
    assert frame.base == 1
    body = pack_frame(frame._replace(base=2))
    change_body(store, CHECKPOINTS, third, "body", store.bodies.seal.close(CHECKPOINTS.places["body"](third), body))


def frame_of(store: Store, row: dict[str, Any]) -> Frame:
    place = CHECKPOINTS.places["body"](row)
    return unpack_frame(store.database.read(lambda tx: store.bodies.open(tx, place, row["body"])))


@damage("I9", "done")
def lost_blob(store):
    store.delete_thread("waiting")
    assert execute(store, "DELETE FROM blobs") == 1


@damage("I9", "done")
def blob_whose_use_is_not_noted(store):
    assert execute(store, "DELETE FROM blob_uses WHERE thread_id = 'done'") == 1


@damage("I9", None)
def blob_that_nobody_uses(store):
    blob = all_rows(store, BLOBS)[0]
    place = BLOBS.places["body"]
    body = store.bodies.seal.open(place(blob), blob["body"])
    copy = {**blob, "owner": "another", "now": 1}
    copy["body"] = store.bodies.seal.close(place(copy), body)
    store.database.write("test", lambda tx: tx.run("put_blob", copy))


@damage("I13", "done")
def thread_without_its_row(store):
    assert execute(store, "DELETE FROM threads WHERE thread_id = 'done'") == 1


@damage("I13", "counted")
def life_that_was_deleted_and_goes_on(store):
    insert = "INSERT INTO tombstones (uid, thread_id, deleted_at) SELECT uid, thread_id, 1 FROM threads"
    assert execute(store, f"{insert} WHERE thread_id = 'counted'") == 1


@damage("I13", "waiting")
def wait_of_an_unknown_run(store):
    assert execute(store, "UPDATE waits SET run_id = 'nobody' WHERE thread_id = 'waiting'") == 1


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_named_by_the_invariant_that_it_breaks(store, name):
    invariant, thread_id, do = DAMAGES[name]
    do(store)

    found = store.verify()

    assert {problem.invariant for problem in found.problems} == {invariant}, str(found)
    assert {problem.thread_id for problem in found.problems} == {thread_id} or thread_id is None, str(found)
    assert all(problem.what and problem.advice for problem in found.problems)
    assert not found.is_sound
    assert str(found).count(f"\n{invariant}") == len(found.problems)


def test_note_of_a_use_that_is_over_is_no_damage_and_reseal_takes_it_away(store):
    insert = "INSERT INTO blob_uses (thread_id, owner, hash) SELECT 'counted', owner, hash FROM blobs"
    assert execute(store, insert) == 1

    assert store.verify().is_sound
    store.reseal()

    assert all_rows(store, BLOB_USES, "counted") == []
    assert store.verify().is_sound


def test_every_invariant_that_the_database_can_break_is_broken_here():
    broken = {invariant for invariant, _, _ in (*DAMAGES.values(), *WAITING_DAMAGES.values())}

    assert broken | {"I1", "I3", "I12"} == INVARIANTS.keys() - {"I10", "I11"}


def test_worker_whose_lease_never_ends_is_named(store):
    found = []

    def node(state):
        found.append(store.verify())
        execute(store, "UPDATE workers SET lease_until = 9000000000000000")
        found.append(store.verify())
        return {"count": 1}

    one_node(Counted, node, checkpointer=store).invoke({"count": 0}, thread("running"))

    assert found[0].is_sound, str(found[0])
    assert [(problem.invariant, problem.thread_id) for problem in found[1].problems] == [("I3", "running")]


@pytest.fixture
def unguarded(tmp_path: Path) -> Iterator[Store]:
    """A store in a file whose own constraints are lifted: else the database itself refuses what is tried here."""
    with Store.open(f"sqlite:///{tmp_path / 'bide.db'}") as opened:
        execute(fill(opened), "DROP INDEX one_live_run")
        opened.database.write_alone("test", lambda tx: tx.connection.execute("PRAGMA ignore_check_constraints = ON"))
        yield opened


def test_two_live_runs_of_one_thread_are_named(unguarded):
    run = all_rows(unguarded, RUNS, "counted")[0]
    execute(unguarded, "UPDATE runs SET status = 'ready' WHERE thread_id = 'counted'")
    forge(unguarded, RUNS, run, run_id="ffffffff", status="waiting")

    found = unguarded.verify()

    assert [(problem.invariant, problem.thread_id) for problem in found.problems] == [("I1", "counted")], str(found)


def test_run_that_is_leased_though_it_does_not_run_is_named(unguarded):
    execute(unguarded, "UPDATE runs SET worker_id = 'somebody' WHERE thread_id = 'counted'")

    found = unguarded.verify("counted")

    assert [(problem.invariant, problem.thread_id) for problem in found.problems] == [("I3", "counted")], str(found)


def test_ready_run_that_no_worker_can_find_is_named(unguarded):
    unguarded.start(Start("counted", b"given", thread_id="started"))
    execute(unguarded, "UPDATE runs SET due_at = NULL WHERE thread_id = 'started'")

    found = unguarded.verify("started")

    assert [(problem.invariant, problem.thread_id) for problem in found.problems] == [("I3", "started")], str(found)


# ── Bytes that are not what was written ────────────────────────────────────────────────────────────────────────────

BODIES = [
    (table, column)
    for table in (CHECKPOINTS, CHANNEL_LOG, JOURNAL, WAITS, EVENTS, ITEMS)
    for column in table.places
    if column != "needs"  # those of a question that says nothing more are empty; see test_verify_waits.py
]


@pytest.mark.parametrize(("table", "column"), BODIES, ids=lambda part: getattr(part, "name", part))
def test_changed_byte_is_named_with_its_row(store, table: Table, column: str):
    thread_id = {"journal": "waiting", "items": None}.get(table.name, "done")
    row = all_rows(store, table, thread_id)[-1]
    body = row[column]
    change_body(store, table, row, column, body[:-1] + bytes([body[-1] ^ 1]))

    found = store.verify()

    assert [(problem.invariant, problem.thread_id) for problem in found.problems] == [("I12", thread_id)], str(found)
    assert table.name in found.problems[0].what


def test_body_that_is_sealed_but_no_frame_is_named(store):
    row = all_rows(store, CHECKPOINTS, "counted")[-1]
    for body in (b"", b"\x00", pack_frame(Frame(99, None, {}, {}, [0, []])), pack_frame(Frame(1, None, {}, {}, 7))):
        sealed = store.bodies.seal.close(CHECKPOINTS.places["body"](row), body)
        change_body(store, CHECKPOINTS, row, "body", sealed)

        found = store.verify()

        assert [(problem.invariant, problem.thread_id) for problem in found.problems] == [("I12", "counted")], body
        row = all_rows(store, CHECKPOINTS, "counted")[-1]


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE checkpoints SET epoch = 'seven' WHERE thread_id = 'counted' AND seq = 2",
        "UPDATE events SET body = 'text' WHERE thread_id = 'counted' AND number = 1",
        "UPDATE threads SET events = x'00' WHERE thread_id = 'counted'",
        "UPDATE runs SET created_at = 1.5 WHERE thread_id = 'counted'",
    ],
)
def test_column_that_holds_something_else_is_named(tmp_path, statement):
    with Store.open(f"sqlite:///{tmp_path / 'bide.db'}") as store:
        count_graph(store).invoke({"count": 0}, thread("counted"))
        execute(store, statement)

        found = store.verify()

        assert [(problem.invariant, problem.thread_id) for problem in found.problems] == [("I12", "counted")]


def test_damaged_page_of_the_file_is_told_and_nothing_is_raised(tmp_path):
    path = tmp_path / "bide.db"
    with Store.open(f"sqlite:///{path}") as store:
        fill(store)
    with closing(sqlite3.connect(path)) as database:
        (page,) = database.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'channel_log'").fetchone()
    data = bytearray(path.read_bytes())
    data[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    path.write_bytes(data)

    with Store.open(f"sqlite:///{path}") as store:
        found = store.verify()

    assert {problem.invariant for problem in found.problems} == {"I12"}
    assert {"done", "waiting"} <= {problem.thread_id for problem in found.problems}


# ── How it looks ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_shallow_look_finds_what_needs_no_body(store):
    waiting_for_nothing(store)
    lost_event(store)
    journal_from_the_future(store)
    lost_row_of_the_channel_log(store)

    found = store.verify(deep=False)

    assert {problem.invariant for problem in found.problems} == {"I4", "I7", "I8"}
    assert "channel_log" not in found.checked


def test_one_thread_can_be_looked_at_alone(store):
    waiting_for_nothing(store)

    assert store.verify("done").is_sound
    assert store.verify("done").checked["threads"] == 1
    assert not store.verify("waiting").is_sound


def test_thread_that_never_was_is_no_sound_thread(store):
    with pytest.raises(UnknownThreadError, match="'never'"):
        store.verify("never")


def test_thread_whose_row_is_lost_is_told_as_such(store):
    thread_without_its_row(store)

    assert {problem.invariant for problem in store.verify("done").problems} == {"I13"}


def test_progress_is_told_after_each_thread(store):
    told = []

    store.verify(progress=lambda number, thread_id: told.append((number, thread_id)))

    assert told == [(1, "counted"), (2, "done"), (3, "waiting")]


def test_only_so_many_problems_are_listed_and_the_rest_is_counted(store):
    execute(store, "UPDATE threads SET events = events + 1")

    found = store.verify(most=2)

    assert len(found.problems) == 2
    assert found.untold == 1
    assert str(found).startswith("3 problem(s)")


def test_verify_changes_nothing(store):
    before = [all_rows(store, table, "waiting") for table in (RUNS, CHECKPOINTS, CHANNEL_LOG, JOURNAL, WAITS, EVENTS)]

    store.verify()

    after = [all_rows(store, table, "waiting") for table in (RUNS, CHECKPOINTS, CHANNEL_LOG, JOURNAL, WAITS, EVENTS)]
    assert after == before
