"""Following a thread from anywhere: every event and every step, in order, live, and again from any of them."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event as Signal
from threading import Thread
from typing import Any, TypedDict

import pytest

from bide import END, START, Bide, CompiledGraph, GraphError, MemorySaver, StateGraph, Store, ask
from bide.errors import ThreadDeletedError, UnknownCheckpointError, UnknownThreadError
from bide.runtime.following import PAGE, afollow
from bide.runtime.views import Event
from bide.store.facts import event_of
from bide.store.writes import Writing
from tests.runtime.conftest import MakeWorld
from tests.runtime.world import World
from tests.stores import SCHEMA


class Letter(TypedDict, total=False):
    text: str
    signed: str
    count: int


def letters() -> CompiledGraph:
    """Writes, asks who signs, and sends."""
    builder = StateGraph(Letter)
    builder.add_node("write", lambda state: {"text": state["text"].upper()})
    builder.add_node("sign", lambda state: {"signed": ask("Who signs?")})
    builder.add_node("send", lambda state: {"count": 1})
    for one, other in [(START, "write"), ("write", "sign"), ("sign", "send"), ("send", END)]:
        builder.add_edge(one, other)
    return builder.compile(name="letters")


def counting(until: int) -> CompiledGraph:
    """Takes one step for each number."""
    builder = StateGraph(Letter)
    builder.add_node("count", lambda state: {"count": state["count"] + 1})
    builder.add_edge(START, "count")
    builder.add_conditional_edges("count", lambda state: "count" if state["count"] < until else END)
    return builder.compile(name="counting")


FAR = {"config": {"recursion_limit": 100_000}}


def shown(events: list[Event]) -> list[str]:
    return [event.kind if event.kind != "step" else f"step {event.data['step']}" for event in events]


def check_replays(app: Bide, thread_id: str, told: list[Event]) -> None:
    """From every id that was told, exactly the rest is told again."""
    for index, event in enumerate(told):
        again = list(app.follow(thread_id, after=event.id, until="rest"))
        assert sorted(map(_what, again)) == sorted(map(_what, told[index + 1 :])), event.id


def _what(event: Event) -> tuple[str, Any, str]:
    return event.kind, event.at, repr(event.data)


def log(store: Store, thread_id: str, kind: str, seq: int) -> None:
    """Add a line to a thread's log from outside, as a wake does."""

    def write(tx: Any) -> None:
        tx.send("hold_thread", {"thread_id": thread_id})
        Writing(tx, store.bodies, store.clock.now()).log_events(thread_id, None, seq, [event_of(kind)])

    store.database.write("log", write)


@pytest.fixture
def here(world: MakeWorld) -> World:
    return world(letters(), counting(250))


# ── One story ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_events_and_steps_are_told_in_one_order(here: World) -> None:
    run = here.app.start("letters", {"text": "dear"})
    here.settle()
    here.app.resume(run.thread_id, "Ada")
    here.settle()

    told = list(here.app.follow(run.thread_id))

    assert shown(told) == [
        *("run.ready", "step 0", "run.started", "step 1", "run.waiting"),
        *("wait.answered", "step 2", "step 3", "run.done"),
    ]
    assert all(event.thread_id == run.thread_id and event.run_id == run.run_id for event in told)
    assert told[4].data["asks"][0]["node"] == "sign"


def test_step_tells_who_ran_who_comes_next_and_which_keys_changed_but_no_values(here: World) -> None:
    run = here.app.start("letters", {"text": "dear"})
    here.settle()

    steps = [event.data for event in here.app.follow(run.thread_id, until="rest") if event.kind == "step"]

    state = here.app.graphs.get("letters").graph.get_state({"configurable": {"thread_id": run.thread_id}})
    assert [(step["nodes"], step["next"], step["changed"]) for step in steps] == [
        (["__start__"], ["write"], ["text"]),
        (["write"], ["sign"], ["text"]),
    ]
    assert steps[-1]["checkpoint_id"] == state.config["configurable"]["checkpoint_id"]
    assert "DEAR" not in repr(steps)


def test_only_keys_that_changed_are_named_through_hundreds_of_steps(here: World) -> None:
    run = here.app.start("counting", {"count": 0, "text": "x" * 2000, "signed": "y"}, **FAR)
    here.settle()

    changed = [event.data["changed"] for event in here.app.follow(run.thread_id) if event.kind == "step"]

    assert changed == [["count", "signed", "text"]] + [["count"]] * 250


def test_from_every_id_that_was_told_exactly_the_rest_is_told(here: World) -> None:
    run = here.app.start("letters", {"text": "dear"})
    here.settle()
    told = list(here.app.follow(run.thread_id, until="rest"))
    here.app.resume(run.thread_id, "Ada")
    here.settle()
    told += here.app.follow(run.thread_id, after=told[-1].id)

    assert len({event.id for event in told}) == len(told) == 9
    check_replays(here.app, run.thread_id, told)


def test_lines_that_name_an_older_checkpoint_keep_their_place_in_the_log(here: World) -> None:
    run = here.app.start("letters", {"text": "dear"})
    here.settle()
    for kind, seq in [("a", 2), ("b", 0), ("c", 1), ("d", 2)]:
        log(here.store, run.thread_id, kind, seq)
    here.app.resume(run.thread_id, "Ada")
    here.settle()

    told = list(here.app.follow(run.thread_id))

    assert [kind for kind in shown(told) if len(kind) == 1] == ["a", "b", "c", "d"]
    assert shown(told)[-3:] == ["step 2", "step 3", "run.done"]
    check_replays(here.app, run.thread_id, told)


def test_long_story_is_told_page_by_page_in_the_same_order(here: World) -> None:
    run = here.app.start("counting", {"count": 0}, **FAR)
    here.settle()
    for number in range(2 * PAGE + 10):
        log(here.store, run.thread_id, f"line-{number}", 100 + number // 10)

    told = list(here.app.follow(run.thread_id))

    assert [kind for kind in shown(told) if kind.startswith("step")] == [f"step {number}" for number in range(251)]
    numbers = [int(kind[5:]) for kind in shown(told) if kind.startswith("line-")]
    assert numbers == list(range(2 * PAGE + 10))
    places = {kind: place for place, kind in enumerate(shown(told))}
    # Line 0 was written after run.done, which came after the last step; so all lines come behind that.
    assert places["line-0"] > places["run.done"] > places["step 250"]
    for event in told[:: PAGE // 3]:
        assert len(list(here.app.follow(run.thread_id, after=event.id))) == len(told) - told.index(event) - 1


def test_lines_between_steps_of_a_long_story_stay_between_them(here: World) -> None:
    run = here.app.start("counting", {"count": 0}, **FAR)
    for number in range(150):
        log(here.store, run.thread_id, f"line-{number}", 2 * number)
    here.settle()

    told = shown(list(here.app.follow(run.thread_id)))

    places = {kind: place for place, kind in enumerate(told)}
    for number in range(1, 120):
        assert places[f"step {2 * number - 1}"] < places[f"line-{number}"] < places[f"step {2 * number}"]


# ── Live ───────────────────────────────────────────────────────────────────────────────────────────────────────────


class Follower:
    """Somebody who follows in a thread of their own, through an application of their own."""

    def __init__(self, app: Bide, thread_id: str, **said: Any) -> None:
        self.told: list[Event] = []
        self.error: BaseException | None = None
        self._news = Signal()
        self._events = app.follow(thread_id, **said)
        self._thread = Thread(target=self._follow)
        self._thread.start()

    def _follow(self) -> None:
        try:
            for event in self._events:
                self.told.append(event)
                self._news.set()
        except Exception as problem:  # noqa: BLE001 — the test looks at it
            self.error = problem
        self._news.set()

    def see(self, kind: str) -> None:
        """Wait until something of this kind was told."""
        while kind not in shown(self.told):
            assert self._news.wait(30), f"{kind} never came: {shown(self.told)}"
            self._news.clear()

    def end(self) -> list[Event]:
        self._thread.join(30)
        assert not self._thread.is_alive()
        return self.told


def test_thread_is_followed_while_it_runs_waits_and_ends(here: World) -> None:
    run = here.app.start("letters", {"text": "dear"})
    follower = Follower(here.app, run.thread_id)

    follower.see("run.ready")
    here.settle()
    follower.see("run.waiting")
    here.app.resume(run.thread_id, "Ada")
    follower.see("wait.answered")
    here.settle()

    assert follower.end() == list(here.app.follow(run.thread_id))


@pytest.fixture
def elsewhere(here: World, store: Store, request: pytest.FixtureRequest) -> Iterator[Bide]:
    """An application without graphs, over another connection to the same database where that can be."""
    if isinstance(store, MemorySaver):
        yield Bide(store)
        return
    is_file = not store.database.path.startswith("postgresql")
    url = f"sqlite:///{store.database.path}" if is_file else request.getfixturevalue("shared_postgres")[0]
    with Store.open(url, schema=None if is_file else SCHEMA, clock=here.clock) as opened:
        yield Bide(opened)


def test_thread_is_followed_over_another_connection_by_somebody_without_its_graph(here: World, elsewhere: Bide) -> None:
    run = here.app.start("letters", {"text": "dear"})
    follower = Follower(elsewhere, run.thread_id)
    follower.see("run.ready")
    here.settle()
    here.app.resume(run.thread_id, "Ada")
    here.settle()

    assert shown(follower.end()) == shown(list(here.app.follow(run.thread_id)))


def test_lines_that_come_while_the_run_commits_are_neither_lost_nor_told_twice(here: World) -> None:
    run = here.app.start("counting", {"count": 0}, **FAR)
    follower = Follower(here.app, run.thread_id)

    def wake_and_wake() -> None:
        for number in range(120):
            head = here.store.database.read(lambda tx: tx.one("read_head", {"thread_id": run.thread_id, "ns": ""}))
            log(here.store, run.thread_id, f"line-{number}", (head and head[0]) or 0)

    waker = Thread(target=wake_and_wake)
    waker.start()
    here.settle()
    waker.join()
    told = follower.end()
    told += here.app.follow(run.thread_id, after=told[-1].id)

    whole = list(here.app.follow(run.thread_id))
    assert sorted(map(_what, told)) == sorted(map(_what, whole))
    assert len({event.id for event in told}) == len(told) == 251 + 3 + 120
    for event in told[::25]:
        rest = list(here.app.follow(run.thread_id, after=event.id))
        assert sorted(map(_what, rest)) == sorted(map(_what, told[told.index(event) + 1 :]))


async def test_thread_is_followed_on_an_event_loop(here: World) -> None:
    run = here.app.start("letters", {"text": "dear"})
    here.settle()

    told = [event async for event in afollow(here.store, here.app.graphs, run.thread_id, until="rest")]

    assert told == list(here.app.follow(run.thread_id, until="rest"))


# ── Until when ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_follower_who_leaves_at_rest_leaves_when_the_thread_waits_and_the_other_stays(here: World) -> None:
    run = here.app.start("letters", {"text": "dear"})
    stays = Follower(here.app, run.thread_id)
    leaves = Follower(here.app, run.thread_id, until="rest")
    here.settle()

    assert shown(leaves.end())[-1] == "run.waiting"
    stays.see("run.waiting")
    here.app.cancel(run.thread_id)
    assert shown(stays.end())[-1] == "run.cancelled"


def test_thread_with_a_run_that_is_put_off_has_not_come_to_its_end(here: World) -> None:
    here.app.start("letters", {"text": "one"}, thread_id="t")
    here.settle()
    here.app.cancel("t")
    here.app.start("letters", {"text": "two"}, thread_id="t", delay="1h")

    stays = Follower(here.app, "t", until="rest")
    stays.see("run.queued")
    here.clock.pass_by(hours=1)
    here.settle()

    assert shown(stays.end())[-1] == "run.waiting"


def test_follower_who_never_leaves_hears_of_the_next_run_as_well(here: World) -> None:
    here.app.start("letters", {"text": "one"}, thread_id="t")
    stays = Follower(here.app, "t", until=None)
    here.settle()
    here.app.cancel("t")
    stays.see("run.cancelled")
    here.app.start("letters", {"text": "two"}, thread_id="t", on_paused="restart")
    stays.see("run.ready")

    here.store.delete_thread("t")
    stays.end()
    assert isinstance(stays.error, ThreadDeletedError)


# ── Gone, unknown, damaged ─────────────────────────────────────────────────────────────────────────────────────────


def test_thread_that_is_deleted_while_it_is_followed_ends_the_story_with_an_error(here: World) -> None:
    run = here.app.start("letters", {"text": "dear"})
    follower = Follower(here.app, run.thread_id)
    follower.see("run.ready")

    here.store.delete_thread(run.thread_id)

    follower.end()
    assert isinstance(follower.error, ThreadDeletedError)
    assert follower.told[-1].id in str(follower.error)


def test_id_of_an_earlier_life_of_the_thread_is_refused(here: World) -> None:
    here.app.start("letters", {"text": "dear"}, thread_id="t")
    here.settle()
    first = next(here.app.follow("t"))
    here.store.delete_thread("t")
    here.app.start("letters", {"text": "anew"}, thread_id="t")
    here.settle()

    with pytest.raises(ThreadDeletedError, match="begun anew"):
        here.app.follow("t", after=first.id)


def test_id_of_something_that_has_not_happened_is_refused(here: World) -> None:
    run = here.app.start("letters", {"text": "dear"})

    for after in ("0.2", "1.1", "99.99"):
        with pytest.raises(ThreadDeletedError):
            here.app.follow(run.thread_id, after=after)


def test_unknown_thread_is_an_error_at_once(here: World) -> None:
    with pytest.raises(UnknownThreadError):
        here.app.follow("nobody")


@pytest.mark.parametrize("after", ["", "12", "a.b", "1.-2", "1.2e3", ".", "9" * 30 + ".1", "١.٢x"])
def test_what_is_no_id_of_an_event_is_refused(here: World, after: str) -> None:
    run = here.app.start("letters", {"text": "dear"})

    with pytest.raises(UnknownCheckpointError, match="not the id of an event"):
        here.app.follow(run.thread_id, after=after)


def test_unknown_end_is_refused(here: World) -> None:
    with pytest.raises(GraphError, match="until"):
        here.app.follow("t", until="done")  # type: ignore[arg-type]


def test_damaged_lines_are_told_as_such_and_the_story_goes_on(here: World) -> None:
    run = here.app.start("letters", {"text": "dear"})
    here.settle()
    damage = {"thread_id": run.thread_id, "new": b"\x01nothing that was ever written"}

    def harm(tx: Any) -> None:
        (event,) = tx.all("read_events", {"thread_id": run.thread_id, "after": 1, "most": 1})
        tx.run("reseal_events_body", {**damage, "number": event[0], "old": event[5]})
        (step,) = tx.all("follow_checkpoints", {"thread_id": run.thread_id, "after": 1, "most": 1})
        tx.run("reseal_checkpoints_body", {**damage, "ns": "", "seq": step[0], "old": step[7]})

    here.store.database.write("harm", harm)

    told = list(here.app.follow(run.thread_id, until="rest"))

    assert shown(told) == ["run.ready", "step 0", "run.started", "step 1", "run.waiting"]
    assert "checksum" in told[2].data
    assert "checksum" in told[3].data["problem"]
    assert told[3].data["changed"] is None
