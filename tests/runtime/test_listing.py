"""Threads are listed newest first, filtered and page after page; each shows the run that counts."""

from __future__ import annotations

from typing import Any

import pytest

from bide import Bide, GraphError, Store, ask, spawn
from bide.errors import UnknownThreadError
from bide.runtime.threads import list_threads
from bide.store.listing import FEW, WINDOW
from bide.store.rows import Transition
from bide.types import RunStatus
from tests.runtime.conftest import MakeWorld
from tests.runtime.world import StillClock, World, graph


def work(state: dict[str, Any]) -> dict[str, Any]:
    if state["given"] == "fail":
        raise ValueError("no")
    return {"answer": ask("?") if state["given"] == "ask" else state["given"]}


@pytest.fixture
def here(world: MakeWorld) -> World:
    return world(graph(work, "works"), graph(work, "other"))


def start(here: World, thread_id: str, given: str = "ask", graph: str = "works", **said: Any) -> None:
    here.app.start(graph, {"given": given}, thread_id=thread_id, **said)
    here.clock.pass_by(seconds=1)


def ids(threads: Any) -> list[str]:
    return [thread.thread_id for thread in threads]


@pytest.fixture
def every_status(here: World) -> dict[str, list[str]]:
    """Threads of every status, newest first."""
    for number in range(3):
        start(here, f"waiting-{number}")
        start(here, f"done-{number}", "fine")
        start(here, f"failed-{number}", "fail")
        start(here, f"cancelled-{number}")
    here.settle()
    for number in range(3):
        here.app.cancel(f"cancelled-{number}")
        start(here, f"queued-{number}", "fine", delay="1h")
    for number in range(3):
        start(here, f"running-{number}", "fine")
    assert len(here.store.claim(here.app.graphs.lanes(), 3)) == 3
    for number in range(3):
        start(here, f"ready-{number}", "fine", limit=("some", 1) if number else None)
    names = ("waiting", "done", "failed", "cancelled", "queued", "running", "ready")
    return {status: [f"{status}-{number}" for number in (2, 1, 0)] for status in names}


# ── Filters ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_threads_are_listed_newest_first(here: World) -> None:
    for name in ("b", "c", "a"):
        start(here, name)

    assert ids(here.app.list()) == ["a", "c", "b"]
    assert ids(here.app.list(most=2)) == ["a", "c"]


def test_threads_of_each_status_are_found(here: World, every_status: dict[str, list[str]]) -> None:
    found = {status: ids(here.app.list(status=status)) for status in every_status}

    assert found == every_status
    assert ids(here.app.list(status=RunStatus.DEAD)) == []
    assert len(here.app.list()) == 21


def test_blocked_and_dead_threads_are_found(here: World) -> None:
    for name in ("blocked", "dead"):
        start(here, name)
        (claim,) = here.store.claim(here.app.graphs.lanes(), 1)
        here.store.commit(claim.lease, Transition(0, status=RunStatus(name), error="told"))
        here.store.let_go(claim.lease)

    assert [(one.thread_id, one.error) for one in here.app.list(status="dead")] == [("dead", "told")]
    assert ids(here.app.list(status="blocked")) == ["blocked"]


@pytest.mark.parametrize("status", [None, *(status for status in RunStatus if status not in ("dead", "blocked"))])
def test_list_and_get_tell_the_same(here: World, every_status: Any, status: RunStatus | None) -> None:
    for one in here.app.list(status=status):
        thread = here.app.get(one.thread_id)
        assert (one.status, one.graph, one.created_at, one.updated_at, one.error, one.parent) == (
            *(thread.status, thread.graph, thread.created_at, thread.updated_at, thread.error, thread.parent),
        )


def test_graph_owner_and_parent_choose_as_well(here: World, store: Store) -> None:
    start(here, "plain")
    start(here, "of-ada", owner="ada")
    start(here, "other-of-ada", graph="other", owner="ada")

    assert ids(here.app.list(graph="other")) == ["other-of-ada"]
    assert ids(list_threads(store, owner="ada")) == ["other-of-ada", "of-ada"]
    assert ids(list_threads(store, owner="ada", graph="works", status="ready")) == ["of-ada"]
    assert ids(list_threads(store, owner="")) == ["plain"]
    assert ids(here.app.list(graph="nothing")) == []


def test_children_of_a_thread_are_listed(world: MakeWorld, store: Store) -> None:
    def parent(state: dict[str, Any]) -> dict[str, Any]:
        for number in range(3):
            spawn("works", {"given": "ask" if number else "fine"}, key=str(number))
        return {}

    here = world(graph(parent, "parent"), graph(work, "works"))
    here.app.start("parent", {"given": 1}, thread_id="p")
    here.settle()

    children = list_threads(store, parent="p")
    waiting = list_threads(store, parent="p", status="waiting")

    assert sorted(ids(children)) == sorted(here.app.children("p"))
    assert len(waiting) == 2
    assert {one.parent for one in children} == {"p"}
    assert list_threads(store, parent="nobody") == []


def test_unknown_status_is_guessed(here: World) -> None:
    with pytest.raises(GraphError, match="Did you mean 'waiting'"):
        here.app.list(status="wating")


# ── Which run counts ───────────────────────────────────────────────────────────────────────────────────────────────


def test_live_run_counts_before_one_that_is_queued_and_that_before_one_that_is_over(here: World) -> None:
    start(here, "t")
    here.settle()
    start(here, "t", if_busy="enqueue")
    assert [run.status for run in here.app.runs("t")] == ["queued", "waiting"]
    assert here.app.get("t").status == here.app.list()[0].status == "waiting"
    assert here.app.list(status="queued") == []

    first, second = reversed(here.app.runs("t"))
    here.app.cancel("t", run_id=second.run_id)
    here.app.cancel("t", run_id=first.run_id)
    assert here.app.get("t").run == here.app.runs("t")[0]
    start(here, "t", delay="1h", on_paused="restart")

    assert here.app.get("t").status == here.app.list()[0].status == "queued"


def test_thread_that_was_only_edited_has_no_run(here: World) -> None:
    here.app.graphs.get("works").graph.update_state({"configurable": {"thread_id": "t"}}, {"given": "by hand"})

    (listed,) = here.app.list()
    thread = here.app.get("t")

    assert (listed.status, thread.status, thread.run) == (None, None, None)
    assert thread.values == {"given": "by hand"}


def test_thread_shows_its_open_waits_and_none_that_are_answered(here: World) -> None:
    start(here, "t")
    here.settle()
    (wait,) = here.app.get("t").waits
    assert wait.question == "?"

    here.app.resume("t", "yes")
    assert here.app.get("t").waits == ()
    here.settle()
    assert here.app.get("t").waits == ()


def test_thread_of_a_graph_that_is_not_known_here_is_shown_without_its_state(here: World, store: Store) -> None:
    start(here, "t")
    here.settle()

    thread = Bide(store).get("t")

    assert (thread.status, thread.values, len(thread.waits)) == ("waiting", None, 1)


def test_unknown_thread_is_an_error(here: World) -> None:
    with pytest.raises(UnknownThreadError):
        here.app.get("nobody")


# ── Pages ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("status", [None, "waiting", "failed", "ready"])
def test_pages_put_together_are_the_whole_list(here: World, store: Store, every_status: Any, status: Any) -> None:
    whole = list_threads(store, status=status)
    for size in (1, 2, 5):
        pages: list[Any] = []
        while page := list_threads(store, status=status, most=size, after=pages[-1] if pages else None):
            pages += page
        assert pages == whole


def test_threads_of_the_same_moment_are_each_listed_once(here: World, store: Store) -> None:
    for number in range(7):
        here.app.start("works", {"given": "ask"}, thread_id=str(number))

    first = list_threads(store, most=4)
    rest = list_threads(store, after=first[-1])

    assert sorted(ids(first) + ids(rest)) == [str(number) for number in range(7)]


def test_list_goes_on_behind_a_thread_that_was_deleted_since_it_was_listed(here: World, store: Store) -> None:
    for name in ("a", "b", "c"):
        start(here, name)
    first = list_threads(store, most=2)
    here.store.delete_thread("b")

    assert ids(list_threads(store, after=first[-1])) == ["a"]
    with pytest.raises(UnknownThreadError):
        list_threads(store, after="b")
    assert ids(list_threads(store, after="c")) == ["a"]


def test_new_threads_do_not_shift_the_pages(here: World, store: Store) -> None:
    for name in ("a", "b", "c"):
        start(here, name)
    first = list_threads(store, most=2)
    start(here, "d")

    assert ids(list_threads(store, after=first[-1])) == ["a"]


# ── Served by an index ─────────────────────────────────────────────────────────────────────────────────────────────

PARAMS: dict[str, Any] = {
    "created_at": 0,
    "after": "",
    "graph": "",
    "is_owned": 0,
    "owner": "",
    "parent": "",
    "most": 9,
}


@pytest.mark.parametrize(
    ("query", "used"),
    [
        ("list_threads_by_age", ["threads_by_age"]),
        ("list_threads_of_parent", ["threads_of_parent"]),
        ("list_threads_by_status", ["runs_of_worker", "runs_queued", "runs_ready", "runs_limited", "runs_stuck"]),
    ],
)
def test_database_reads_the_index_and_not_every_thread(tmp_path: Any, query: str, used: list[str]) -> None:
    with Store.open(f"sqlite:///{tmp_path / 'bide.db'}") as store:

        def explain(tx: Any) -> list[str]:
            params = {**PARAMS, "status": "running", "most": 9}
            return [row[-1] for row in tx.connection.execute("EXPLAIN QUERY PLAN " + tx.sql[query], params)]

        plan = store.database.read(explain)

    assert all(any(index in line for line in plan) for index in used), plan
    # "t" is the page that was read by the index, "few" what was found by one.
    assert not [
        line for line in plan if line.startswith("SCAN") and "INDEX" not in line and line[5:] not in ("t", "few")
    ]


def test_rare_thread_among_very_many_is_found(store: Store, clock: StillClock) -> None:
    app = Bide(store, [graph(work, "works")])
    app.start("works", {"given": "ask"}, thread_id="needle")
    app.run_ready()
    many = WINDOW + 300

    def hay(tx: Any) -> None:
        for number in range(many):
            made = {"thread_id": f"hay-{number}", "uid": f"hay-{number}", "owner": "", "graph": "works"}
            tx.send("insert_thread", {**made, "now": clock.now() + number + 1})

    store.database.write("hay", hay)

    assert RunStatus.WAITING not in FEW
    assert ids(list_threads(store, status="waiting", most=2)) == ["needle"]
