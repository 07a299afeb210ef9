"""How often a caller waits for the network: once for each write, whatever it consists of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypedDict

import pytest

from bide import START, StateGraph, Store
from bide.errors import AlreadyAnsweredError, LeaseLostError
from bide.store.postgres_wire import Wire
from bide.store.rows import CheckpointRow, EventRow, Lease, Transition, WaitRow
from bide.types import RunStatus, WaitStatus
from tests.store.test_postgres_fences import BODY, LINE, NEW, NEXT
from tests.threads import thread

EVENTS = (EventRow("one", b""), EventRow("two", b""))
WAIT = WaitRow("wait", "task", "node", "key", "call", WaitStatus.OPEN, "digest", b"?")
PAUSE = Transition(1, NEXT, (LINE,), (WAIT,), EVENTS, RunStatus.WAITING, over=("",))


@pytest.fixture
def store(postgres_url: str) -> Iterator[Store]:
    with Store.open(postgres_url, schema="bide") as store:
        yield store


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], int]:
    """Counts how often something waits for an answer of the server."""
    count = 0
    exchange = Wire.exchange

    def counted(wire: Wire, *args: Any) -> Any:
        nonlocal count
        count += 1
        return exchange(wire, *args)

    monkeypatch.setattr(Wire, "exchange", counted)

    def trips_of(work: Callable[[], Any]) -> int:
        nonlocal count
        count = 0
        work()
        return count

    return trips_of


def begun(store: Store) -> Lease:
    return store.begin(NEW)[1]


def test_beginning_of_a_thread_is_one_round_trip(store, trips):
    assert trips(lambda: store.begin(NEW._replace(events=EVENTS))) == 1


def test_plain_step_is_one_round_trip(store, trips):
    lease = begun(store)

    assert trips(lambda: store.commit(lease, Transition(1, NEXT))) == 1


def test_pause_with_its_questions_journal_and_events_is_one_round_trip(store, trips):
    lease = begun(store)

    assert trips(lambda: store.commit(lease, PAUSE)) == 1
    assert [(event.number, event.kind) for event in store.events("t")] == [(1, "one"), (2, "two")]


def test_line_of_a_journal_is_one_round_trip(store, trips):
    lease = begun(store)

    assert trips(lambda: store.keep(lease, LINE)) == 1


def test_answer_to_a_waiting_thread_is_one_round_trip(store, trips):
    store.commit(begun(store), PAUSE)
    stored = store.load("t", None)
    assert stored is not None
    wish = NEW._replace(uid=stored.uid, head=2, claim=stored.run, answers=(("wait", b"!"),), checkpoint=None)

    assert trips(lambda: store.begin(wish)) == 1


def test_reading_a_thread_is_two_round_trips(store, trips):
    begun(store)

    assert trips(lambda: store.load("t", None)) == 2


def test_graph_of_many_steps_waits_once_for_each(store, trips):
    class State(TypedDict):
        n: int

    def count(state: State) -> dict[str, int]:
        return {"n": state["n"] + 1}

    builder = StateGraph(State)
    builder.add_sequence([(str(number), count) for number in range(20)])
    builder.add_edge(START, "0")
    graph = builder.compile(checkpointer=store)

    one = trips(lambda: graph.invoke({"n": 0}, thread("one")))
    assert one <= 20 + 3


def test_what_was_refused_in_the_middle_says_what_it_was_and_leaves_nothing(store):
    lease = begun(store)
    store.commit(lease, PAUSE)
    stored = store.load("t", None)
    assert stored is not None
    answered = NEW._replace(
        uid=stored.uid,
        head=2,
        claim=stored.run,
        answers=(("wait", b"!"), ("no such wait", b"!")),
        checkpoint=CheckpointRow(3, 2, 2, "input", BODY),
    )

    with pytest.raises(AlreadyAnsweredError, match="no such wait"):
        store.begin(answered)
    with pytest.raises(LeaseLostError):
        store.commit(lease, PAUSE)

    assert store.load("t", None) == stored


def test_connection_is_as_good_as_new_after_a_refusal(store, trips):
    lease = begun(store)
    with pytest.raises(LeaseLostError):
        store.commit(lease._replace(epoch=9), PAUSE)

    assert trips(lambda: store.commit(lease, Transition(1, NEXT))) == 1
