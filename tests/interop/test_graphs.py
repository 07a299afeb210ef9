"""Real graphs of LangGraph on our store: what they do with its own savers, they do here."""

from __future__ import annotations

import asyncio
from threading import Event
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from bide.interop.langgraph import BideSaver
from bide.interop.langgraph.reading import ANCESTORS
from tests.interop.graphs import (
    CONFIG,
    RESUME,
    Call,
    Log,
    acall,
    asking,
    call,
    chat,
    delta,
    fan_out,
    outer,
    say,
)

both = pytest.mark.parametrize("run", [call, acall], ids=["invoke", "ainvoke"])
every_durability = pytest.mark.parametrize("durability", ["sync", "async", "exit"])


@both
@every_durability
def test_a_question_is_answered_through_another_object(lasting_url: str, run: Call, durability: str) -> None:
    with BideSaver(lasting_url) as saver:
        asked = run(asking().compile(checkpointer=saver), {"log": ["in"]}, durability=durability)

    with BideSaver(lasting_url) as saver:
        graph = asking().compile(checkpointer=saver)
        waiting = graph.get_state(CONFIG)
        answered = run(graph, RESUME, durability=durability)

    assert asked["__interrupt__"][0].value == {"question": "Ship it?"}
    assert waiting.next == ("ask",)
    assert waiting.tasks[0].interrupts == (asked["__interrupt__"][0],)
    assert answered == {"log": ["in", "prepared", "answered yes"], "answer": "yes"}


@both
@every_durability
def test_a_graph_inside_another_asks_and_goes_on(saver: BideSaver, run: Call, durability: str) -> None:
    graph = outer().compile(checkpointer=saver)

    run(graph, {"log": []}, durability=durability)
    inside = graph.get_state(CONFIG, subgraphs=True).tasks[0].state
    answered = run(graph, RESUME, durability=durability)

    assert inside.values == {"log": ["prepared"]}
    assert inside.next == ("ask",)
    assert answered == {"log": ["prepared", "answered yes", "after"], "answer": "yes"}


@both
def test_state_can_be_edited_at_a_pause(saver: BideSaver, run: Call) -> None:
    graph = asking().compile(checkpointer=saver)
    run(graph, {"log": []})

    graph.update_state(CONFIG, {"log": ["edited"]}, as_node="prepare")
    run(graph, None)
    answered = run(graph, RESUME)

    assert answered["log"] == ["prepared", "edited", "answered yes"]


@both
def test_every_checkpoint_can_be_gone_back_to(saver: BideSaver, run: Call) -> None:
    graph = asking().compile(checkpointer=saver)
    run(graph, {"log": []})
    run(graph, RESUME)
    paused = next(state for state in graph.get_state_history(CONFIG) if state.next == ("ask",))

    run(graph, None, paused.config)
    other = run(graph, Command(resume="no"))

    assert other["log"] == ["prepared", "answered no"]
    answers = [state.values.get("answer") for state in graph.get_state_history(CONFIG) if state.next == ()]
    assert answers == ["no", "yes"], "the first branch is still there"


@both
def test_forks_keep_their_own_values_under_the_same_versions(saver: BideSaver, run: Call) -> None:
    graph = chat().compile(checkpointer=saver)
    run(graph, say("a" * 400))
    base = graph.get_state(CONFIG).config

    left = graph.update_state(base, say("left" * 100), as_node="model")
    right = graph.update_state(base, say("right" * 100), as_node="model")
    copied = graph.update_state(left, None, as_node="__copy__")

    def last(config: Any) -> str:
        text: str = graph.get_state(config).values["messages"][-1].content
        return text

    assert [last(left), last(right), last(copied)] == ["left" * 100, "right" * 100, "left" * 100]
    assert last(base) == "You said: " + "a" * 400


@both
def test_packets_run_in_tasks_of_their_own(saver: BideSaver, run: Call) -> None:
    graph = fan_out(20).compile(checkpointer=saver, interrupt_before=["square"])
    run(graph, {"log": []})

    done = run(graph, None)

    assert done["log"] == [str(n**2) for n in range(20)]


@both
def test_after_an_error_only_what_failed_runs_again(
    saver: BideSaver, run: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[str] = []
    is_saved, put_writes = Event(), saver.put_writes

    def put_and_tell(config: Any, writes: Any, *args: Any, **options: Any) -> None:
        put_writes(config, writes, *args, **options)
        if any(value == ["steady"] for _, value in writes):
            is_saved.set()

    monkeypatch.setattr(saver, "put_writes", put_and_tell)

    def steady(state: Log) -> Log:
        runs.append("steady")
        return {"log": ["steady"]}

    def shaky(state: Log) -> Log:
        runs.append("shaky")
        if runs.count("shaky") == 1:
            # Not before the other one is saved: when a task fails, LangGraph lets those go that are not done.
            assert is_saved.wait(20)
            raise ValueError("no network")
        return {"log": ["shaky"]}

    builder = StateGraph(Log).add_node(steady).add_node(shaky)
    builder.add_edge(START, "steady").add_edge(START, "shaky")
    graph = builder.compile(checkpointer=saver)

    with pytest.raises(ValueError, match="no network"):
        run(graph, {"log": []}, durability="sync")
    done = run(graph, None)

    assert sorted(runs) == ["shaky", "shaky", "steady"]
    assert sorted(done["log"]) == ["shaky", "steady"]


@both
def test_functions_are_not_run_again_when_their_answer_comes(saver: BideSaver, run: Call) -> None:
    sent: list[str] = []

    @task
    def send(to: str) -> str:
        sent.append(to)
        return f"sent to {to}"

    @entrypoint(checkpointer=saver)
    def workflow(to: str, *, previous: Any = None) -> Any:
        receipt = send(to).result()
        return entrypoint.final(value=[receipt, interrupt("Done?"), previous], save=to)

    run(workflow, "ada")
    first = run(workflow, Command(resume="yes"))
    run(workflow, "ben")
    second = run(workflow, Command(resume="no"))

    assert sent == ["ada", "ben"]
    assert first == ["sent to ada", "yes", None]
    assert second == ["sent to ben", "no", "ada"]


@both
@every_durability
def test_delta_channels_are_put_together_from_their_writes(lasting_url: str, run: Call, durability: str) -> None:
    said = [f"line {number} {'.' * 300}" for number in range(11)]
    for line in said:
        with BideSaver(lasting_url) as saver:
            found = run(delta().compile(checkpointer=saver), {"lines": [line]}, durability=durability)

    assert found["lines"] == [text for line in said for text in (line, f"echo {line}")]


def test_a_delta_channel_is_found_however_far_back_it_begins(saver: BideSaver) -> None:
    graph = delta(frequency=10_000).compile(checkpointer=saver)
    for turn in range(60):
        graph.invoke({"lines": [str(turn)]}, CONFIG)

    found = graph.get_state(CONFIG)
    history = saver.get_delta_channel_history(config=found.config, channels=["lines", "nowhere"])

    assert found.values["lines"] == [line for turn in range(60) for line in (str(turn), f"echo {turn}")]
    assert len(history["lines"]["writes"]) > ANCESTORS
    assert history["nowhere"] == {"writes": []}


@both
@every_durability
def test_a_conversation_reads_as_on_a_saver_of_langgraph(saver: BideSaver, run: Call, durability: str) -> None:
    def talk(checkpointer: Any) -> list[Any]:
        graph = asking().compile(checkpointer=checkpointer)
        run(graph, {"log": ["x" * 300]}, durability=durability)
        run(graph, RESUME, durability=durability)
        run(graph, {"log": ["again"]}, durability=durability)
        return [
            (state.values, state.next, state.metadata, len(state.tasks), [one.interrupts == () for one in state.tasks])
            for state in graph.get_state_history(CONFIG)
        ]

    assert talk(saver) == talk(InMemorySaver())


async def test_many_threads_talk_at_once(saver: BideSaver) -> None:
    graph = chat().compile(checkpointer=saver)

    async def talk(name: str) -> list[str]:
        config = {"configurable": {"thread_id": name}}
        for turn in range(3):
            await graph.ainvoke(say(f"{name} {turn}"), config)  # type: ignore[call-overload]
        state = await graph.aget_state(config)  # type: ignore[arg-type]
        return [message.content for message in state.values["messages"][::2]]

    names = [f"thread-{number}" for number in range(12)]
    heard = await asyncio.gather(*map(talk, names))

    assert heard == [[f"{name} {turn}" for turn in range(3)] for name in names]
