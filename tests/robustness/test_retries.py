"""`RetryPolicy`: which errors are tried again, when, how often, and what an attempt finds of the one before."""

from __future__ import annotations

from random import Random

import pytest

from bide import Command, GraphDrained, RetryPolicy, Send, StateGraph, get_runtime, interrupt, step
from bide.engine.care import is_passing
from bide.errors import GraphError, NodeTimeoutError
from bide.types import START
from tests.robustness.states import Flaky, State, Trouble, beside, lone
from tests.threads import thread

STEADY = RetryPolicy(initial_interval=1.0, jitter=False)
"""Waits 1, 2, 4 … seconds."""


def test_node_is_tried_again_after_growing_delays_until_it_succeeds(driver, store, clock):
    flaky = Flaky(Trouble("1"), Trouble("2"), Trouble("3"))
    graph = lone(
        driver.node(lambda state: {"value": flaky("made it")}),
        {"checkpointer": store},
        retry_policy=RetryPolicy(
            initial_interval=1.0, backoff_factor=3.0, max_interval=5.0, max_attempts=4, jitter=False
        ),
    )

    result = driver.invoke(graph, {"name": "x"}, thread())

    assert result["value"] == "made it"
    assert clock.naps == [1.0, 3.0, 5.0]


def test_last_error_is_raised_with_the_count_of_attempts(driver, store, clock):
    flaky = Flaky(*(Trouble(str(number)) for number in range(1, 10)))
    graph = lone(driver.node(lambda state: flaky()), {"checkpointer": store}, retry_policy=STEADY)

    with pytest.raises(Trouble, match="3") as raised:
        driver.invoke(graph, {"name": "x"}, thread())

    assert "It was attempt 3 of 3." in raised.value.__notes__
    assert flaky.calls == 3
    assert clock.naps == [1.0, 2.0]


def test_delay_stays_at_its_most_however_many_attempts_there_are():
    policy = RetryPolicy(max_attempts=1_000_000, jitter=False)

    assert policy.delay_ms(100_000, Random(1)) == 128_000


def test_jitter_adds_up_to_a_second(driver, store, clock):
    flaky = Flaky(Trouble(), Trouble())
    graph = lone(
        driver.node(lambda state: {"value": flaky()}),
        {"checkpointer": store},
        retry_policy=RetryPolicy(initial_interval=10.0, backoff_factor=1.0),
    )

    driver.invoke(graph, {"name": "x"}, thread())

    assert len(clock.naps) == 2
    assert all(10.0 <= nap <= 11.0 for nap in clock.naps)


def test_graph_without_a_store_tries_again_too(driver):
    flaky = Flaky(Trouble())
    policy = RetryPolicy(initial_interval=0.0, jitter=False)
    graph = lone(driver.node(lambda state: {"value": flaky()}), retry_policy=policy)

    assert driver.invoke(graph, {"name": "x"})["value"] == "done"
    assert flaky.calls == 2


@pytest.mark.parametrize(
    "retry_on",
    [KeyError, (KeyError, OSError), [KeyError], lambda error: isinstance(error, KeyError)],
    ids=["type", "tuple", "list", "function"],
)
def test_policy_says_which_errors_it_is_for(driver, store, clock, retry_on):
    policy = RetryPolicy(initial_interval=1.0, jitter=False, retry_on=retry_on)
    covered, other = Flaky(KeyError("k")), Flaky(ValueError("v"))

    good = lone(driver.node(lambda state: {"value": covered()}), {"checkpointer": store}, retry_policy=policy)
    bad = lone(driver.node(lambda state: {"value": other()}), {"checkpointer": store}, retry_policy=policy)

    assert driver.invoke(good, {"name": "x"}, thread("good"))["value"] == "done"
    with pytest.raises(ValueError, match="v"):
        driver.invoke(bad, {"name": "x"}, thread("bad"))
    assert (covered.calls, other.calls) == (2, 1)


def test_first_policy_that_covers_an_error_counts(driver, store, clock):
    policies = [
        RetryPolicy(initial_interval=1.0, jitter=False, retry_on=KeyError),
        RetryPolicy(initial_interval=60.0, jitter=False, retry_on=LookupError, max_attempts=5),
    ]
    flaky = Flaky(KeyError(), IndexError(), IndexError())
    graph = lone(driver.node(lambda state: {"value": flaky()}), {"checkpointer": store}, retry_policy=policies)

    driver.invoke(graph, {"name": "x"}, thread())

    assert clock.naps == [1.0, 120.0, 128.0]


class _Response:
    def __init__(self, status: int) -> None:
        self.status_code = status


class HttpError(OSError):
    """As HTTP clients raise it: an OSError with a response."""

    def __init__(self, status: int) -> None:
        super().__init__(f"status {status}")
        self.response = _Response(status)


@pytest.mark.parametrize(
    "error",
    [Trouble(), ConnectionError(), ConnectionResetError(), NodeTimeoutError("t"), HttpError(500), HttpError(503)],
    ids=repr,
)
def test_by_default_errors_that_may_pass_are_tried_again(error):
    assert is_passing(error)


@pytest.mark.parametrize(
    "error",
    [
        ValueError(),
        TypeError(),
        ZeroDivisionError(),
        ImportError(),
        KeyError(),
        NameError(),
        SyntaxError(),
        RuntimeError(),
        ReferenceError(),
        StopIteration(),
        StopAsyncIteration(),
        FileNotFoundError(),
        HttpError(404),
        HttpError(429),
    ],
    ids=repr,
)
def test_by_default_mistakes_are_not_tried_again(error):
    assert not is_passing(error)


@pytest.mark.parametrize("wrong", [{"max_attempts": 0}, {"initial_interval": -1.0}, {"backoff_factor": 0.0}])
def test_policy_that_makes_no_sense_is_refused_where_it_is_written(wrong):
    with pytest.raises(GraphError, match="RetryPolicy"):
        RetryPolicy(**wrong)


@pytest.mark.parametrize("wrong", ["KeyError", [KeyError, "OSError"], 3], ids=repr)
def test_retry_on_that_is_no_kind_of_error_is_refused_where_it_is_written(wrong):
    with pytest.raises(GraphError, match="retry_on"):
        RetryPolicy(retry_on=wrong)


def test_node_knows_which_attempt_it_is(driver, store):
    seen = []

    def node(state):
        seen.append(get_runtime().attempt)
        if len(seen) < 3:
            raise Trouble
        return {"value": seen[-1]}

    graph = lone(driver.node(node), {"checkpointer": store}, retry_policy=STEADY)

    assert driver.invoke(graph, {"name": "x"}, thread())["value"] == 3
    assert seen == [1, 2, 3]


# ── What an attempt finds of the one before ────────────────────────────────────────────────────────────────────────


def test_steps_of_a_failed_attempt_are_not_made_again(driver, store):
    paid, flaky = Flaky(), Flaky(Trouble(), Trouble())

    def node(state):
        receipt = step(paid, "receipt")
        flaky()
        return {"value": receipt}

    graph = lone(driver.node(node), {"checkpointer": store}, retry_policy=STEADY)

    assert driver.invoke(graph, {"name": "x"}, thread())["value"] == "receipt"
    assert (paid.calls, flaky.calls) == (1, 3)


def test_answer_counts_for_every_attempt(driver, store):
    flaky = Flaky(Trouble(), Trouble())
    asked = []

    def node(state):
        answer = interrupt("go?")
        asked.append(answer)
        flaky()
        return {"value": answer}

    graph = lone(driver.node(node), {"checkpointer": store}, retry_policy=STEADY)
    paused = driver.invoke(graph, {"name": "x"}, thread())

    result = driver.invoke(graph, Command(resume="yes"), thread())

    assert paused.interrupt_value == "go?"
    assert result["value"] == "yes"
    assert asked == ["yes", "yes", "yes"]


def test_interrupt_is_no_failure(driver, store, clock):
    visits = []

    def node(state):
        visits.append("in")
        return {"value": interrupt("go?")}

    graph = lone(
        driver.node(node),
        {"checkpointer": store},
        retry_policy=RetryPolicy(retry_on=lambda error: True, jitter=False),
    )

    paused = driver.invoke(graph, {"name": "x"}, thread())

    assert paused.is_interrupted
    assert visits == ["in"]
    assert clock.naps == []


def test_question_may_come_after_a_failed_attempt(driver, store):
    flaky = Flaky(Trouble())

    def node(state):
        flaky()
        return {"value": interrupt("go?")}

    graph = lone(driver.node(node), {"checkpointer": store}, retry_policy=STEADY)

    paused = driver.invoke(graph, {"name": "x"}, thread())
    result = driver.invoke(graph, Command(resume="yes"), thread())

    assert paused.interrupt_value == "go?"
    assert result["value"] == "yes"


def test_drained_run_is_not_tried_again(driver, store, clock):
    def node(state):
        raise GraphDrained("stop")

    graph = lone(driver.node(node), {"checkpointer": store}, retry_policy=RetryPolicy(retry_on=lambda error: True))

    with pytest.raises(GraphDrained):
        driver.invoke(graph, {"name": "x"}, thread())

    assert clock.naps == []


# ── Series of attempts ─────────────────────────────────────────────────────────────────────────────────────────────


def test_going_on_after_the_last_attempt_begins_a_new_series(driver, store, clock):
    seen = []

    def node(state):
        seen.append(get_runtime().attempt)
        if len(seen) < 5:
            raise Trouble
        return {"value": "at last"}

    graph = lone(driver.node(node), {"checkpointer": store}, retry_policy=STEADY)
    with pytest.raises(Trouble):
        driver.invoke(graph, {"name": "x"}, thread())

    result = driver.invoke(graph, None, thread())

    assert result["value"] == "at last"
    assert seen == [1, 2, 3, 1, 2]
    assert clock.naps == [1.0, 2.0, 1.0]


def test_going_on_after_an_error_that_no_policy_covers_begins_a_new_series(driver, store, clock):
    seen = []
    errors = iter([Trouble(), ValueError("a mistake"), Trouble()])

    def node(state):
        seen.append(get_runtime().attempt)
        error = next(errors, None)
        if error is not None:
            raise error
        return {"value": "mended"}

    graph = lone(driver.node(node), {"checkpointer": store}, retry_policy=STEADY)
    with pytest.raises(ValueError, match="a mistake"):
        driver.invoke(graph, {"name": "x"}, thread())

    result = driver.invoke(graph, None, thread())

    assert result["value"] == "mended"
    assert seen == [1, 2, 1, 2]


# ── Who is tried again ─────────────────────────────────────────────────────────────────────────────────────────────


def test_only_the_send_that_failed_is_tried_again(driver, store):
    seen = []
    flaky = Flaky(Trouble())

    def node(arg):
        seen.append((arg["name"], get_runtime().attempt))
        if arg["name"] == 1:
            flaky()
        return {"log": [arg["name"]]}

    builder = StateGraph(State).add_node("node", driver.node(node), retry_policy=STEADY)
    builder.add_conditional_edges(START, lambda state: [Send("node", {"name": number}) for number in range(3)])
    graph = builder.compile(checkpointer=store)

    result = driver.invoke(graph, {}, thread())

    assert result["log"] == [0, 1, 2]
    assert sorted(seen) == [(0, 1), (1, 1), (1, 2), (2, 1)]


def test_node_that_is_a_graph_is_tried_again_where_it_failed(driver, store):
    first, second = Flaky(), Flaky(Trouble(), Trouble())
    inner = StateGraph(State)
    inner.add_node("first", driver.node(lambda state: {"log": [first("first")]}))
    inner.add_node("second", driver.node(lambda state: {"log": [second("second")]}))
    inner.add_edge(START, "first").add_edge("first", "second")
    graph = lone(inner.compile(), {"checkpointer": store}, retry_policy=STEADY)

    result = driver.invoke(graph, {"name": "x"}, thread())

    assert result["log"] == ["first", "second"]
    assert (first.calls, second.calls) == (1, 3)


def test_finished_siblings_inside_a_graph_do_not_run_again_when_it_is_tried_again(driver, store):
    calm, flaky = Flaky(), Flaky(Trouble(), Trouble())
    inner = beside(
        [
            ("calm", driver.node(lambda state: {"log": [calm("calm")]}), {}),
            ("flaky", driver.node(lambda state: {"log": [flaky("flaky")]}), {}),
        ]
    )
    graph = lone(inner, {"checkpointer": store}, retry_policy=STEADY)

    result = driver.invoke(graph, {"name": "x"}, thread(max_concurrency=1))

    assert result["log"] == ["calm", "flaky"]
    assert (calm.calls, flaky.calls) == (1, 3)


def test_graph_of_one_node_inside_a_node_is_tried_again(driver, store):
    flaky = Flaky(Trouble(), Trouble())
    inner = lone(driver.node(lambda state: {"log": [flaky()]}))
    graph = lone(inner, {"checkpointer": store}, retry_policy=STEADY)

    result = driver.invoke(graph, {"name": "x"}, thread())

    assert result["log"] == ["done"]
    assert flaky.calls == 3


def test_node_inside_a_graph_inside_a_node_is_tried_again_by_its_own_policy(driver, store, clock):
    flaky = Flaky(Trouble(), Trouble())
    inner = lone(driver.node(lambda state: {"log": [flaky()]}), retry_policy=STEADY)
    graph = lone(inner, {"checkpointer": store})

    result = driver.invoke(graph, {"name": "x"}, thread())

    assert result["log"] == ["done"]
    assert clock.naps == [1.0, 2.0]


def test_defaults_are_for_nodes_without_a_policy_of_their_own(driver, store, clock):
    common, own, none = Flaky(Trouble()), Flaky(Trouble()), Flaky(Trouble())
    builder = StateGraph(State).set_node_defaults(retry_policy=STEADY)
    builder.add_node("common", driver.node(lambda state: {"log": [common("common")]}))
    builder.add_node(
        "own",
        driver.node(lambda state: {"log": [own("own")]}),
        retry_policy=RetryPolicy(initial_interval=7.0, jitter=False),
    )
    builder.add_node("none", driver.node(lambda state: {"log": [none("none")]}), retry_policy=())
    graph = builder.add_edge(START, "common").add_edge("common", "own").add_edge("own", "none").compile(store)

    with pytest.raises(Trouble):
        driver.invoke(graph, {"name": "x"}, thread())

    assert clock.naps == [1.0, 7.0]
    assert (common.calls, own.calls, none.calls) == (2, 2, 1)


def test_siblings_finish_once_while_a_node_is_tried_again(driver, store):
    flaky, other = Flaky(Trouble(), Trouble()), Flaky()
    graph = beside(
        [
            ("a", driver.node(lambda state: {"log": [flaky("a")]}), {"retry_policy": STEADY}),
            ("b", driver.node(lambda state: {"log": [other("b")]}), {}),
        ],
        checkpointer=store,
    )

    result = driver.invoke(graph, {"name": "x"}, thread())

    assert result["log"] == ["a", "b"]
    assert (flaky.calls, other.calls) == (3, 1)
