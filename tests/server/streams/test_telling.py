"""What a run tells is in the log: soon, in order, whatever it is, and by nobody but who drives the run."""

from __future__ import annotations

import json
import operator
from threading import Event
from typing import Annotated, Any, TypedDict

import pytest

from bide import START, Bide, CompiledGraph, Encryption, LeaseLostError, StateGraph, Store, get_stream_writer
from bide.graph.telling import line_of
from bide.store.needed import PLAIN
from tests.server.running import until
from tests.server.streams.scenes import all_graphs

MODES = ("updates", "custom", "tasks")


class Odd(TypedDict, total=False):
    what: Any
    seen: Annotated[list[str], operator.add]


def told_in(store: Store, thread_id: str = "t", mode: str = "custom") -> list[Any]:
    """What a thread has told in one mode, in order."""
    lines = [event for event in store.events(thread_id, most=100_000) if event.kind == f"told.{mode}"]
    return [json.loads(PLAIN.decode(line.body, "event")["data"]) for line in lines]


def one_node(node: Any, name: str = "odd") -> CompiledGraph:
    return StateGraph(Odd).add_node("node", node).add_edge(START, "node").compile(name=name)


def driven(store: Store, *graphs: CompiledGraph, start: str | None = None, given: Any = None, **options: Any) -> Bide:
    """Start a run that tells, and drive it to its rest."""
    app = Bide(store, [*graphs] or all_graphs())
    app.start(start or graphs[0].name, given or {}, thread_id="t", **{"tell": MODES, **options})
    app.run_ready()
    return app


def test_what_a_node_tells_is_there_soon_though_the_node_does_nothing_more(served_store):
    is_over = Event()

    def node(state: Odd) -> dict[str, Any]:
        get_stream_writer()("working")
        assert is_over.wait(60)
        return {}

    app = Bide(served_store, [one_node(node)])
    with app.worker(poll=0.05):
        app.start("odd", {}, thread_id="t", tell=MODES)
        try:
            until(lambda: told_in(served_store) == ["working"], "it is in the log")
        finally:
            is_over.set()


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("graph", ["pouring", "pouring-async"])
def test_thousands_of_parts_come_in_order_and_each_once(served_store, graph, durability):
    app = driven(served_store, start=graph, given={"parts": 3000, "bulk": 10}, durability=durability)

    assert app.get("t").status == "done"
    assert [one["number"] for one in told_in(served_store)] == list(range(3000))
    assert [next(iter(one)) for one in told_in(served_store, mode="updates")][1:] == ["end"]
    assert served_store.verify().is_sound


@pytest.mark.parametrize("durability", ["async", "exit"])
def test_steps_that_are_saved_later_are_told_before_what_comes_after_them(served_store, durability):
    driven(served_store, start="walk", given={"goal": "Rome"}, durability=durability)

    tasks = [(one["name"], "result" in one) for one in told_in(served_store, mode="tasks")]
    assert tasks == [(name, is_over) for name in ("plan", "talk", "end") for is_over in (False, True)]
    lines = served_store.events("t", most=1000)
    assert [line.seq for line in lines] == sorted(line.seq for line in lines)
    assert served_store.verify().is_sound


class Rude:
    """A value that cannot be looked at."""

    def __repr__(self) -> str:
        raise RuntimeError("leave me alone")

    __str__ = __repr__


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        pytest.param("half a \ud800 pair", "half a ? pair", id="half a surrogate pair"),
        pytest.param(float("nan"), None, id="not a number"),
        pytest.param({1: b"\xff", (2, 3): {4}}, {"1": "/w==", "(2, 3)": [4]}, id="keys and bytes"),
        pytest.param("two\nlines\r\n\u2028three", "two\nlines\r\n\u2028three", id="line breaks"),
    ],
)
def test_whatever_is_told_has_a_form_as_json(served_store, given, shown):
    driven(served_store, one_node(lambda state: get_stream_writer()(given)))

    assert told_in(served_store) == [shown]


def test_value_that_cannot_be_shown_breaks_nothing(served_store):
    app = driven(served_store, one_node(lambda state: get_stream_writer()(Rude())))

    assert app.get("t").status == "done"
    assert "Rude" in told_in(served_store)[0]


def test_part_that_is_too_large_for_the_store_is_told_to_be_so_and_the_step_is_saved(tmp_path):
    with Store.open(f"sqlite:///{tmp_path / 'bide.db'}", largest_value=100_000) as store:
        app = driven(store, one_node(lambda state: {"what": b"x" * 90_000}))

        assert app.get("t").status == "done", "as base64 it would not fit"
        assert told_in(store, mode="updates")[0]["__error__"]["error"] == "ValueTooLargeError"
        assert store.verify().is_sound


def test_worker_that_has_lost_a_run_tells_nothing_more(served_store):
    lines = [line_of("custom", (), "late", 1000)]

    def node(state: Odd) -> dict[str, Any]:
        served_store.cancel_thread("t", reason="somebody else has it")
        get_stream_writer()("too late")
        return {}

    app = Bide(served_store, [one_node(node)])
    app.start("odd", {}, thread_id="t", tell=MODES)
    app.run_ready()

    assert told_in(served_store) == []
    lease = served_store.runs("t")[0]
    with pytest.raises(LeaseLostError):
        served_store.tell(_lease(lease.run_id), lines)
    assert told_in(served_store) == []
    assert served_store.verify().is_sound


def _lease(run_id: str) -> Any:
    from bide.store.rows import Lease

    return Lease("t", run_id, 1)


# ── What is done to a store ────────────────────────────────────────────────────────────────────────────────────────


def test_told_lines_go_along_with_a_backup_an_export_and_an_import(tmp_path):
    with Store.open(f"sqlite:///{tmp_path / 'bide.db'}") as store:
        driven(store, start="journey", given={"goal": "Rome"}, tell=(*MODES, "subgraphs"))
        told = {mode: told_in(store, mode=mode) for mode in MODES}
        assert all(told.values())
        store.backup(tmp_path / "copy.db")
        store.export_thread("t", tmp_path / "t.bide")

    with Store.open(f"sqlite:///{tmp_path / 'copy.db'}") as copy:
        assert {mode: told_in(copy, mode=mode) for mode in MODES} == told
        assert copy.verify().is_sound
    with Store.open(f"sqlite:///{tmp_path / 'other.db'}") as other:
        other.import_thread(tmp_path / "t.bide")
        assert {mode: told_in(other, mode=mode) for mode in MODES} == told
        assert other.verify().is_sound


def test_told_lines_are_encrypted_and_sealed_again_with_a_new_key(tmp_path):
    old, new = (Encryption.generate_key() for _ in range(2))
    path = f"sqlite:///{tmp_path / 'bide.db'}"
    with Store.open(path, encryption=Encryption({"old": old})) as store:
        driven(store, start="journey", given={"goal": "Rome"})
        told = told_in(store)
    with Store.open(path, encryption=Encryption({"new": new, "old": old}, current="new")) as store:
        store.reseal()
    with Store.open(path, encryption=Encryption({"new": new})) as store:
        assert told_in(store) == told
        assert store.verify().is_sound
    assert b"planning" not in (tmp_path / "bide.db").read_bytes()


def test_fork_tells_for_itself_and_the_branch_that_was_left_keeps_what_it_told(served_store):
    app = driven(served_store, start="walk", given={"goal": "Rome"})
    before = told_in(served_store, mode="updates")
    graph = app.graphs.find("walk")
    past = [state for state in graph.get_state_history({"configurable": {"thread_id": "t"}}) if state.next == ("talk",)]

    app.start("walk", None, thread_id="t", begin_at=past[0].config["configurable"]["checkpoint_id"], tell=MODES)
    app.run_ready()

    after = told_in(served_store, mode="updates")
    assert after[: len(before)] == before
    assert [next(iter(one)) for one in after[len(before) :]] == ["talk", "end"]
    assert served_store.verify().is_sound


def test_store_is_sound_when_retention_has_let_go_what_was_told(served_store):
    driven(served_store, start="journey", given={"goal": "Rome"})

    served_store.prune(thread_id="t", keep_last=1)

    assert served_store.verify().is_sound
