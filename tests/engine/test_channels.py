"""Channels: by which rule the writes of a step become the value of a state key."""

from __future__ import annotations

import operator
from threading import Event
from typing import Annotated, Any, TypedDict

import pytest

from bide import (
    START,
    AIMessage,
    AnyValue,
    Command,
    EphemeralValue,
    HumanMessage,
    MemorySaver,
    MessagesState,
    Overwrite,
    RemoveMessage,
    Send,
    StateGraph,
    Store,
    UntrackedValue,
    add_messages,
    interrupt,
)
from bide.errors import InvalidUpdateError
from tests.threads import in_a_row, one_node, side_by_side, thread


class Log(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


def writes(**update: Any) -> Any:
    return lambda state: update


# ── Last value ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_key_without_a_rule_keeps_the_last_value():
    graph = in_a_row({"x": int}, {"a": writes(x=1), "b": writes(x=2)})

    assert graph.invoke({"x": 0}).value == {"x": 2}


def test_two_writers_of_a_plain_key_in_one_step_are_an_error_that_names_the_key_and_both():
    graph = side_by_side({"x": int}, {"left": writes(x=1), "right": writes(x=2)})

    with pytest.raises(InvalidUpdateError, match=r"'x' got 2 values.*reducer") as caught:
        graph.invoke({"x": 0})

    assert "'left', 'right'" in str(caught.value)


def test_two_writers_make_no_checkpoint_and_a_reducer_mends_the_thread(store: Store):
    nodes = {"left": writes(x=1), "right": writes(x=2)}
    graph = side_by_side({"x": int}, nodes, checkpointer=store)

    with pytest.raises(InvalidUpdateError):
        graph.invoke({"x": 0}, thread())
    history = [seen.values for seen in graph.get_state_history(thread())]
    done = side_by_side({"x": Annotated[int, operator.add]}, nodes, checkpointer=store).invoke(None, thread())

    assert history == [{"x": 0}]
    assert done["x"] == 3


def test_node_that_hands_back_what_it_was_given_writes_nothing():
    def whole_state(state: Any) -> Any:
        return state

    class State(Log):
        x: int

    graph = side_by_side(State, {"left": whole_state, "right": whole_state})

    assert graph.invoke({"x": 1, "log": ["in"]}).value == {"x": 1, "log": ["in"]}


def test_node_that_changes_its_state_in_place_and_returns_it_has_written_the_change():
    def change(state: Any) -> Any:
        state["log"].append("more")
        state["x"] = 5
        return state

    class State(Log):
        x: int

    assert one_node(State, change).invoke({"x": 1, "log": ["in"]}).value == {"x": 5, "log": ["in", "more"]}


# ── Reducers ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_reducer_folds_every_write_of_a_step_in_task_order():
    graph = side_by_side(Log, {"c": writes(log=["c"]), "a": writes(log=["a"]), "b": writes(log=["b"])})

    assert graph.invoke({"log": ["in"]})["log"] == ["in", "a", "b", "c"]


@pytest.mark.parametrize(("kind", "empty"), [(list, []), (int, 0), (str, ""), (set, set()), (dict, {})])
def test_reducer_begins_with_the_empty_value_of_the_annotated_type(kind: type, empty: Any):
    seen = []

    def merge(old: Any, new: Any) -> Any:
        seen.append(old)
        return new

    one_node({"x": Annotated[kind, merge], "y": int}, writes(x=kind())).invoke({"y": 1})

    assert seen == [empty]


def test_reducer_of_a_type_without_an_empty_value_takes_the_first_write_as_it_is():
    class Money:
        pass

    graph = one_node({"x": Annotated[Money, operator.add], "y": int}, writes(x="first"))

    assert graph.invoke({"y": 1})["x"] == "first"


def fussy(old: list[str], new: list[str]) -> list[str]:
    if "bad" in new:
        raise ZeroDivisionError("not this one")
    return old + new


def test_reducer_that_raises_is_a_typed_error_that_names_it_and_its_key():
    graph = one_node({"x": Annotated[list, fussy]}, writes(x=["bad"]))

    with pytest.raises(InvalidUpdateError, match=r"'fussy'.*'x'.*not this one") as caught:
        graph.invoke({"x": []})

    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_reducer_that_raises_saves_nothing_and_the_run_goes_on_when_it_is_mended(store: Store):
    schema = {"x": Annotated[list, fussy], "y": int}
    broken = in_a_row(schema, {"a": writes(y=1), "b": writes(x=["bad"])}, checkpointer=store)
    with pytest.raises(InvalidUpdateError):
        broken.invoke({"x": ["in"]}, thread())
    saved = broken.get_state(thread())

    schema["x"] = Annotated[list, operator.add]
    done = in_a_row(schema, {"a": writes(y=1), "b": writes(x=["bad"])}, checkpointer=store).invoke(None, thread())

    assert (saved.values, saved.next) == ({"x": ["in"], "y": 1}, ("b",))
    assert done.value == {"x": ["in", "bad"], "y": 1}


def test_update_that_a_reducer_refused_is_mended_in_the_node_though_the_node_finished_first():
    recorded = Event()

    class Telling(MemorySaver):
        def commit(self, lease, transition):
            super().commit(lease, transition)
            recorded.set()

    def nodes(word: str) -> dict[str, Any]:
        def late(state: Any) -> Any:
            recorded.wait(10)

        return {"early": writes(x=[word]), "late": late}

    schema = {"x": Annotated[list, fussy]}
    with Telling() as store:
        with pytest.raises(InvalidUpdateError, match="fix the reducer or the update, then continue"):
            side_by_side(schema, nodes("bad"), checkpointer=store).invoke({"x": []}, thread())

        assert side_by_side(schema, nodes("good"), checkpointer=store).invoke(None, thread())["x"] == ["good"]


def test_reducer_that_raises_in_the_input_leaves_no_thread_behind(store: Store):
    graph = one_node({"x": Annotated[list, fussy]}, writes(), checkpointer=store)

    with pytest.raises(InvalidUpdateError, match="not this one"):
        graph.invoke({"x": ["bad"]}, thread())

    assert graph.get_state(thread()).created_at is None


# ── Overwrite ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_overwrite_replaces_the_value_past_its_reducer():
    assert one_node(Log, writes(log=Overwrite(["new"]))).invoke({"log": ["old"]})["log"] == ["new"]


def test_writes_beside_an_overwrite_are_folded_into_the_new_value():
    nodes = {"a": writes(log=["a"]), "b": writes(log=Overwrite(["new"])), "c": writes(log=["c"])}

    assert side_by_side(Log, nodes).invoke({"log": ["old"]})["log"] == ["new", "a", "c"]


def test_two_overwrites_in_one_step_are_an_error():
    nodes = {"a": writes(log=Overwrite([])), "b": writes(log=Overwrite([]))}

    with pytest.raises(InvalidUpdateError, match="2 Overwrite"):
        side_by_side(Log, nodes).invoke({"log": []})


def test_overwrite_on_a_plain_key_is_the_value_itself():
    assert one_node({"x": int}, writes(x=Overwrite(7))).invoke({"x": 1})["x"] == 7


def test_overwrite_of_a_finished_sibling_survives_the_pause(store: Store):
    nodes = {"a": writes(log=Overwrite(["new"])), "b": lambda state: {"log": [interrupt("?")]}}
    graph = side_by_side(Log, nodes, checkpointer=store)
    graph.invoke({"log": ["old"]}, thread())

    assert graph.invoke(Command(resume="b"), thread())["log"] == ["new", "b"]


# ── Ephemeral, untracked, any ──────────────────────────────────────────────────────────────────────────────────────


class Fleeting(TypedDict, total=False):
    note: Annotated[str, EphemeralValue]
    log: Annotated[list[str], operator.add]


def read_note(state: Fleeting) -> Fleeting:
    return {"log": [state.get("note", "nothing")]}


def test_ephemeral_value_lives_for_one_step():
    graph = in_a_row(Fleeting, {"a": writes(note="psst"), "b": read_note, "c": read_note})

    assert graph.invoke({"log": []}).value == {"log": ["psst", "nothing"]}


def test_ephemeral_value_survives_a_pause_before_the_step_that_reads_it(store: Store):
    graph = in_a_row(Fleeting, {"a": writes(note="psst"), "b": read_note}, checkpointer=store, interrupt_before=["b"])
    graph.invoke({"log": []}, thread())

    assert graph.invoke(None, thread())["log"] == ["psst"]


def test_untracked_value_is_seen_by_later_nodes_and_is_never_stored(store: Store):
    class State(Log):
        secret: Annotated[str, UntrackedValue]

    def use(state: State) -> Any:
        return {"log": [state.get("secret", "gone")]}

    graph = in_a_row(State, {"a": use, "b": use, "c": use}, checkpointer=store, interrupt_before=["c"])

    graph.invoke({"secret": "hunter2", "log": []}, thread())
    stored = graph.get_state(thread()).values
    done = graph.invoke(None, thread())

    assert stored == {"log": ["hunter2", "hunter2"]}
    assert done["log"] == ["hunter2", "hunter2", "gone"]


def test_untracked_value_may_be_something_that_cannot_be_stored(store: Store):
    class State(Log):
        connection: Annotated[Any, UntrackedValue]

    graph = one_node(State, lambda state: {"log": [type(state["connection"]).__name__]}, checkpointer=store)

    assert graph.invoke({"connection": object(), "log": []}, thread())["log"] == ["object"]


def test_untracked_write_of_a_finished_sibling_is_not_stored_at_a_pause(store: Store):
    class State(Log):
        secret: Annotated[Any, UntrackedValue]

    nodes = {"a": writes(secret=object(), log=["a"]), "b": lambda state: {"log": [interrupt("?")]}}
    graph = side_by_side(State, nodes, checkpointer=store)

    paused = graph.invoke({"log": []}, thread())

    assert paused.is_interrupted
    assert graph.invoke(Command(resume="b"), thread())["log"] == ["a", "b"]


def test_any_value_takes_several_writers_and_keeps_the_last_in_task_order():
    graph = side_by_side({"x": Annotated[int, AnyValue]}, {"b": writes(x=2), "a": writes(x=1)})

    assert graph.invoke({"x": 0})["x"] == 2


# ── Barriers ───────────────────────────────────────────────────────────────────────────────────────────────────────


def logging(name: str) -> Any:
    return lambda state: {"log": [name]}


def long_and_short() -> StateGraph:
    """One branch takes two steps, the other one; `end` waits for both."""
    builder = StateGraph(Log)
    for name in ("short", "long1", "long2", "end"):
        builder.add_node(name, logging(name))
    builder.add_edge(START, "short").add_edge(START, "long1").add_edge("long1", "long2")
    return builder.add_edge(["short", "long2"], "end")


def test_edge_from_several_nodes_waits_for_all_of_them():
    assert long_and_short().compile().invoke({"log": []})["log"] == ["long1", "short", "long2", "end"]


def test_two_single_edges_into_a_node_run_it_whenever_one_fires():
    builder = StateGraph(Log)
    for name in ("short", "long1", "long2", "end"):
        builder.add_node(name, logging(name))
    builder.add_edge(START, "short").add_edge(START, "long1").add_edge("long1", "long2")
    builder.add_edge("short", "end").add_edge("long2", "end")

    assert builder.compile().invoke({"log": []})["log"] == ["long1", "short", "end", "long2", "end"]


def test_half_filled_barrier_survives_a_pause(store: Store):
    graph = long_and_short().compile(store, interrupt_before=["long2"])
    graph.invoke({"log": []}, thread())

    assert graph.invoke(None, thread())["log"] == ["long1", "short", "long2", "end"]


def test_barrier_is_empty_again_after_it_has_fired_and_on_new_input(store: Store):
    graph = long_and_short().compile(store)
    graph.invoke({"log": []}, thread())

    again = graph.invoke({"log": ["|"]}, thread())

    assert again["log"] == ["long1", "short", "long2", "end", "|", "long1", "short", "long2", "end"]


def test_barrier_is_no_key_of_the_state(store: Store):
    graph = long_and_short().compile(store, interrupt_before=["long2"])

    assert set(graph.invoke({"log": []}, thread())) == {"log"}
    assert set(graph.get_state(thread()).values) == {"log"}


# ── Messages ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_messages_are_added_replaced_by_id_and_removed(store: Store):
    nodes = {
        "say": writes(messages=[AIMessage("hi", id="1")]),
        "mend": writes(messages=[AIMessage("hello", id="1"), AIMessage("bye", id="2")]),
        "take_back": writes(messages=[RemoveMessage(id="2")]),
    }
    graph = in_a_row(MessagesState, nodes, checkpointer=store)

    done = graph.invoke({"messages": [HumanMessage("hey", id="0")]}, thread())

    assert [(message.type, message.content) for message in done["messages"]] == [("human", "hey"), ("ai", "hello")]
    assert graph.get_state(thread()).values["messages"] == done["messages"]


def test_messages_of_parallel_nodes_come_in_task_order_with_ids_of_their_own():
    class Chat(TypedDict):
        messages: Annotated[list, add_messages]

    nodes = {"b": writes(messages=("ai", "from b")), "a": writes(messages="from a")}

    done = side_by_side(Chat, nodes).invoke({"messages": "start"})

    assert [message.content for message in done["messages"]] == ["start", "from a", "from b"]
    assert len({message.id for message in done["messages"]}) == 3


# ── What nodes write ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("nonsense", [5, "text", [1, 2], object])
def test_node_that_returns_nonsense_is_told_what_a_node_returns(nonsense: Any):
    with pytest.raises(InvalidUpdateError, match=r"'node' returned .* A node returns a dict"):
        one_node({"x": int}, lambda state: nonsense).invoke({"x": 1})


def test_unknown_key_is_an_error_that_names_the_likely_one():
    with pytest.raises(InvalidUpdateError, match=r"'mesages'.*Did you mean 'messages'"):
        one_node(MessagesState, writes(mesages=[])).invoke({"messages": []})


def test_send_gives_each_task_a_state_of_its_own_and_writes_merge_in_the_order_sent():
    def work(state: Any) -> Log:
        return {"log": [f"item {state['item']}"]}

    builder = StateGraph(Log).add_node(work)
    builder.add_conditional_edges(START, lambda state: [Send("work", {"item": n}) for n in (3, 1, 2)])

    assert builder.compile().invoke({"log": []})["log"] == ["item 3", "item 1", "item 2"]
