"""Values that cannot be written, and bytes that cannot be read: refused by name, and everything else stays whole."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, TypedDict

import ormsgpack
import pytest

from bide import START, Command, CompiledGraph, Send, StateGraph, Store, interrupt, step
from bide.errors import CodecError, UnstorableValueError
from tests.store.conftest import Kept
from tests.threads import in_a_row, one_node, side_by_side, thread

# ── Bytes that cannot be read ──────────────────────────────────────────────────────────────────────────────────────

DAMAGES = {
    "empty": lambda body: b"",
    "cut in half": lambda body: body[: len(body) // 2],
    "one byte short": lambda body: body[:-1],
    "junk": lambda body: b"\xc1" * len(body),
    "another version": lambda body: b"\x63" + body[1:],
    "a number": lambda body: b"\x01" + ormsgpack.packb(7),
    "a short list": lambda body: b"\x01" + ormsgpack.packb([7]),
    "text": lambda body: "a text",
}


def change_rows(store: Store, table: str, column: str, damage: Any, where: str) -> int:
    """Change a column of some rows behind the store's back; return how many there were."""

    def change(tx: Any) -> int:
        tx.connection.create_function("damage", 1, damage)
        return int(tx.connection.execute(f"UPDATE {table} SET {column} = damage({column}) WHERE {where}").rowcount)

    return store.database.write("test", change)


def save_rows(store: Store, table: str) -> Callable[[], None]:
    """Remember a table, and return a function that puts it back."""

    def restore(tx: Any) -> None:
        tx.connection.execute(f"DELETE FROM {table}")
        tx.connection.execute(f"INSERT INTO {table} SELECT * FROM temp.saved")

    store.database.write("test", lambda tx: tx.connection.execute(f"CREATE TEMP TABLE saved AS SELECT * FROM {table}"))
    return lambda: store.database.write("test", restore)


@pytest.fixture
def store(kept: Kept) -> Iterator[Store]:
    with Store.open(kept.url) as store:
        yield store


def check_unreadable(graph: CompiledGraph, given: Any, *, name: str) -> None:
    """Whoever looks at the thread or wants to run it gets a typed error that names the thread and the checkpoint."""
    for call in (lambda: graph.get_state(thread(name)), lambda: graph.invoke(given, thread(name))):
        with pytest.raises(CodecError) as refusal:
            call()
        assert repr(name) in str(refusal.value)
        assert re.search(r"checkpoint \d+", str(refusal.value))


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_checkpoint_is_named_and_other_threads_go_on(kept, store, damage):
    put_back = save_rows(store, "checkpoints")
    graph = kept.graph(store)
    assert change_rows(store, "checkpoints", "body", DAMAGES[damage], "thread_id = 'waiting'") > 0

    check_unreadable(graph, Command(resume="bob"), name="waiting")

    assert graph.get_state(thread("finished")).values["signed_by"] == "Ada"
    put_back()
    store.close()
    kept.check()


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_large_value_is_named_with_its_key(kept, store, damage):
    put_back = save_rows(store, "channel_log")
    graph = kept.graph(store)
    assert change_rows(store, "channel_log", "body", DAMAGES[damage], "thread_id = 'waiting'") > 0

    if damage not in ("a number", "a short list"):  # which are values like any other
        check_unreadable(graph, Command(resume="bob"), name="waiting")
        with pytest.raises(CodecError, match=r"state\['text'\]"):
            graph.get_state(thread("waiting"))

    put_back()
    store.close()
    kept.check()


def test_missing_large_value_is_not_taken_for_an_empty_one(kept, store):
    put_back = save_rows(store, "channel_log")
    store.database.write("test", lambda tx: tx.connection.execute("DELETE FROM channel_log"))

    check_unreadable(kept.graph(store), Command(resume="bob"), name="waiting")

    put_back()
    store.close()
    kept.check()


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_question_is_named(kept, store, damage):
    put_back = save_rows(store, "waits")
    assert change_rows(store, "waits", "question", DAMAGES[damage], "thread_id = 'waiting'") == 1

    with pytest.raises(CodecError, match=r"'waiting' .*/question"):
        kept.graph(store).get_state(thread("waiting"))
    with pytest.raises(CodecError, match=r"'waiting' .*/question"):
        kept.graph(store).invoke(Command(resume="bob"), thread("waiting"))

    put_back()
    store.close()
    kept.check()


class Pair(TypedDict):
    left: int
    right: str


def fail_once(store: Store) -> tuple[CompiledGraph, list[int]]:
    """A thread with a finished sibling and a finished step in its journal."""
    tries: list[int] = []

    def right(state: Pair) -> dict[str, Any]:
        text = step(str, "stepped")
        tries.append(1)
        if len(tries) == 1:
            raise RuntimeError("the first try fails")
        return {"right": text}

    graph = side_by_side(Pair, {"left": lambda state: {"left": 1}, "right": right}, checkpointer=store)
    with pytest.raises(RuntimeError):
        graph.invoke({"left": 0}, thread("failed"))
    return graph, tries


@pytest.mark.parametrize("kind", ["step", "result"])
@pytest.mark.parametrize("damage", [name for name in DAMAGES if name not in ("a number", "a short list")])
def test_damaged_journal_is_named_and_nothing_is_run_again(store, kind, damage):
    graph, tries = fail_once(store)
    put_back = save_rows(store, "journal")
    rows = change_rows(store, "journal", "body", DAMAGES[damage], f"kind = '{kind}'")

    with pytest.raises(CodecError, match="'failed'"):
        graph.invoke(None, thread("failed"))

    assert rows == 1
    assert len(tries) == 1
    put_back()
    assert graph.invoke(None, thread("failed")) == {"left": 1, "right": "stepped"}


@pytest.mark.parametrize("damage", ["a number", "a short list"])
def test_result_of_a_node_that_has_lost_its_shape_is_named(store, damage):
    graph, tries = fail_once(store)
    put_back = save_rows(store, "journal")
    change_rows(store, "journal", "body", DAMAGES[damage], "kind = 'result'")

    with pytest.raises(CodecError, match="'failed'"):
        graph.invoke(None, thread("failed"))

    assert len(tries) == 1
    put_back()
    assert graph.invoke(None, thread("failed")) == {"left": 1, "right": "stepped"}


def test_older_checkpoints_can_be_read_when_the_newest_is_damaged(kept, store):
    graph = kept.graph(store)
    old = list(graph.get_state_history(thread("waiting")))[-1]
    change_rows(store, "checkpoints", "body", DAMAGES["junk"], "thread_id = 'waiting' AND seq > 1")

    assert graph.get_state(old.config).values == {"text": kept.text}


# ── Values that cannot be written ──────────────────────────────────────────────────────────────────────────────────


class Thing(TypedDict):
    thing: Any
    count: int


class Opaque:
    """Something that is only in memory."""


NESTED = {"orders": [{"lines": ["fine", Opaque()]}]}
PLACE = r"state\['thing'\]\['orders'\]\[0\]\['lines'\]\[1\]"


def test_state_that_cannot_be_stored_is_named_by_its_path_and_the_thread_goes_on_when_the_code_is_mended(store):
    results: list[Any] = [7, NESTED]
    nodes = {"first": lambda state: {"count": 1}, "second": lambda state: {"thing": results.pop()}}
    graph = in_a_row(Thing, nodes, checkpointer=store)

    with pytest.raises(UnstorableValueError, match=PLACE) as refusal:
        graph.invoke({"count": 0}, thread("new"))

    assert "Opaque" in str(refusal.value)
    assert "@checkpointable" in str(refusal.value)
    assert graph.get_state(thread("new")).values == {"count": 1}
    assert graph.invoke(None, thread("new")) == {"count": 1, "thing": 7}


@pytest.mark.parametrize("durability", ["async", "exit"])
def test_state_that_cannot_be_stored_is_refused_though_steps_are_saved_later(store, durability):
    nodes = {"first": lambda state: {"thing": NESTED}, "second": lambda state: {"thing": None}}
    graph = in_a_row(Thing, nodes, checkpointer=store, durability=durability)

    with pytest.raises(UnstorableValueError, match=PLACE):
        graph.invoke({"count": 0}, thread("new"))

    assert graph.get_state(thread("new")).values == {"count": 0}


def test_input_that_cannot_be_stored_starts_nothing(store):
    graph = one_node(Thing, lambda state: None, checkpointer=store)

    with pytest.raises(UnstorableValueError, match=PLACE):
        graph.invoke({"thing": NESTED}, thread("new"))

    assert graph.get_state(thread("new")).created_at is None


def test_edit_that_cannot_be_stored_changes_nothing(store):
    graph = one_node(Thing, lambda state: None, checkpointer=store)
    graph.invoke({"thing": 1}, thread("new"))

    with pytest.raises(UnstorableValueError, match=PLACE):
        graph.update_state(thread("new"), {"thing": NESTED})

    assert graph.get_state(thread("new")).values == {"thing": 1}


def test_answer_that_cannot_be_stored_leaves_the_question_open(kept, store):
    graph = kept.graph(store)

    with pytest.raises(UnstorableValueError, match="answer to"):
        graph.invoke(Command(resume=Opaque()), thread("waiting"))

    store.close()
    kept.check()


def test_question_that_cannot_be_stored_is_an_error_of_its_node(store):
    graph = one_node(Thing, lambda state: {"thing": interrupt({"what": Opaque()})}, checkpointer=store)

    with pytest.raises(UnstorableValueError, match=r"node 'node'.*\['what'\]"):
        graph.invoke({"count": 0}, thread("new"))

    assert graph.get_state(thread("new")).next == ("node",)
    assert graph.get_state(thread("new")).interrupts == ()


def test_result_of_a_step_that_cannot_be_stored_is_named_by_step_and_node(store):
    graph = one_node(Thing, lambda state: {"thing": step(Opaque, key="make")}, checkpointer=store)

    with pytest.raises(UnstorableValueError, match=r"step 'make' in node 'node'"):
        graph.invoke({"count": 0}, thread("new"))


def test_result_of_a_tx_step_that_cannot_be_stored_takes_its_booking_back(store):
    def book(connection: Any) -> Opaque:
        connection.execute("CREATE TABLE bookings (what TEXT)")
        return Opaque()

    graph = one_node(Thing, lambda state: {"thing": step(book, effect="tx")}, checkpointer=store)

    with pytest.raises(UnstorableValueError, match=r"step .* in node 'node'"):
        graph.invoke({"count": 0}, thread("new"))

    tables = store.database.read(lambda tx: tx.connection.execute("SELECT name FROM sqlite_schema").fetchall())
    assert ("bookings",) not in tables


def test_argument_of_a_send_that_cannot_be_stored_is_named(store):
    graph = StateGraph(Thing)
    graph.add_node("first", lambda state: None)
    graph.add_node("second", lambda state: None)
    graph.add_edge(START, "first")
    graph.add_conditional_edges("first", lambda state: [Send("second", {"thing": Opaque()})])
    compiled = graph.compile(checkpointer=store)

    with pytest.raises(UnstorableValueError, match=r"Send\('second'.*\['thing'\]"):
        compiled.invoke({"count": 0}, thread("new"))

    assert compiled.get_state(thread("new")).next == ("first",)


def test_result_of_a_sibling_that_cannot_be_stored_is_named_and_the_others_are_kept(store):
    calls: list[str] = []
    results = [{"thing": 7}, {"thing": NESTED}]

    def left(state: Thing) -> dict[str, Any]:
        calls.append("left")
        return {"count": 1}

    graph = side_by_side(Thing, {"left": left, "right": lambda state: results.pop()}, checkpointer=store)

    with pytest.raises(UnstorableValueError, match="Opaque"):
        graph.invoke({"count": 0}, thread("new"))
    result = graph.invoke(None, thread("new"))

    assert result == {"count": 1, "thing": 7}
