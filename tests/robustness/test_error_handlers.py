"""`error_handler=`: what happens when a node has failed for good."""

from __future__ import annotations

import pytest

from bide import Command, NodeError, RetryPolicy, StateGraph, Store, interrupt, step
from bide.errors import InterruptSwallowedError, NodeFailure
from bide.types import START
from tests.robustness.states import Flaky, State, Trouble, beside, lone
from tests.threads import thread

STEADY = RetryPolicy(initial_interval=1.0, jitter=False)


def failing(driver, visits=None, error=None):
    """A node that always fails."""

    def node(state):
        if visits is not None:
            visits.append("node")
        raise error or Trouble("broken")

    return driver.node(node)


def test_handler_is_told_of_the_failure_after_the_last_attempt(driver, store):
    visits, told = [], []

    def handle(state, error: NodeError):
        told.append(error)
        return {"value": f"{error.node} failed for {state['name']}: {error.error}"}

    graph = lone(
        failing(driver, visits), {"checkpointer": store}, retry_policy=STEADY, error_handler=driver.node(handle)
    )

    result = driver.invoke(graph, {"name": "ada"}, thread())

    assert result["value"] == "node failed for ada: broken"
    assert result.is_complete
    assert visits == ["node"] * 3
    assert [type(error.error) for error in told] == [Trouble]


@pytest.mark.parametrize("named", ["by name", "by type"])
def test_handler_may_take_the_error_by_name_or_by_type(driver, store, named):
    def by_name(state, error):
        return {"value": str(error.error)}

    def by_type(state, what: NodeError):
        return {"value": str(what.error)}

    handler = by_name if named == "by name" else by_type
    graph = lone(failing(driver), {"checkpointer": store}, error_handler=driver.node(handler))

    assert driver.invoke(graph, {"name": "ada"}, thread())["value"] == "broken"


def test_handler_may_lead_elsewhere(driver, store):
    builder = StateGraph(State).add_node(
        "node",
        failing(driver),
        error_handler=driver.node(lambda state: Command(update={"log": ["handled"]}, goto="rescue")),
    )
    builder.add_node("rescue", driver.node(lambda state: {"log": ["rescued"]})).add_edge(START, "node")
    graph = builder.compile(checkpointer=store)

    assert driver.invoke(graph, {"name": "ada"}, thread())["log"] == ["handled", "rescued"]


def test_edges_of_the_node_are_followed_after_its_handler(driver, store):
    handler = driver.node(lambda state: {"log": ["handled"]})
    builder = StateGraph(State).add_node("node", failing(driver), error_handler=handler)
    builder.add_node("next", driver.node(lambda state: {"log": ["next"]}))
    graph = builder.add_edge(START, "node").add_edge("node", "next").compile(checkpointer=store)

    assert driver.invoke(graph, {"name": "ada"}, thread())["log"] == ["handled", "next"]


def test_handler_may_ask_and_the_node_does_not_run_again(driver, store):
    visits = []

    def handle(state, error):
        visits.append("handler")
        return {"value": interrupt(f"what now, after {error.error}?")}

    graph = lone(failing(driver, visits), {"checkpointer": store}, error_handler=driver.node(handle))

    paused = driver.invoke(graph, {"name": "ada"}, thread())
    result = driver.invoke(graph, Command(resume="go on"), thread())

    assert paused.interrupt_value == "what now, after broken?"
    assert result["value"] == "go on"
    assert visits == ["node", "handler", "handler"]


def test_handler_may_ask_after_the_node_has_asked_and_made_steps(driver, store):
    paid, undone = Flaky(), Flaky()

    def node(state):
        interrupt("shall I?")
        step(paid, "paid")
        raise Trouble("broken")

    def handle(state, error):
        answer = interrupt("and now?")
        return {"value": [answer, step(undone, "undone", key="undo")]}

    graph = lone(driver.node(node), {"checkpointer": store}, error_handler=driver.node(handle))
    first = driver.invoke(graph, {"name": "ada"}, thread())
    second = driver.invoke(graph, Command(resume="do"), thread())

    result = driver.invoke(graph, Command(resume="undo"), thread())

    assert (first.interrupt_value, second.interrupt_value) == ("shall I?", "and now?")
    assert result["value"] == ["undo", "undone"]
    assert (paid.calls, undone.calls) == (1, 1)


def test_step_of_a_handler_is_another_than_the_step_of_its_node(driver, store):
    calls = []

    def call(what):
        calls.append(what)
        return what

    def node(state):
        step(call, "charge")
        raise Trouble

    def handle(state):
        made = step(call, "refund")
        return {"value": [made, interrupt("fine?")]}

    graph = lone(driver.node(node), {"checkpointer": store}, error_handler=driver.node(handle))
    driver.invoke(graph, {"name": "ada"}, thread())

    result = driver.invoke(graph, Command(resume="yes"), thread())

    assert result["value"] == ["refund", "yes"]
    assert calls == ["charge", "refund"]


def test_failure_is_told_by_kind_and_text_after_a_restart(driver, tmp_path):
    url, told = f"sqlite:///{tmp_path / 'bide.db'}", []

    def handle(state, error):
        told.append(error.error)
        return {"value": interrupt("what now?")}

    def run(given):
        with Store.open(url) as store:
            graph = lone(failing(driver), {"checkpointer": store}, error_handler=driver.node(handle))
            return driver.invoke(graph, given, thread())

    run({"name": "ada"})
    run(Command(resume="go on"))

    first, second = told
    assert isinstance(first, Trouble)
    assert isinstance(second, NodeFailure)
    assert (second.kind, second.text) == ("Trouble", "broken")


def test_failure_of_the_handler_fails_the_task_and_only_the_handler_runs_again(driver, store):
    visits, flaky = [], Flaky(ValueError("the handler broke, too"))

    def handle(state):
        visits.append("handler")
        return {"value": flaky("handled")}

    graph = lone(failing(driver, visits), {"checkpointer": store}, error_handler=driver.node(handle))
    with pytest.raises(ValueError, match="the handler broke, too"):
        driver.invoke(graph, {"name": "ada"}, thread())

    result = driver.invoke(graph, None, thread())

    assert result["value"] == "handled"
    assert visits == ["node", "handler", "handler"]


def test_question_is_no_failure(driver, store):
    handled = Flaky()
    graph = lone(
        driver.node(lambda state: {"value": interrupt("go?")}),
        {"checkpointer": store},
        error_handler=driver.node(lambda state: handled()),
    )

    assert driver.invoke(graph, {"name": "ada"}, thread()).interrupt_value == "go?"
    assert driver.invoke(graph, Command(resume="yes"), thread())["value"] == "yes"
    assert handled.calls == 0


def test_handler_that_catches_its_own_question_is_told_so(driver, store):
    def handle(state):
        try:
            interrupt("what now?")
        except BaseException:  # noqa: BLE001 — the mistake that this test is about
            return {"value": "swallowed"}

    graph = lone(failing(driver), {"checkpointer": store}, error_handler=driver.node(handle))

    with pytest.raises(InterruptSwallowedError):
        driver.invoke(graph, {"name": "ada"}, thread())


def test_default_handler_is_for_nodes_without_one(driver, store):
    builder = StateGraph(State).set_node_defaults(error_handler=driver.node(lambda state: {"log": ["default"]}))
    builder.add_node("a", failing(driver)).add_edge(START, "a")
    builder.add_node("b", failing(driver), error_handler=driver.node(lambda state: {"log": ["own"]}))
    graph = builder.add_edge(START, "b").compile(checkpointer=store)

    assert driver.invoke(graph, {"name": "ada"}, thread())["log"] == ["default", "own"]


def test_handled_failure_does_not_disturb_siblings(driver, store):
    calm = Flaky()
    graph = beside(
        [
            ("calm", driver.node(lambda state: {"log": [calm("calm")]}), {}),
            ("wild", failing(driver), {"error_handler": driver.node(lambda state: {"log": ["handled"]})}),
        ],
        checkpointer=store,
    )

    assert driver.invoke(graph, {"name": "ada"}, thread())["log"] == ["calm", "handled"]
    assert calm.calls == 1


def test_graph_inside_a_node_may_fail_and_be_handled(driver, store):
    inner = lone(failing(driver))
    handler = driver.node(lambda state, error: {"value": f"inside: {error.error}"})
    graph = lone(inner, {"checkpointer": store}, error_handler=handler)

    assert driver.invoke(graph, {"name": "ada"}, thread())["value"] == "inside: broken"


def test_graph_without_a_store_has_handlers_too(driver):
    graph = lone(failing(driver), error_handler=driver.node(lambda state: {"value": "handled"}))

    assert driver.invoke(graph, {"name": "ada"})["value"] == "handled"
