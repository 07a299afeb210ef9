"""A harness drives an application here and now, on a clock that the test moves."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, TypedDict

import pytest

from bide import START, CachePolicy, CompiledGraph, RetryPolicy, StateGraph, Store, interrupt, sleep, spawn, wait_for
from bide.errors import BideError
from bide.testing import FakeClock, Harness
from bide.waits import after, child, event


class Letter(TypedDict, total=False):
    text: str
    answer: Any
    naps: int


def graph(name: str, *nodes: Any, **options: Any) -> CompiledGraph:
    builder = StateGraph(Letter).add_sequence(list(nodes)).add_edge(START, nodes[0].__name__)
    return builder.compile(name=name, **options)


def ask(state: Letter) -> Letter:
    return {"answer": interrupt(state.get("text", "well?"))}


def hear(state: Letter) -> Letter:
    return {"answer": wait_for(event("news"), timeout="2d", default=None)}


def fail(state: Letter) -> Letter:
    raise ValueError("out of paper")


def test_nothing_happens_before_it_is_asked_for():
    with Harness([graph("g", ask)]) as harness:
        run = harness.start("g", {"text": "who?"})

        assert harness.thread(run).status == "ready"
        assert [one.outcome for one in harness.run_until_idle()] == ["waiting"]
        assert harness.run_until_idle() == []


def test_question_is_answered_and_the_thread_goes_on(any_store: Store):
    with Harness([graph("g", ask)], store=any_store) as harness:
        run = harness.start("g", {"text": "who?"})
        harness.run_until_idle()

        asked = harness.assert_waiting(run, "question", at="ask")
        woken = harness.answer(run, "Ada", by="bob")
        harness.run_until_idle()

        assert (asked.question, woken.is_new) == ("who?", True)
        harness.assert_done(run, answer="Ada")
        harness.assert_sound()


def test_delivery_wakes_who_waits_for_it(any_store: Store):
    with Harness([graph("g", hear)], store=any_store) as harness:
        run = harness.start("g", {})
        harness.run_until_idle()

        delivered = harness.deliver("news", {"n": 1})
        harness.run_until_idle()

        assert delivered.threads == (run.thread_id,)
        assert harness.state(run)["answer"].value == {"n": 1}


def test_clock_is_moved_through_every_moment_at_which_something_is_due():
    seen: list[datetime] = []

    def nap(state: Letter) -> Letter:
        seen.append(harness.clock.moment)
        sleep("1h", key=f"nap {state.get('naps', 0)}")
        return {"naps": state.get("naps", 0) + 1}

    builder = StateGraph(Letter).add_node(nap).add_edge(START, "nap")
    builder.add_conditional_edges("nap", lambda state: "nap" if state["naps"] < 3 else "__end__")
    clock = FakeClock(start=datetime(2026, 1, 1, tzinfo=UTC))
    with Harness([builder.compile(name="naps")], clock=clock) as harness:
        run = harness.start("naps", {})

        harness.advance("90m")
        halfway = harness.state(run)
        harness.advance("10h")

        assert halfway == {"naps": 1}
        harness.assert_done(run, naps=3)
        assert sorted({moment.hour for moment in seen}) == [0, 1, 2, 3]
        assert clock.moment == datetime(2026, 1, 1, 11, 30, tzinfo=UTC)


def test_run_that_was_put_off_starts_when_it_is_due():
    with Harness([graph("g", ask)]) as harness:
        run = harness.start("g", {}, delay="2h")

        harness.advance("119m")
        before = harness.thread(run).status
        harness.advance("1m")

        assert before == "queued"
        harness.assert_waiting(run, "question")


def test_back_off_between_attempts_takes_the_clock_along():
    tries: list[int] = []

    def shaky(state: Letter) -> Letter:
        tries.append(harness.clock.now())
        if len(tries) < 3:
            raise ConnectionError("busy")
        return {"text": "sent"}

    policy = RetryPolicy(max_attempts=3, initial_interval=60, backoff_factor=1, jitter=False)
    built = StateGraph(Letter).add_node("shaky", shaky, retry_policy=policy).add_edge(START, "shaky").compile(name="g")
    with Harness([built]) as harness:
        run = harness.start("g", {})
        harness.run_until_idle()

        harness.assert_done(run, text="sent")
        assert [tries[0] + 60_000, tries[0] + 120_000] == tries[1:]


def test_children_are_driven_too():
    def delegate(state: Letter) -> Letter:
        result = wait_for(child(spawn("worker", {"text": "dig"})))
        return {"answer": result.value.status}

    def dig(state: Letter) -> Letter:
        return {"text": "dug"}

    with Harness([graph("boss", delegate), graph("worker", dig)]) as harness:
        run = harness.start("boss", {})
        harness.run_until_idle()

        harness.assert_done(run, answer="done")
        assert len(harness.app.children(run.thread_id)) == 1


def test_graph_that_goes_round_in_circles_is_told():
    def again(state: Letter) -> Letter:
        wait_for(after(0), key=str(state.get("naps", 0)))
        return {"naps": state.get("naps", 0) + 1}

    builder = StateGraph(Letter).add_node(again).add_edge(START, "again").add_edge("again", "again")
    with Harness([builder.compile(name="circles")]) as harness:
        harness.start("circles", {})

        with pytest.raises(AssertionError, match="After 50 drives something is still ready"):
            harness.run_until_idle(most=50)


# ── Expectations ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_broken_expectation_tells_the_story_of_the_thread():
    with Harness([graph("g", ask)]) as harness:
        run = harness.start("g", {"text": "who?"})
        harness.run_until_idle()

        with pytest.raises(AssertionError) as told:
            harness.assert_done(run)

    story = str(told.value)
    assert "expected a thread that is done" in story
    assert "is waiting" in story
    assert "waits at 'ask' for an answer: who?" in story
    assert "run.waiting" in story


@pytest.mark.parametrize(
    ("expect", "told"),
    [
        (lambda harness, run: harness.assert_done(run, answer="Bob"), "expected answer='Bob', found 'Ada'"),
        (lambda harness, run: harness.assert_done(run, color="red"), "expected color='red', found nothing"),
        (lambda harness, run: harness.assert_waiting(run), "expected a thread that is waiting"),
        (lambda harness, run: harness.assert_failed(run), "expected a thread that is failed"),
        (lambda harness, run: harness.assert_cancelled(run), "expected a thread that is cancelled"),
        (lambda harness, run: harness.wait(run), "expected one open question, found 0"),
    ],
)
def test_expectation_that_does_not_hold_fails(expect, told):
    with Harness([graph("g", ask)]) as harness:
        run = harness.start("g", {})
        harness.run_until_idle()
        harness.answer(run, "Ada")
        harness.run_until_idle()

        with pytest.raises(AssertionError, match=told):
            expect(harness, run)


def test_failure_and_cancellation_can_be_expected():
    with Harness([graph("fails", fail), graph("asks", ask)]) as harness:
        failing, asking = harness.start("fails", {}), harness.start("asks", {})
        harness.run_until_idle()
        harness.cancel(asking)

        harness.assert_failed(failing, "out of paper")
        harness.assert_cancelled(asking)
        with pytest.raises(AssertionError, match="expected an error with 'out of ink'"):
            harness.assert_failed(failing, "out of ink")


# ── Graphs and stores ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_graph_with_a_store_of_its_own_leaves_it_alone():
    with Store.open(":memory:") as own:
        asking = graph("g", ask, checkpointer=own)

        with Harness([asking]) as harness:
            harness.start("g", {})
            harness.run_until_idle()

        assert asking.checkpointer is own
        assert own.threads() == []


def test_one_graph_serves_one_harness_after_the_other():
    asking = graph("g", ask)

    for _ in range(2):
        with Harness([asking]) as harness:
            run = harness.start("g", {}, thread_id="same")
            harness.run_until_idle()
            harness.assert_waiting(run)


def test_kept_results_of_nodes_are_not_shared_between_harnesses():
    calls: list[str] = []

    def slow(state: Letter) -> Letter:
        calls.append("called")
        return {"text": "dear"}

    built = StateGraph(Letter).add_node("slow", slow, cache_policy=CachePolicy()).add_edge(START, "slow")
    compiled = built.compile(name="g")

    for _ in range(2):
        with Harness([compiled]) as harness:
            harness.start("g", {"naps": 1})
            harness.start("g", {"naps": 1})
            harness.run_until_idle()

    assert len(calls) == 2


def test_store_that_follows_the_real_time_is_refused():
    with Store.open(":memory:") as store, pytest.raises(BideError, match=r"clock=FakeClock\(\)"):
        Harness([graph("g", ask)], store=store)


def test_given_store_stays_open_and_is_as_it_was(memory_store: Store):
    database = memory_store.database

    with Harness([graph("g", ask)], store=memory_store) as harness:
        run = harness.start("g", {})
        harness.crash()

    assert memory_store.database is database
    assert [row.thread_id for row in memory_store.threads()] == [run.thread_id]
