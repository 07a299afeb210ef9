"""A thread as one file: out of one store and into another, whatever their databases are, and it goes on there."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from bide import Command, Encryption, Interrupt, Store, interrupt, step
from bide.codec import Codec
from bide.engine.plan import question_id
from bide.errors import (
    ConflictError,
    CorruptDataError,
    ExportFormatError,
    StoreUnavailableError,
    ThreadBusyError,
    ThreadExistsError,
    UnknownInterruptError,
    UnknownThreadError,
    ValueTooLargeError,
)
from bide.store.importing import wait_id_of
from bide.store.portable import BODIES
from bide.store.stored_rows import CHANNEL_LOG, CHECKPOINTS, JOURNAL, OF_A_THREAD, RUNS, WAITS
from tests.store.inspected import LARGE, Counted, all_rows, change_body, count_graph, fill, paper_graph
from tests.stores import KINDS, opened_store
from tests.threads import one_node, side_by_side, thread


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """The store that a thread comes from."""
    with opened_store(request, tmp_path) as opened:
        yield fill(opened)


@pytest.fixture(params=["file", "postgres"])
def other(request: pytest.FixtureRequest, tmp_path: Path, postgres_dsn: str) -> Iterator[Store]:
    """An empty store that a thread goes to."""
    if request.param == "file":
        with Store.open(f"sqlite:///{tmp_path / 'other.db'}") as opened:
            yield opened
        return
    from tests.postgres import fresh_database  # with the driver, which only this needs

    with fresh_database(postgres_dsn) as dsn, Store.open(dsn) as opened:
        yield opened


class Said(TypedDict):
    log: Annotated[list[str], operator.add]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "thread.bide"


# ── There and back ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_thread_that_waits_goes_on_in_another_database_and_ends_in_the_same_state(store, other, file):
    store.export_thread("waiting", file)

    imported = other.import_thread(file)
    asked = paper_graph(other).get_state(thread("waiting"))
    result = paper_graph(other).invoke(Command(resume="Ada"), thread("waiting"))

    assert (imported.thread_id, imported.is_same_life, imported.renamed_waits) == ("waiting", True, {})
    assert [ask.value for ask in asked.interrupts] == ["Who signs?"]
    assert result.value == paper_graph(store).get_state(thread("done")).values
    assert result.value["text"] == LARGE
    assert other.verify().is_sound, str(other.verify())
    assert store.verify().is_sound


def test_thread_keeps_its_ids_where_it_has_never_been(store, other, file):
    before = paper_graph(store).get_state(thread("waiting"))
    store.export_thread("waiting", file)

    other.import_thread(file, "another name")
    after = paper_graph(other).get_state(thread("another name"))

    assert [ask.id for ask in after.interrupts] == [ask.id for ask in before.interrupts]
    assert after.config["configurable"]["checkpoint_id"] == before.config["configurable"]["checkpoint_id"]
    answers = {before.interrupts[0].id: "Ada"}
    result = paper_graph(other).invoke(Command(resume=answers), thread("another name"))
    assert result.value["signed_by"] == "Ada"


def test_whole_history_comes_along(store, other, file):
    store.export_thread("done", file)

    other.import_thread(file)

    def told(source: Store) -> list[Any]:
        return [
            (snapshot.values, snapshot.next, snapshot.metadata, snapshot.created_at)
            for snapshot in paper_graph(source).get_state_history(thread("done"))
        ]

    assert told(other) == told(store)
    assert [event.kind for event in other.events("done")] == [
        *(event.kind for event in store.events("done")),
        "thread.imported",
    ]


def test_thread_that_went_there_comes_back_the_same(store, other, file, tmp_path):
    store.export_thread("waiting", file)
    other.import_thread(file)
    other.export_thread("waiting", tmp_path / "back.bide")

    store.import_thread(tmp_path / "back.bide", "back")

    values = [paper_graph(store).get_state(thread(name)).values for name in ("waiting", "back")]
    assert values[0] == values[1]
    assert store.verify().is_sound, str(store.verify())


def test_step_that_was_made_before_the_export_is_not_made_again_after_the_import(store, other, file):
    store.export_thread("waiting", file)
    other.import_thread(file)
    lines = [(row["task_id"], row["kind"], row["phase"]) for row in all_rows(other, JOURNAL, "waiting")]

    assert lines == [(row["task_id"], row["kind"], row["phase"]) for row in all_rows(store, JOURNAL, "waiting")]
    assert lines


# ── Beside the original ────────────────────────────────────────────────────────────────────────────────────────────


def test_copy_beside_the_original_has_ids_of_its_own_and_both_can_be_answered(store, file):
    store.export_thread("waiting", file)

    imported = store.import_thread(file, "copy")

    graph = paper_graph(store)
    (original,), (copy,) = (graph.get_state(thread(name)).interrupts for name in ("waiting", "copy"))
    assert not imported.is_same_life
    assert imported.renamed_waits == {original.id: copy.id}
    assert graph.invoke(Command(resume={copy.id: "Bob"}), thread("copy")).value["signed_by"] == "Bob"
    assert graph.invoke(Command(resume={original.id: "Ada"}), thread("waiting")).value["signed_by"] == "Ada"
    assert store.verify().is_sound, str(store.verify())


def test_answer_to_the_original_does_not_reach_the_copy(store, file):
    store.export_thread("waiting", file)
    store.import_thread(file, "copy")
    graph = paper_graph(store)
    (original,) = graph.get_state(thread("waiting")).interrupts

    with pytest.raises(UnknownInterruptError):
        graph.invoke(Command(resume={original.id: "Bob"}), thread("copy"))


def test_log_of_a_copy_speaks_of_its_own_questions_and_runs(store, file):
    store.export_thread("waiting", file)
    imported = store.import_thread(file, "copy")
    (old,) = imported.renamed_waits
    bodies = b"".join(event.body for event in store.events("copy"))

    assert old.encode() not in bodies
    assert imported.renamed_waits[old].encode() in bodies
    assert not {event.run_id for event in store.events("copy")} & {
        event.run_id for event in store.events("waiting") if event.run_id
    }


def test_question_that_a_node_returned_can_be_answered_in_a_copy(store, file):
    nodes = {"ask": lambda state: {"count": interrupt("How many?")}, "rest": lambda state: None}
    graph = side_by_side(Counted, nodes, checkpointer=store)
    graph.invoke({"count": 0}, thread("asking"))
    store.export_thread("asking", file)

    store.import_thread(file, "copy")

    assert graph.invoke(Command(resume=7), thread("copy")).value == {"count": 7}
    assert graph.invoke(Command(resume=8), thread("asking")).value == {"count": 8}


def test_question_that_a_node_has_returned_and_nobody_was_asked_yet_has_another_id_in_a_copy(store, file):
    nodes = {"returns": lambda state: Interrupt("Fine?"), "asks": lambda state: {"count": interrupt("How many?")}}
    graph = side_by_side(Counted, nodes, checkpointer=store)
    graph.invoke({"count": 0}, thread("asking"))
    store.export_thread("asking", file)

    store.import_thread(file, "copy")

    asked = [graph.invoke(Command(resume=7), thread(name)).interrupts for name in ("copy", "asking")]
    assert [[ask.value for ask in asks] for asks in asked] == [["Fine?"], ["Fine?"]]
    assert asked[0][0].id != asked[1][0].id
    assert graph.invoke(Command(resume={asked[0][0].id: "yes"}), thread("copy")).value == {"count": 7}
    assert store.verify().is_sound, str(store.verify())


def test_what_steps_and_nodes_and_callers_said_stays_as_it_is_in_a_copy_even_where_it_looks_like_an_id(store, file):
    def ids() -> str:
        asked = [row["wait_id"] for row in all_rows(store, WAITS, "asking")]
        return " ".join([row["run_id"] for row in all_rows(store, RUNS, "asking")] + asked)

    def ask(state: dict[str, Any]) -> dict[str, Any]:
        interrupt("First?")
        seen = step(ids)
        interrupt("Second?")
        return {"log": [seen]}

    nodes = {"ask": ask, "rest": lambda state: {"log": [ids()]}}
    graph = side_by_side(Said, nodes, checkpointer=store)
    (first,) = graph.invoke({"log": []}, thread("asking")).interrupts
    graph.invoke(Command(resume=first.id), thread("asking"))
    store.export_thread("asking", file)

    imported = store.import_thread(file, "copy")

    original, copy = (graph.invoke(Command(resume=1), thread(name)).value for name in ("asking", "copy"))
    assert not imported.is_same_life
    assert first.id in str(original["log"])
    assert copy == original
    (told,) = (
        event.body for event in store.events("copy") if event.kind == "run.resumed" and first.id.encode() in event.body
    )
    assert Codec().decode(told, "event") == {"answers": {"ask": first.id}}
    assert store.verify().is_sound, str(store.verify())


def test_ids_of_questions_are_made_as_the_engine_makes_them():
    assert wait_id_of("uid", "3.node|1.ask", "#0") == question_id("uid", "3.node|1.ask", "#0")


def test_thread_that_is_there_is_not_written_over(store, file):
    store.export_thread("waiting", file)

    with pytest.raises(ThreadExistsError, match=r"'waiting'.*replace=True"):
        store.import_thread(file)

    assert store.verify().is_sound
    assert issubclass(ThreadExistsError, ConflictError)


def test_thread_that_is_there_is_replaced_when_that_is_said(store, file):
    graph = paper_graph(store)
    store.export_thread("waiting", file)
    graph.invoke(Command(resume="Ada"), thread("waiting"))

    imported = store.import_thread(file, replace=True)

    assert not imported.is_same_life
    assert graph.get_state(thread("waiting")).next == ("sign",)
    assert graph.invoke(Command(resume="Bob"), thread("waiting")).value["signed_by"] == "Bob"
    assert store.verify().is_sound, str(store.verify())


def test_thread_that_was_deleted_comes_back_as_another_life(store, file):
    old = paper_graph(store).get_state(thread("waiting")).config
    store.export_thread("waiting", file)
    store.delete_thread("waiting")

    imported = store.import_thread(file)

    assert not imported.is_same_life
    assert paper_graph(store).get_state(thread("waiting")).config != old
    assert paper_graph(store).invoke(Command(resume="Bob"), thread("waiting")).value["signed_by"] == "Bob"


# ── Runs that are under way ────────────────────────────────────────────────────────────────────────────────────────


def test_run_that_was_running_is_taken_over_by_the_next_call(store, other, file):
    def node(state: dict[str, Any]) -> dict[str, Any]:
        if not file.exists():
            store.export_thread("running", file)
            with pytest.raises(ThreadBusyError):
                store.import_thread(file, replace=True)
        return {"count": 7}

    one_node(Counted, node, checkpointer=store).invoke({"count": 0}, thread("running"))

    other.import_thread(file)

    assert other.verify().is_sound, str(other.verify())
    assert [row.status for row in other.threads()] == ["running"]
    result = one_node(Counted, node, checkpointer=other).invoke(None, thread("running"))
    assert result.value == {"count": 7}
    assert [event.kind for event in other.events("running")][-2:] == ["run.taken_over", "run.done"]


# ── What is refused ────────────────────────────────────────────────────────────────────────────────────────────────


def test_thread_that_is_not_there_is_not_exported(store, file):
    with pytest.raises(UnknownThreadError, match="'nobody'"):
        store.export_thread("nobody", file)

    assert not file.exists()
    assert [path for path in file.parent.iterdir() if path.name.startswith(".thread")] == []


def test_thread_that_cannot_be_read_is_not_exported_and_an_older_file_stays(store, file):
    store.export_thread("done", file)
    before = file.read_bytes()
    row = all_rows(store, CHECKPOINTS, "done")[-1]
    change_body(store, CHECKPOINTS, row, "body", row["body"][:-1])

    with pytest.raises(CorruptDataError):
        store.export_thread("done", file, overwrite=True)

    assert file.read_bytes() == before
    assert sorted(path.name for path in file.parent.iterdir() if "bide" in path.suffix) == ["thread.bide"]


def test_file_that_is_there_is_written_over_only_when_that_is_said(store, file):
    file.write_bytes(b"something dear")

    with pytest.raises(StoreUnavailableError, match=r"exists already.*overwrite=True"):
        store.export_thread("done", file)

    assert file.read_bytes() == b"something dear"
    store.export_thread("done", file, overwrite=True)
    assert store.import_thread(file, "copy").thread_id == "copy"
    assert [path for path in file.parent.iterdir() if path.name.startswith(".thread")] == []


def test_file_that_somebody_makes_meanwhile_is_left_alone(store, file, monkeypatch):
    read = store.database.read

    def read_slowly(work: Any) -> Any:
        found = read(work)
        file.write_bytes(b"somebody else's")
        return found

    monkeypatch.setattr(store.database, "read", read_slowly)

    with pytest.raises(StoreUnavailableError, match="exists already"):
        store.export_thread("done", file)

    assert file.read_bytes() == b"somebody else's"


def test_folder_that_is_not_there_is_named(store, tmp_path):
    with pytest.raises(StoreUnavailableError, match="nowhere"):
        store.export_thread("done", tmp_path / "nowhere" / "thread.bide")


def test_file_that_is_not_there_is_named(store, tmp_path):
    with pytest.raises(StoreUnavailableError, match=r"nothing\.bide"):
        store.import_thread(tmp_path / "nothing.bide")


def test_file_is_its_owners_alone(store, file):
    store.export_thread("done", file)

    assert os.stat(file).st_mode & 0o077 == 0


def test_value_that_the_other_store_does_not_take_is_refused(store, file):
    store.export_thread("done", file)

    with Store.open(":memory:", largest_value=70_000) as small:
        with pytest.raises((ExportFormatError, ValueTooLargeError), match="largest_value"):
            small.import_thread(file)

        assert small.threads() == []


def test_question_and_answer_that_are_large_together_come_into_a_store_that_takes_each(file):
    def ask(state: Counted) -> dict[str, Any]:
        interrupt("q" * 150_000)
        return {"count": interrupt("How many?")}

    with Store.open(":memory:", largest_value=200_000) as source:
        graph = one_node(Counted, ask, checkpointer=source)
        graph.invoke({"count": 0}, thread("t"))
        graph.invoke(Command(resume="a" * 150_000), thread("t"))
        source.export_thread("t", file)

    with Store.open(":memory:", largest_value=200_000) as other:
        other.import_thread(file)
        assert one_node(Counted, ask, checkpointer=other).invoke(Command(resume=7), thread("t")).value == {"count": 7}

    too_large = pytest.raises(ExportFormatError, match=r"a value of 1500.. bytes.*largest_value")
    with Store.open(":memory:", largest_value=149_000) as small, too_large:
        small.import_thread(file)


def test_no_row_has_more_bodies_than_a_file_takes():
    assert max(len(table.places) for table in OF_A_THREAD) == BODIES


# ── Encryption ─────────────────────────────────────────────────────────────────────────────────────────────────────

KEY, ANOTHER = Encryption.generate_key(), Encryption.generate_key()


def test_export_of_an_encrypted_store_is_encrypted_and_needs_its_key(file):
    with Store.open(":memory:", encryption=Encryption({"k": KEY})) as store:
        fill(store).export_thread("waiting", file)

    assert b"Who signs?" not in file.read_bytes()
    assert b"waiting" not in file.read_bytes()
    with Store.open(":memory:") as other:
        with pytest.raises(ExportFormatError, match="encrypted"):
            other.import_thread(file)
        with pytest.raises(ExportFormatError):
            other.import_thread(file, encryption=Encryption({"k": ANOTHER}))
        other.import_thread(file, encryption=Encryption({"k": KEY}))
        assert paper_graph(other).invoke(Command(resume="Ada"), thread("waiting")).value["signed_by"] == "Ada"


def test_export_of_an_encrypted_store_can_be_asked_to_be_plain(file):
    with Store.open(":memory:", encryption=Encryption({"k": KEY})) as store:
        fill(store).export_thread("waiting", file, encrypt=False)

    assert b"Who signs?" in file.read_bytes()
    with Store.open(":memory:", encryption=Encryption({"new": ANOTHER})) as other:
        other.import_thread(file)
        assert all(row["body"][:1] == b"\x02" for row in all_rows(other, CHECKPOINTS, "waiting"))
        assert other.verify().is_sound


def test_plain_store_cannot_encrypt(store, file):
    with pytest.raises(StoreUnavailableError, match="encrypt=True"):
        store.export_thread("waiting", file, encrypt=True)


def test_bodies_are_sealed_for_their_new_place(store, other, file):
    store.export_thread("waiting", file)
    other.import_thread(file, "another name")

    stored = [row["body"] for row in all_rows(other, CHANNEL_LOG, "another name")]
    assert stored
    assert not set(stored) & {row["body"] for row in all_rows(store, CHANNEL_LOG, "waiting")}


def test_thread_of_small_values_is_a_small_file(store, file):
    count_graph(store).invoke({"count": 0}, thread("small"))

    store.export_thread("small", file)

    assert file.stat().st_size < 3000
