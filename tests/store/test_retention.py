"""What a store lets go, and what it never does. `docs/retention.md` tells it to users."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest

from bide import END, START, Command, CompiledGraph, StateGraph, Store, add_messages, interrupt
from bide.errors import (
    ConflictError,
    RetentionError,
    StoreError,
    ThreadDeletedError,
    UnknownCheckpointError,
    UnknownThreadError,
)
from bide.store.retention import Pruned, Retention
from bide.store.rows import Taking
from tests.store.conftest import FakeClock
from tests.store.histories import Life, check_nothing_is_left_over, graph_on, inner_states, points_of
from tests.stores import KINDS, opened_store
from tests.threads import one_node, thread

DAY = 24 * 3600 * 1000


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[Store]:
    with opened_store(request, tmp_path, clock=clock) as opened:
        yield opened


class Count(TypedDict, total=False):
    number: int
    until: int
    log: Annotated[list[str], lambda before, update: [*before, *update]]


def counting(store: Store, each: Callable[[int], object] = lambda number: None) -> CompiledGraph:
    """A graph that counts, one step for each number; a long list grows with it."""

    def count(state: Count) -> Command[Any]:
        number = state.get("number", 0) + 1
        each(number)
        return Command(
            update={"number": number, "log": [f"number {number} " * 20]},
            goto="node" if number < state["until"] else END,
        )

    return one_node(Count, count, checkpointer=store)


def seqs(graph: CompiledGraph, name: str = "t") -> list[int]:
    """The checkpoints of a thread that can be seen, oldest first."""
    found = [snapshot.config["configurable"]["checkpoint_id"] for snapshot in graph.get_state_history(thread(name))]
    return [int(id_.rpartition("-")[2]) for id_ in reversed(found)]


def rows_in(store: Store, table: str, where: str = "1 = 1") -> int:
    name = f'"bide".{table}' if "schema bide" in store.database.path else table

    def count(tx: Any) -> int:
        return int(tx.connection.execute(f"SELECT count(*) FROM {name} WHERE {where}").fetchone()[0])

    return store.database.read(count)


# ── Checkpoints ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_nothing_goes_unless_somebody_says_so(store, clock):
    graph = counting(store)
    graph.invoke({"until": 120}, thread())
    clock.advance(10_000 * DAY)

    graph.invoke({"until": 121}, thread())

    assert seqs(graph) == list(range(1, 124))


@pytest.mark.seed("checkpointing_test.go::TestMaxCheckpoints_AutoCleanup")
@pytest.mark.requirement("Z0-09", "T2-24")
def test_the_last_checkpoints_stay_and_older_ones_go_with_all_that_only_they_needed(store):
    graph = counting(store)
    graph.invoke({"until": 40}, thread())
    before = {
        snapshot.config["configurable"]["checkpoint_id"]: snapshot for snapshot in graph.get_state_history(thread())
    }

    pruned = store.prune(keep_last=10)

    after = {
        snapshot.config["configurable"]["checkpoint_id"]: snapshot for snapshot in graph.get_state_history(thread())
    }
    assert seqs(graph) == list(range(32, 42))
    assert after == {id_: before[id_] for id_ in after}
    assert pruned.checkpoints == 31
    assert pruned.bytes > 31 * 50
    check_nothing_is_left_over(store)


@pytest.mark.complaint(36)
def test_long_conversation_takes_room_for_what_stays_and_no_more(store):
    """LangGraph #8531: there, keeping the latest of a channel that is stored as changes loses what they build on."""

    class Chat(TypedDict):
        messages: Annotated[list[Any], add_messages]

    graph = one_node(Chat, lambda state: {"messages": [("ai", "An answer. " * 10)]}, checkpointer=store)
    for turn in range(150):
        graph.invoke({"messages": [("user", f"Question {turn}? " * 10)]}, thread())
    before = {
        tuple(snapshot.config["configurable"].items()): snapshot for snapshot in graph.get_state_history(thread())
    }

    store.prune(keep_last=1)

    after = {tuple(snapshot.config["configurable"].items()): snapshot for snapshot in graph.get_state_history(thread())}
    assert len(after) == 1
    assert after == {key: before[key] for key in after}
    assert len(graph.get_state(thread()).values["messages"]) == 300
    assert len(graph.invoke({"messages": [("user", "And now?")]}, thread())["messages"]) == 302
    assert rows_in(store, "checkpoints") < 6
    assert rows_in(store, "channel_log") < 100


@pytest.mark.parametrize("keep", [1, 2, 3, 5, 64, 65, 66, 130])
def test_every_checkpoint_that_stays_of_a_list_with_grouped_rows_reads_as_before(store, keep):
    graph = counting(store)
    graph.invoke({"until": 140}, thread())
    before = graph.get_state_history(thread(), limit=keep)
    expected = [snapshot.values for snapshot in before]

    store.prune(keep_last=keep)

    assert [snapshot.values for snapshot in graph.get_state_history(thread())] == expected
    assert graph.invoke({"until": 150}, thread())["number"] == 150
    check_nothing_is_left_over(store)


def test_checkpoints_of_a_certain_age_go(store, clock):
    graph = counting(store, lambda number: clock.advance(DAY))
    graph.invoke({"until": 10}, thread())

    store.prune(older_than="3d")

    assert seqs(graph) == [8, 9, 10, 11]


def test_with_two_rules_a_checkpoint_goes_that_neither_keeps(store, clock):
    graph = counting(store, lambda number: clock.advance(DAY))
    graph.invoke({"until": 10}, thread())

    store.prune(older_than="3d", keep_last=6)

    assert seqs(graph) == [6, 7, 8, 9, 10, 11]


def test_everything_before_a_moment_goes(store, clock):
    graph = counting(store, lambda number: clock.advance(DAY))
    graph.invoke({"until": 10}, thread())
    now = datetime.fromtimestamp(clock.now() / 1000, UTC)

    store.prune(horizon=now - timedelta(days=2))

    assert seqs(graph) == [9, 10, 11]


def test_everything_before_a_checkpoint_goes_and_other_threads_are_left_alone(store):
    graph = counting(store)
    graph.invoke({"until": 10}, thread())
    graph.invoke({"until": 10}, thread("another"))
    horizon = graph.get_state_history(thread(), limit=4)
    oldest = list(horizon)[-1].config["configurable"]["checkpoint_id"]

    store.prune(horizon=oldest)

    assert seqs(graph) == [8, 9, 10, 11]
    assert len(seqs(graph, "another")) == 11


def test_only_the_thread_that_is_named_is_pruned(store):
    graph = counting(store)
    for name in ("one", "two"):
        graph.invoke({"until": 5}, thread(name))

    pruned = store.prune(keep_last=2, thread_id="one")

    assert pruned.checkpoints == 4
    assert (len(seqs(graph, "one")), len(seqs(graph, "two"))) == (2, 6)


def test_checkpoint_that_has_gone_is_unknown_and_nothing_can_begin_there(store):
    graph = counting(store)
    graph.invoke({"until": 10}, thread())
    gone = list(graph.get_state_history(thread()))[-1].config

    store.prune(keep_last=2)

    with pytest.raises(UnknownCheckpointError):
        graph.get_state(gone)
    with pytest.raises(UnknownCheckpointError):
        graph.fork(gone)


def test_history_of_several_thousand_checkpoints_goes_in_small_transactions(store, monkeypatch):
    graph = counting(store)
    graph.invoke({"until": 60}, thread())
    monkeypatch.setattr("bide.store.pruning.BATCH", 7)
    sizes: list[int] = []
    write = store.database.write

    def watched(name: str, work: Any) -> Any:
        before = rows_in(store, "checkpoints") + rows_in(store, "channel_log")
        value = write(name, work)
        sizes.append(before - rows_in(store, "checkpoints") - rows_in(store, "channel_log"))
        return value

    monkeypatch.setattr(store.database, "write", watched)
    store.prune(keep_last=3)

    assert len(sizes) > 8
    assert max(sizes) <= 7
    assert seqs(graph) == [59, 60, 61]
    check_nothing_is_left_over(store)


# ── What always stays ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("Z0-09")
def test_thread_that_waits_keeps_its_question_and_its_checkpoint_however_old(store, clock):
    life = Life(store)
    life.do(["add"] * 5 + ["ask", "add"])
    clock.advance(1000 * DAY)
    waiting = life.graph.get_state(thread())

    store.prune(keep_last=1, ttl="1d")

    assert life.graph.get_state(thread()) == waiting
    assert [wait.thread_id for wait in store.open_waits()] == ["t"]
    life.finish()
    assert life.end()[0]["answer"] == "yes 0"


def test_question_inside_a_graph_stays_and_is_answered_where_it_was_asked(store):
    life = Life(store)
    life.do(["team", "team", "team"])
    waiting = life.graph.get_state(thread(), subgraphs=True)
    assert waiting.interrupts

    store.prune(keep_last=1)

    assert life.graph.get_state(thread(), subgraphs=True) == waiting
    life.finish()
    assert life.end()[0]["team"] == 3


def test_both_ends_of_a_fork_stay_while_the_thread_lives(store):
    life = Life(store)
    life.do(["add"] * 6)
    life.fork(3)
    life.do(["add"] * 6)
    first = max(point.seq for point in points_of(store) if point.parent == 3)

    store.prune(keep_last=2)
    store.prune(keep_last=1)

    head = seqs(life.graph)[-1]
    assert seqs(life.graph) == [3, first, head]


def test_run_that_skips_checkpoints_is_no_fork(store):
    life = Life(store)
    for _ in range(3):
        life.do(["add"] * 4, durability="exit")

    store.prune(keep_last=1)

    assert len(seqs(life.graph)) == 1


def test_edit_is_a_checkpoint_as_any_other(store):
    life = Life(store)
    life.edit(7)
    life.do(["add"] * 3)

    store.prune(keep_last=2)

    assert len(seqs(life.graph)) == 2


def test_graph_inside_a_task_goes_with_the_step_of_its_task(store):
    life = Life(store)
    life.do(["team", "add", "add", "team", "add"])
    places = sorted({ns for ns, _ in inner_states(store) if ns}, key=lambda ns: int(ns.partition(".")[0]))
    assert len(places) == 2

    store.prune(keep_last=3)

    assert {ns for ns, _ in inner_states(store) if ns} == {places[1]}


def test_long_graph_inside_a_task_keeps_its_own_last_checkpoints(store):
    """A loop that is a node of another graph is one step there."""

    def count(state: Count) -> Command[Any]:
        number = state.get("number", 0) + 1
        return Command(update={"number": number}, goto="node" if number < 30 else "asks")

    inner = StateGraph(Count).add_node("node", count).add_edge(START, "node")
    inner.add_node("asks", lambda state: {"until": interrupt("Until when?")})
    graph = one_node(Count, inner.compile(), checkpointer=store)
    graph.invoke({"number": 0}, thread())

    store.prune(keep_last=5)

    assert len([point for point in points_of(store) if point.ns and not point.pruned]) == 5
    assert graph.invoke(Command(resume=40), thread())["until"] == 40


def test_graph_that_keeps_its_state_stands_at_each_checkpoint_that_stays_as_it_stood(store):
    life = Life(store)
    life.do(["club", "add"])
    life.do(["add", "club", "add", "club", "add", "club"])
    life.finish()
    twin = Life(store, "twin")
    twin.do(["club", "add"])
    twin.do(["add", "club", "add", "club", "add", "club"])
    twin.finish()
    newest = seqs(life.graph)

    store.prune(keep_last=7, thread_id="t")
    oldest = next(seq for seq in seqs(life.graph) if life.shown()[seq].next == ("club",))
    for one in (life, twin):
        one.fork(oldest)
        one.finish()

    assert len(newest) > 10
    assert life.end() == twin.end()


def test_settled_question_can_be_seen_as_long_as_its_checkpoint(store):
    life = Life(store)
    for _ in range(4):
        life.do(["ask", "offer"])
        life.finish()
    before = life.shown()
    asked = rows_in(store, "waits")

    store.prune(keep_last=6)

    after = life.shown()
    assert after == {seq: before[seq] for seq in after}
    assert any(snapshot.interrupts for snapshot in after.values())
    assert 0 < rows_in(store, "waits") < asked


def test_events_from_before_the_last_checkpoints_go_and_the_rest_stays_numbered(store):
    life = Life(store)
    for _ in range(5):
        life.do(["add"])
    numbers = [event.number for event in store.events("t")]

    store.prune(keep_last=3)
    life.do(["add"])

    left = [event.number for event in store.events("t")]
    assert left[0] > numbers[0]
    assert left == list(range(left[0], numbers[-1] + 3))


def test_runs_that_nothing_came_from_any_more_go(store, clock):
    life = Life(store)
    for _ in range(5):
        clock.advance(1)
        life.do(["add"])

    store.prune(keep_last=2)

    assert rows_in(store, "runs") == len({point.run_id for point in points_of(store)}) < 4
    assert [row.status for row in store.threads()] == ["done"]


def test_large_values_that_nobody_needs_any_more_are_collected(store):
    life = Life(store)
    life.do(["huge", "huge", "huge", "add"])
    assert rows_in(store, "blobs") == 3

    pruned = store.prune(keep_last=1)

    assert rows_in(store, "blobs") == 1
    assert pruned.bytes > 100_000
    check_nothing_is_left_over(store)


def test_large_value_that_another_thread_holds_stays(store):
    life, other = Life(store), Life(store, "another")
    life.do(["huge", "huge", "huge"])
    other.do(["huge"])

    store.prune(keep_last=1, thread_id="t")

    assert len(other.end()[0]["big"]) == 80_000
    assert rows_in(store, "blobs") == 2


def test_failed_run_goes_on_after_everything_before_it_has_gone(store):
    fails = [True]

    def each(number: int) -> None:
        if number == 8 and fails:
            fails.clear()
            raise RuntimeError("not yet")

    graph = counting(store, each)
    with pytest.raises(RuntimeError, match="not yet"):
        graph.invoke({"until": 10}, thread())

    store.prune(keep_last=1)

    assert graph.invoke(None, thread())["number"] == 10


def test_branch_that_begins_where_the_store_lets_go_is_refused_and_nothing_is_written(store, monkeypatch):
    """Between reading a checkpoint and beginning a branch there, it may go."""
    graph = counting(store)
    graph.invoke({"until": 10}, thread())
    old = list(graph.get_state_history(thread()))[5].config
    begin, edit = store.begin, store.edit

    def late(what: Callable[..., Any]) -> Callable[..., Any]:
        def call(taking: Taking, *more: Any) -> Any:
            store.prune(keep_last=1)
            return what(taking, *more)

        return call

    monkeypatch.setattr(store, "begin", late(begin))
    monkeypatch.setattr(store, "edit", late(edit))
    with pytest.raises(ConflictError, match="let go"):
        graph.invoke(None, old)
    monkeypatch.setattr(store, "begin", begin)
    graph.invoke({"until": 20}, thread())
    older = list(graph.get_state_history(thread()))[5].config
    with pytest.raises(ConflictError, match="let go"):
        graph.fork(older)

    assert len(seqs(graph)) == 1
    assert graph.invoke({"until": 21}, thread())["number"] == 21


def test_branch_that_was_begun_while_a_thread_was_looked_at_keeps_all_that_it_needs(store, monkeypatch):
    life = Life(store)
    life.do(["add"] * 8)
    read = store.database.read
    forked: list[int] = []

    def read_then_fork(work: Any) -> Any:
        value = read(work)
        if not forked and type(value).__name__ == "Plan":
            life.fork(7)
            forked.append(min(point.seq for point in points_of(store) if point.seq > 8 and point.parent == 7))
        return value

    monkeypatch.setattr(store.database, "read", read_then_fork)
    before = life.shown()
    store.prune(keep_last=1)
    monkeypatch.setattr(store.database, "read", read)

    after = life.shown()
    assert after.keys() == {7, forked[0], max(after)}
    assert max(after) > forked[0]
    assert all(after[seq] == before[seq] for seq in after.keys() & before.keys())
    check_nothing_is_left_over(store)


def test_damaged_thread_is_left_as_it_is_and_the_others_are_pruned(store):
    graph = counting(store)
    for name in ("damaged", "sound"):
        graph.invoke({"until": 6}, thread(name))
    table = '"bide".checkpoints' if "schema bide" in store.database.path else "checkpoints"
    store.database.write(
        "damage",
        lambda tx: tx.connection.execute(f"UPDATE {table} SET step = 77 WHERE thread_id = 'damaged' AND seq = 6"),
    )

    pruned = store.prune(keep_last=2)

    assert [thread_id for thread_id, _ in pruned.failed] == ["damaged"]
    assert "checksum" in pruned.failed[0][1]
    assert rows_in(store, "checkpoints", "thread_id = 'damaged'") == 7
    assert len(seqs(graph, "sound")) == 2


# ── Whole threads ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_thread_in_which_nothing_happens_for_long_is_deleted_whole(store, clock):
    graph = counting(store)
    graph.invoke({"until": 3}, thread("old"))
    clock.advance(20 * DAY)
    graph.invoke({"until": 3}, thread("new"))
    clock.advance(11 * DAY)

    pruned = store.prune(ttl="30d")

    assert pruned == Pruned(threads=1)
    assert [row.thread_id for row in store.threads()] == ["new"]
    for table in ("checkpoints", "runs", "events", "channel_log"):
        assert rows_in(store, table, "thread_id = 'old'") == 0
    assert rows_in(store, "tombstones") == 1


@pytest.mark.parametrize("activity", ["invoke", "edit", "fork"])
def test_whatever_happens_in_a_thread_begins_its_time_anew(store, clock, activity):
    graph = counting(store)
    graph.invoke({"until": 3}, thread())
    clock.advance(20 * DAY)
    if activity == "invoke":
        graph.invoke({"until": 4}, thread())
    elif activity == "edit":
        graph.update_state(thread(), {"until": 4})
    else:
        graph.fork(graph.get_state(thread()).config)
    clock.advance(20 * DAY)

    assert store.prune(ttl=timedelta(days=30)).threads == 0
    clock.advance(11 * DAY)
    assert store.prune(ttl=timedelta(days=30)).threads == 1


def test_thread_that_is_used_again_in_the_last_moment_is_not_deleted(store, clock, monkeypatch):
    graph = counting(store)
    graph.invoke({"until": 3}, thread())
    clock.advance(40 * DAY)
    read = store.database.read
    is_used: list[bool] = []

    def read_then_use(work: Any) -> Any:
        value = read(work)
        if not is_used:
            is_used.append(True)
            graph.invoke({"until": 5}, thread())
        return value

    monkeypatch.setattr(store.database, "read", read_then_use)
    pruned = store.prune(ttl="30d")

    assert pruned.threads == 0
    assert graph.get_state(thread()).values["number"] == 5


def test_caller_who_read_a_thread_before_it_was_deleted_for_its_age_writes_nothing(store, clock, monkeypatch):
    graph = counting(store)
    graph.invoke({"until": 3}, thread())
    begin = store.begin

    def late(taking: Taking) -> Any:
        clock.advance(40 * DAY)
        store.prune(ttl="30d")
        return begin(taking)

    monkeypatch.setattr(store, "begin", late)

    with pytest.raises(ThreadDeletedError):
        graph.invoke({"until": 4}, thread())
    assert store.threads() == []


def test_it_is_remembered_for_a_month_that_a_thread_was_deleted(store, clock):
    counting(store).invoke({"until": 3}, thread())
    store.delete_thread("t")

    clock.advance(30 * DAY - 1)
    store.prune(keep_last=1)
    remembered = rows_in(store, "tombstones")
    clock.advance(1)
    store.prune(keep_last=1)

    assert (remembered, rows_in(store, "tombstones")) == (1, 0)


def test_expired_items_and_cached_results_go_along(store, clock):
    store.items.put(("a",), "fleeting", {"x": 1}, ttl=1)
    store.items.put(("a",), "lasting", {"x": 1})
    cached = {"place": "p", "key": "k", "body": b"x"}
    store.database.write("test", lambda tx: tx.run("write_cached", {**cached, "expires_at": clock.now() + 60_000}))
    clock.advance(60_000)

    pruned = store.prune(keep_last=1)

    assert pruned.rows == 2
    assert rows_in(store, "items") == 1
    assert rows_in(store, "cache") == 0


def test_threads_of_another_owner_are_none_of_ours(store, clock):
    graph = counting(store)
    graph.invoke({"until": 5}, thread())
    store.bodies.owner = "somebody else"

    clock.advance(100 * DAY)

    assert not any(store.prune(keep_last=1, ttl="1d"))


def test_policy_of_the_store_holds_where_prune_names_none(store, clock):
    store.retention = Retention(keep_last=2, ttl="30d")
    graph = counting(store)
    graph.invoke({"until": 5}, thread())

    assert store.prune().checkpoints == 4
    clock.advance(31 * DAY)
    assert store.prune(thread_id="t").threads == 1


def test_thread_that_is_not_there_is_not_pruned_and_named(store):
    with pytest.raises(UnknownThreadError, match="'nobody'"):
        store.prune(keep_last=1, ttl="1d", thread_id="nobody")


def test_store_without_a_policy_must_be_told_what_may_go(store):
    with pytest.raises(RetentionError, match="no policy"):
        store.prune()


def test_horizon_that_is_no_checkpoint_of_the_thread_is_refused(store):
    graph = counting(store)
    graph.invoke({"until": 5}, thread())
    mine = graph.get_state(thread()).config["configurable"]["checkpoint_id"]

    for horizon, name in ((f"{mine}9", None), ("nobody-00000001", None), ("x", None), (mine, "another")):
        with pytest.raises(RetentionError, match="Nothing was deleted"):
            store.prune(horizon=horizon, thread_id=name)
    assert len(seqs(graph)) == 6


def test_store_that_was_closed_is_not_pruned(store):
    store.close()

    with pytest.raises(StoreError, match="closed"):
        store.prune(keep_last=1)


def test_graph_of_a_pruned_thread_is_found_by_its_checkpoint_alone(store):
    graph = graph_on(store)
    graph.invoke({"words": ["add"] * 4 + ["ask"]}, thread())
    id_ = graph.get_state(thread()).config["configurable"]["checkpoint_id"]

    store.prune(keep_last=1)

    result = graph.invoke(Command(resume="yes"), {"configurable": {"checkpoint_id": id_}})
    assert result["answer"] == "yes"
