"""Synaptic's tests of agents, in plain nodes: stopped before tools, led by a supervisor, handing over to each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bide import END, START, Command, CompiledGraph, MessagesState, StateGraph, Store, interrupt
from tests.drivers import Driver
from tests.requirements.agents import Script, asked, calls, react_agent, result_of, run_all, said, says, with_prompt
from tests.requirements.graphs import thread

ECHO = {"echo": lambda text: text}


# ── One agent ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("react_agent_options.rs::agent_with_checkpointer")
@pytest.mark.requirement("S3-04", "S3-14")
def test_agent_with_a_store_goes_on_with_the_conversation_in_another_process(
    driver: Driver, open_file: Callable[[], Store]
):
    first = Script(calls("echo", text="hello"), says("It says hello."))
    driver.invoke(react_agent(first, ECHO).compile(open_file()), asked("echo hello"), thread("chat"))
    second = Script(says("hello, as before"))

    done = driver.invoke(react_agent(second, ECHO).compile(open_file()), asked("again?"), thread("chat"))

    told = [("human", "echo hello"), ("ai", ["echo"]), ("tool", "hello"), ("ai", "It says hello."), ("human", "again?")]
    assert said(second.heard[0]) == told
    assert said(done["messages"]) == [*told, ("ai", "hello, as before")]


@pytest.mark.seed("react_agent_options.rs::agent_with_interrupt_before_tools")
@pytest.mark.requirement("S3-03", "S3-04", "T2-21")
def test_agent_stopped_before_its_tools_has_saved_what_was_said_and_runs_them_on_resume(
    driver: Driver, open_file: Callable[[], Store]
):
    ran: list[str] = []
    tools = {"drop_table": lambda name: ran.append(name)}
    model = Script(calls("drop_table", name="orders"), says("Dropped."))
    graph = react_agent(model, tools).compile(open_file(), interrupt_before=["tools"])

    driver.invoke(graph, asked("clean up"), thread("t"))
    graph = react_agent(model, tools).compile(open_file(), interrupt_before=["tools"])
    saved = graph.get_state(thread("t"))
    ran_before = list(ran)
    done = driver.invoke(graph, None, thread("t"))

    assert saved.next == ("tools",)
    assert said(saved.values["messages"]) == [("human", "clean up"), ("ai", ["drop_table"])]
    assert saved.values["messages"][1].tool_calls[0]["args"] == {"name": "orders"}
    assert (ran_before, ran) == ([], ["orders"])
    assert done.is_complete
    assert said(done["messages"])[-1] == ("ai", "Dropped.")


@pytest.mark.seed("react_agent_options.rs::agent_with_interrupt_before_tools")
@pytest.mark.requirement("S3-15", "S3-04")
def test_call_that_a_person_takes_out_at_the_pause_is_not_made(driver: Driver, store: Store):
    """Synaptic chooses the way at the pause; here an edit chooses it anew."""
    ran: list[str] = []
    model = Script(calls("drop_table", name="orders"))
    graph = react_agent(model, {"drop_table": lambda name: ran.append(name)}).compile(store, interrupt_before=["tools"])
    paused = driver.invoke(graph, asked("clean up"), thread("t"))
    mended = says("I leave everything as it is.")
    mended.id = paused["messages"][-1].id

    driver.call(graph, "update_state", thread("t"), {"messages": [mended]})
    done = driver.invoke(graph, None, thread("t"))

    assert ran == []
    assert said(done["messages"]) == [("human", "clean up"), ("ai", "I leave everything as it is.")]


@pytest.mark.seed("react_agent_options.rs::agent_with_interrupt_after_agent")
@pytest.mark.requirement("S3-03")
def test_agent_stopped_after_each_thing_it_says_says_each_once(driver: Driver, store: Store):
    model = Script(calls("echo", text="hello"), says("It says hello."))
    graph = react_agent(model, ECHO).compile(store, interrupt_after=["agent"])

    stops = [driver.invoke(graph, given, thread("t")) for given in (asked("echo hello"), None, None)]

    assert [stop.next for stop in stops] == [("tools",), (), ()]
    assert [stop.is_interrupted for stop in stops] == [True, True, False]
    assert len(model.heard) == 2
    assert said(stops[-1]["messages"])[1:] == [("ai", ["echo"]), ("tool", "hello"), ("ai", "It says hello.")]


# ── A supervisor ───────────────────────────────────────────────────────────────────────────────────────────────────


def supervised(model: Script, agents: dict[str, Script], *, prompt: str = "") -> StateGraph:
    """A supervisor that hands over by calling `transfer_to_…`, and ends by calling nothing; agents report back."""

    def supervisor(state: MessagesState) -> Command[str]:
        line = model(with_prompt(prompt, state["messages"]))
        if not line.tool_calls:
            return Command(update={"messages": [line]}, goto=END)
        [call] = line.tool_calls
        return Command(
            update={"messages": [line, result_of(call, "handed over")]}, goto=call["name"].removeprefix("transfer_to_")
        )

    builder = StateGraph(MessagesState).add_node("supervisor", supervisor, destinations=(*agents, END))
    for name, agent in agents.items():
        builder.add_node(name, react_agent(agent, ECHO).compile()).add_edge(name, "supervisor")
    return builder.add_edge(START, "supervisor")


@pytest.mark.seed("supervisor.rs::compiles_with_two_agents")
def test_supervisor_and_its_agents_are_one_graph_whose_ways_can_be_drawn():
    picture = supervised(Script(), {"researcher": Script(), "writer": Script()}).compile().get_graph()

    ways = {(edge.source, edge.target) for edge in picture.edges}
    assert ways == {
        (START, "supervisor"),
        ("supervisor", "researcher"),
        ("supervisor", "writer"),
        ("supervisor", END),
        ("researcher", "supervisor"),
        ("writer", "supervisor"),
    }


@pytest.mark.seed("supervisor.rs::routes_to_correct_agent")
def test_supervisor_hands_over_to_the_agent_it_names_and_sums_up_what_that_one_found(driver: Driver, store: Store):
    model = Script(calls("transfer_to_researcher"), says("Bees dance to give directions."))
    researcher, writer = Script(calls("echo", text="a paper"), says("Frisch, 1927.")), Script()
    graph = supervised(model, {"researcher": researcher, "writer": writer}).compile(store)

    done = driver.invoke(graph, asked("how do bees talk?"), thread("t"))

    assert said(done["messages"]) == [
        ("human", "how do bees talk?"),
        ("ai", ["transfer_to_researcher"]),
        ("tool", "handed over"),
        ("ai", ["echo"]),
        ("tool", "a paper"),
        ("ai", "Frisch, 1927."),
        ("ai", "Bees dance to give directions."),
    ]
    assert (len(model.heard), len(researcher.heard), writer.heard) == (2, 2, [])


@pytest.mark.seed("supervisor.rs::routes_to_correct_agent")
def test_question_of_a_supervised_agent_reaches_the_person_and_nothing_is_said_twice(driver: Driver, store: Store):
    def ask_first(state: MessagesState) -> dict[str, Any]:
        [call] = state["messages"][-1].tool_calls
        return {"messages": [result_of(call, interrupt(f"May I run {call['name']}?"))]}

    model, writer = Script(calls("transfer_to_writer"), says("Written.")), Script(calls("publish"), says("It is out."))
    builder = supervised(model, {"reader": Script()})
    builder.add_node("writer", react_agent(writer, {}, run=ask_first).compile()).add_edge("writer", "supervisor")
    graph = builder.compile(store)
    paused = driver.invoke(graph, asked("publish it"), thread("t"))

    done = driver.invoke(graph, Command(resume="yes, today"), thread("t"))

    assert (paused.interrupt_value, paused.next) == ("May I run publish?", ("writer",))
    assert said(done["messages"])[-3:] == [("tool", "yes, today"), ("ai", "It is out."), ("ai", "Written.")]
    assert (len(model.heard), len(writer.heard)) == (2, 2)


@pytest.mark.seed("supervisor.rs::terminates_when_no_tool_call")
def test_supervisor_that_hands_over_to_nobody_ends(driver: Driver):
    graph = supervised(Script(says("Four.")), {"researcher": Script()}).compile()

    done = driver.invoke(graph, asked("two and two?"))

    assert said(done["messages"]) == [("human", "two and two?"), ("ai", "Four.")]


@pytest.mark.seed("supervisor.rs::custom_system_prompt")
def test_prompt_is_told_to_the_model_at_every_turn_and_is_no_part_of_the_conversation(driver: Driver, store: Store):
    model = Script(calls("transfer_to_writer"), says("Done."))
    graph = supervised(model, {"writer": Script(says("Written."))}, prompt="Be brief.").compile(store)

    done = driver.invoke(graph, asked("write it"), thread("t"))

    assert [said(heard)[0] for heard in model.heard] == [("system", "Be brief.")] * 2
    assert "system" not in [message.type for message in done["messages"]]


# ── A swarm ────────────────────────────────────────────────────────────────────────────────────────────────────────


def swarm(agents: dict[str, Script]) -> StateGraph:
    """Agents that hand over to each other from inside their own graphs; the first one begins."""

    def run_or_hand_over(state: MessagesState) -> Any:
        last = state["messages"][-1]
        call = last.tool_calls[0]
        if not call["name"].startswith("transfer_to_"):
            return run_all(ECHO)(state)
        target = call["name"].removeprefix("transfer_to_")
        # The inner state ends here, so what this agent said goes along with the command.
        return Command(graph=Command.PARENT, goto=target, update={"messages": [last, result_of(call, "handed over")]})

    builder = StateGraph(MessagesState).add_edge(START, next(iter(agents)))
    for name, model in agents.items():
        others = tuple(other for other in agents if other != name)
        builder.add_node(name, react_agent(model, ECHO, run=run_or_hand_over).compile(), destinations=others)
    return builder


@pytest.mark.seed("swarm.rs::compiles_with_two_agents", "swarm.rs::entry_is_first_agent")
def test_swarm_begins_with_its_first_agent_and_each_may_go_to_every_other(driver: Driver):
    graph = swarm({"first": Script(says("Here I am.")), "second": Script()}).compile()

    ways = {(edge.source, edge.target) for edge in graph.get_graph().edges}
    done = driver.invoke(graph, asked("hello"))

    assert {(START, "first"), ("first", "second"), ("second", "first")} <= ways
    assert (START, "second") not in ways
    assert said(done["messages"])[-1] == ("ai", "Here I am.")


@pytest.mark.seed("swarm.rs::terminates_no_tool_calls")
def test_agent_of_a_swarm_that_hands_over_to_nobody_ends(driver: Driver):
    graph = swarm({"alone": Script(says("Good morning."))}).compile()

    assert said(driver.invoke(graph, asked("hello"))["messages"]) == [("human", "hello"), ("ai", "Good morning.")]


@pytest.mark.seed("swarm.rs::handoff_routes_to_target")
def test_agent_hands_over_from_inside_its_own_graph_and_does_not_come_back(driver: Driver, store: Store):
    triage, support = Script(calls("transfer_to_support")), Script(says("Your parcel is on its way."))
    graph: CompiledGraph = swarm({"triage": triage, "support": support}).compile(store)

    done = driver.invoke(graph, asked("Where is my parcel?"), thread("t"))

    told = [("human", "Where is my parcel?"), ("ai", ["transfer_to_support"]), ("tool", "handed over")]
    assert said(done["messages"]) == [*told, ("ai", "Your parcel is on its way.")]
    assert said(support.heard[0]) == told
    assert len(triage.heard) == 1


@pytest.mark.seed("swarm.rs::non_handoff_tool_executes")
def test_tool_that_hands_nothing_over_is_run_and_the_agent_goes_on(driver: Driver):
    graph = swarm({"worker": Script(calls("echo", text="hollo"), says("The valley answers."))}).compile()

    done = driver.invoke(graph, asked("call into the valley"))

    assert said(done["messages"]) == [
        ("human", "call into the valley"),
        ("ai", ["echo"]),
        ("tool", "hollo"),
        ("ai", "The valley answers."),
    ]
