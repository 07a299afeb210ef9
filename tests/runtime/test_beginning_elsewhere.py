"""A run that is started at an older checkpoint: its input begins anew there; without input, it goes on from there."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest

from bide import START, Bide, Command, StateGraph, UnknownCheckpointError, interrupt
from bide.store import Store
from bide.store.rows import checkpoint_id

CONFIG = {"configurable": {"thread_id": "t"}}


class Trip(TypedDict, total=False):
    goal: str
    steps: Annotated[list[str], operator.add]


def ask(state: Trip) -> dict[str, Any]:
    return {"steps": [interrupt("where?")]}


@pytest.fixture
def app(store: Store) -> Bide:
    builder = StateGraph(Trip)
    builder.add_node("first", lambda state: {"steps": ["first"]})
    builder.add_node("second", lambda state: {"steps": ["second"]})
    builder.add_edge(START, "first").add_edge("first", "second")
    asking = StateGraph(Trip).add_node(ask).add_edge(START, "ask")
    return Bide(store, [builder.compile(name="trip"), asking.compile(name="asking")])


def went(app: Bide, given: Any, graph: str = "trip", **options: Any) -> Any:
    app.start(graph, given, thread_id="t", **options)
    app.run_ready()
    return app.get("t").values


def place_before(app: Bide, node: str) -> str:
    graph = app.graphs.find("trip")
    assert graph is not None
    found = [state.config for state in graph.get_state_history(CONFIG) if state.next == (node,)]
    return str(found[-1]["configurable"]["checkpoint_id"])


def test_input_begins_anew_over_the_state_of_that_checkpoint(app):
    went(app, {"goal": "sea"})

    values = went(app, {"goal": "hill"}, begin_at=place_before(app, "second"))

    assert values == {"goal": "hill", "steps": ["first", "first", "second"]}


def test_input_at_the_newest_checkpoint_is_input_like_any_other(app):
    went(app, {"goal": "sea"})
    head = app.graphs.find("trip").get_state(CONFIG).config["configurable"]["checkpoint_id"]

    assert went(app, {"goal": "hill"}, begin_at=head)["steps"] == ["first", "second", "first", "second"]


def test_without_input_it_goes_on_from_there_on_a_branch_of_its_own(app):
    went(app, {"goal": "sea"})
    before = place_before(app, "second")

    assert went(app, None, begin_at=before)["steps"] == ["first", "second"]

    history = list(app.graphs.find("trip").get_state_history(CONFIG))
    assert [state.metadata["source"] for state in history] == ["loop", "fork", "loop", "loop", "input"]
    assert history[1].parent_config["configurable"]["checkpoint_id"] == before
    assert app.store.verify().is_sound


def test_before_the_first_checkpoint_there_is_the_empty_state(app):
    went(app, {"goal": "sea"})
    nothing = checkpoint_id(app.store.uid_of("t"), 0)

    assert went(app, {"goal": "hill"}, begin_at=nothing) == {"goal": "hill", "steps": ["first", "second"]}


def test_once_it_has_begun_it_goes_on_where_it_stands(app):
    went(app, {"goal": "sea"}, "asking")
    went(app, Command(resume="north"), "asking")
    nothing = checkpoint_id(app.store.uid_of("t"), 0)

    went(app, {"goal": "hill"}, "asking", begin_at=nothing)
    assert app.get("t").status == "waiting"

    app.resume("t", "south")
    app.run_ready()
    assert app.get("t").values == {"goal": "hill", "steps": ["south"]}


def test_what_is_no_checkpoint_is_refused_before_anything_is_started(app):
    went(app, {"goal": "sea"})

    with pytest.raises(UnknownCheckpointError):
        app.start("trip", {"goal": "x"}, thread_id="t", begin_at="nonsense")

    assert len(app.runs("t")) == 1


def test_branch_before_the_first_checkpoint_is_empty_and_begins_as_a_new_thread_does(app):
    went(app, {"goal": "sea"})
    graph = app.graphs.find("trip")
    nothing = checkpoint_id(app.store.uid_of("t"), 0)

    graph.fork({"configurable": {"thread_id": "t", "checkpoint_id": nothing}})

    state = graph.get_state(CONFIG)
    assert (state.values, state.next, state.parent_config) == ({"steps": []}, (), None)
    assert went(app, {"goal": "hill"}) == {"goal": "hill", "steps": ["first", "second"]}
    assert app.store.verify().is_sound
