"""Waiting for the world: pause in a node, keep everything, resume by thread (Z0-01 … Z0-05, Z0-17, Z0-28)."""

from __future__ import annotations

import json
import operator
import signal
import subprocess
import sys
from typing import Annotated, Any, TypedDict

import pytest

from bide import (
    AIMessage,
    Command,
    HumanMessage,
    Interrupt,
    MemorySaver,
    MessagesState,
    Runtime,
    ToolMessage,
    get_config,
    interrupt,
)
from bide.errors import (
    GraphInterrupt,
    UnknownCheckpointError,
    UnknownThreadError,
)
from tests.requirements.graphs import answer, checkpoint_ids, in_line, thread, url_of


class Order(TypedDict, total=False):
    amount: int
    approved: Any
    log: Annotated[list[str], operator.add]


CRASH = """
import json, operator, os, signal, sys
from typing import Annotated, TypedDict
from bide import START, StateGraph

class Order(TypedDict, total=False):
    amount: int
    log: Annotated[list[str], operator.add]

url, ledger, how = sys.argv[1:]

def note(node):
    with open(ledger, "a") as file:
        file.write(f"{node}\\n")

def price(state):
    note("price")
    return {"amount": 40, "log": ["priced"]}

def ship(state):
    note("ship")
    if how == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    return {"log": ["shipped"]}

graph = StateGraph(Order).add_sequence([price, ship]).add_edge(START, "price").compile(url)
config = {"configurable": {"thread_id": "order"}}
print(json.dumps(graph.invoke({"amount": 1} if how == "crash" else None, config)))
"""


def approve(state: Order) -> dict[str, Any]:
    return {"approved": interrupt("Do you approve this action?")}


# ── The pause and the answer ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("Z0-01")
def test_interrupt_saves_the_state_halts_and_hands_the_question_to_the_caller(store):
    ran = []

    def price(state):
        ran.append("price")
        return {"amount": 40, "log": ["priced"]}

    def approve(state):
        ran.append("approve")
        decision = interrupt({"question": "Do you approve?", "amount": state["amount"]})
        ran.append("approved")
        return {"approved": decision}

    def ship(state):
        ran.append("ship")

    graph = in_line(Order, price, approve, ship).compile(store)

    result = graph.invoke({"amount": 1}, thread("order"))

    [question] = result["__interrupt__"]
    assert isinstance(question, Interrupt)
    assert question.value == {"question": "Do you approve?", "amount": 40}
    assert ran == ["price", "approve"]
    saved = in_line(Order, price, approve, ship).compile(store).get_state(thread("order"))
    assert saved.values == {"amount": 40, "log": ["priced"]}
    assert saved.next == ("approve",)
    assert saved.interrupts == result.interrupts == (question,)


@pytest.mark.requirement("Z0-01", "Z0-02")
async def test_async_node_pauses_and_gets_its_answer(store):
    ran = []

    async def approve(state):
        ran.append("asking")
        return {"approved": interrupt("Do you approve?")}

    async def ship(state):
        ran.append("shipped")

    graph = in_line(Order, approve, ship).compile(store)

    paused = await graph.ainvoke({"amount": 1}, thread("order"))
    ran_before = list(ran)
    done = await graph.ainvoke(Command(resume="yes"), thread("order"))

    assert paused.interrupt_value == "Do you approve?"
    assert ran_before == ["asking"]
    assert done == {"amount": 1, "log": [], "approved": "yes"}
    assert ran == ["asking", "asking", "shipped"]


@pytest.mark.requirement("Z0-02")
@pytest.mark.parametrize("given", [True, False, None, {}, [], "", 0, {"approved": True, "user_notes": "Looks good"}])
@pytest.mark.parametrize("by_id", [False, True])
def test_answer_is_what_interrupt_returns_whatever_it_is(store, given, by_id):
    graph = in_line(Order, approve).compile(store)
    [question] = graph.invoke({"amount": 1}, thread("order")).interrupts

    done = graph.invoke(answer(question, given) if by_id else Command(resume=given), thread("order"))

    assert done.is_complete
    assert done["approved"] == given
    assert type(done["approved"]) is type(given)


# ── Which thread, which point in it ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("Z0-03")
def test_thread_id_alone_resumes_the_thread_in_a_process_that_did_not_start_it(open_file):
    started = in_line(Order, approve).compile(open_file())
    started.invoke({"amount": 7}, thread("order"))

    done = in_line(Order, approve).compile(open_file()).invoke(Command(resume=True), thread("order"))

    assert done == {"amount": 7, "log": [], "approved": True}


@pytest.mark.requirement("Z0-03")
def test_resuming_one_thread_leaves_the_others_waiting(store):
    graph = in_line(Order, approve).compile(store)
    graph.invoke({"amount": 1}, thread("ada"))
    graph.invoke({"amount": 2}, thread("ben"))

    done = graph.invoke(Command(resume=True), thread("ada"))

    assert done == {"amount": 1, "log": [], "approved": True}
    assert graph.get_state(thread("ada")).next == ()
    assert graph.get_state(thread("ben")).next == ("approve",)
    assert graph.get_state(thread("ben")).values == {"amount": 2, "log": []}


@pytest.mark.requirement("Z0-03")
def test_checkpoint_id_of_the_pause_resumes_there(store):
    graph = in_line(Order, approve).compile(store)
    paused = graph.invoke({"amount": 1}, thread("order"))

    done = graph.invoke(Command(resume="yes"), thread("order", checkpoint_id=paused.checkpoint_id))

    assert done["approved"] == "yes"
    assert done.thread_id == "order"


@pytest.mark.requirement("Z0-03")
def test_checkpoint_id_of_an_older_point_goes_on_from_that_point(store):
    def price(state):
        return {"amount": state["amount"] * 2, "log": ["priced"]}

    graph = in_line(Order, price, approve).compile(store)
    first = graph.invoke({"amount": 10}, thread("order"))
    graph.invoke(Command(resume="yes"), thread("order"))
    start, *_ = checkpoint_ids(graph, thread("order"))

    again = graph.invoke(None, thread("order", checkpoint_id=start))

    assert again == {"amount": 20, "log": ["priced"], "__interrupt__": list(again.interrupts)}
    assert again.interrupts[0].id != first.interrupts[0].id


@pytest.mark.requirement("Z0-03")
@pytest.mark.parametrize("pinned", ["no such checkpoint", "0123456789abcdef0123-00000001"])
def test_checkpoint_id_that_is_not_of_this_thread_is_refused(store, pinned):
    graph = in_line(Order, approve).compile(store)
    paused = graph.invoke({"amount": 1}, thread("order"))

    with pytest.raises(UnknownCheckpointError, match=pinned):
        graph.invoke(Command(resume=True), thread("order", checkpoint_id=pinned))

    assert graph.get_state(thread("order")).interrupts == paused.interrupts


# ── What a pause keeps ─────────────────────────────────────────────────────────────────────────────────────────────


class Support(MessagesState, total=False):
    customer: dict[str, Any]
    attempts: Annotated[int, operator.add]
    invoice: dict[str, Any]


def look_up(state: Support) -> dict[str, Any]:
    call = {"name": "find_invoice", "args": {"number": 7}, "id": "call-1"}
    return {
        "messages": [
            AIMessage("Let me look.", id="m2", tool_calls=[call]),
            ToolMessage('{"total": 40}', id="m3", tool_call_id="call-1"),
        ],
        "attempts": 1,
        "invoice": {"number": 7, "lines": [{"item": "tea", "price": 40}]},
    }


def refund(state: Support) -> dict[str, Any]:
    return {"messages": [AIMessage(str(interrupt("Refund 40?")), id="m4")]}


@pytest.mark.requirement("Z0-04")
def test_pause_keeps_variables_position_messages_and_tool_results(open_file):
    graph = in_line(Support, look_up, refund).compile(open_file())
    given = {"messages": [HumanMessage("My tea is cold", id="m1")], "customer": {"name": "Ada", "tier": 2}}
    graph.invoke(given, thread("case"))

    kept = in_line(Support, look_up, refund).compile(open_file()).get_state(thread("case"))

    assert kept.next == ("refund",)
    assert kept.values["customer"] == {"name": "Ada", "tier": 2}
    assert kept.values["attempts"] == 1
    assert kept.values["invoice"] == {"number": 7, "lines": [{"item": "tea", "price": 40}]}
    question, call, result = kept.values["messages"]
    assert question == HumanMessage("My tea is cold", id="m1")
    assert call.tool_calls == [{"name": "find_invoice", "args": {"number": 7}, "id": "call-1"}]
    assert result == ToolMessage('{"total": 40}', id="m3", tool_call_id="call-1")


@pytest.mark.requirement("Z0-04")
def test_pause_keeps_the_metadata_that_the_caller_gave(store):
    graph = in_line(Order, approve).compile(store)

    graph.invoke({"amount": 1}, {**thread("order"), "metadata": {"campaign": "spring"}})

    assert graph.get_state(thread("order")).metadata["campaign"] == "spring"


# ── A store for a short session, and one that lasts ────────────────────────────────────────────────────────────────


@pytest.mark.requirement("Z0-05")
def test_thread_in_memory_lives_as_long_as_its_saver():
    saver = MemorySaver()
    in_line(Order, approve).compile(saver).invoke({"amount": 1}, thread("order"))

    done = in_line(Order, approve).compile(saver).invoke(Command(resume="yes"), thread("order"))

    assert done["approved"] == "yes"
    with pytest.raises(UnknownThreadError):
        in_line(Order, approve).compile(MemorySaver()).invoke(Command(resume="yes"), thread("order"))


@pytest.mark.seed("test_agent_state_recovery.py::stuck runs and jobs found, active ones untouched, repeatable")
@pytest.mark.requirement("Z0-05")
def test_crash_in_the_middle_of_a_run_loses_no_finished_step(tmp_path):
    program, ledger = tmp_path / "crash.py", tmp_path / "ledger"
    program.write_text(CRASH, encoding="utf-8")
    command = [sys.executable, str(program), url_of(tmp_path), str(ledger)]

    crashed = subprocess.run([*command, "crash"], check=False)
    done = subprocess.run([*command, "go on"], check=True, capture_output=True, text=True)

    assert crashed.returncode == -signal.SIGKILL
    assert json.loads(done.stdout) == {"amount": 40, "log": ["priced", "shipped"]}
    assert ledger.read_text(encoding="utf-8").split() == ["price", "ship", "ship"]


# ── The node knows its thread ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("Z0-17")
@pytest.mark.parametrize("given", ["order-7", 7])
def test_node_can_build_a_link_from_its_thread_id(store, given):
    links = []

    def by_runtime(state: Order, runtime: Runtime) -> None:
        links.append(f"/approve/{runtime.thread_id}")

    def by_config(state: Order, config: dict[str, Any]) -> None:
        links.append(f"/approve/{config['configurable']['thread_id']}")

    def approval_gate(state: Order) -> dict[str, Any]:
        return {"approved": interrupt({"ui_url": f"/approve/{get_config()['configurable']['thread_id']}"})}

    graph = in_line(Order, by_runtime, by_config, approval_gate).compile(store)

    paused = graph.invoke({"amount": 1}, thread(given))
    done = graph.invoke(Command(resume=True), thread(given))

    assert [*links, paused.interrupt_value["ui_url"]] == [f"/approve/{given}"] * 3
    assert done["approved"] is True


@pytest.mark.requirement("Z0-17")
def test_node_knows_its_thread_when_the_id_was_made_for_it(store):
    def approval_gate(state: Order, runtime: Runtime) -> dict[str, Any]:
        return {"approved": interrupt([runtime.thread_id, get_config()["configurable"].get("thread_id")])}

    paused = in_line(Order, approval_gate).compile(store).invoke({"amount": 1})

    assert paused.thread_id
    assert paused.interrupt_value == [paused.thread_id, paused.thread_id]


@pytest.mark.requirement("Z0-17")
def test_node_knows_its_thread_when_it_is_resumed_by_checkpoint_alone(store):
    def approval_gate(state: Order, runtime: Runtime) -> dict[str, Any]:
        return {"approved": interrupt({"ui_url": f"/approve/{runtime.thread_id}"})}

    graph = in_line(Order, approval_gate).compile(store)
    paused = graph.invoke({"amount": 1}, thread("order"))

    done = graph.invoke(Command(resume=True), checkpoint=paused.checkpoint_id)

    assert done["approved"] is True


# ── The caller is told at once ─────────────────────────────────────────────────────────────────────────────────────


def wait_for_reply(state: Order) -> dict[str, Any]:
    reply = interrupt({"waiting_for": "customer_reply", "message": "Waiting for customer reply"})
    return {"approved": reply}


@pytest.mark.requirement("Z0-28")
def test_interrupting_call_returns_with_a_message_for_people_and_holds_nothing(store):
    graph = in_line(Order, wait_for_reply).compile(store)

    result = graph.invoke({"amount": 1}, thread("order"))

    assert result.status == "waiting"
    assert result.interrupt_value["message"] == "Waiting for customer reply"
    assert [row.status for row in store.threads()] == ["waiting"]


@pytest.mark.requirement("Z0-28")
def test_caller_who_wants_an_exception_gets_the_message_in_it(store):
    graph = in_line(Order, wait_for_reply).compile(store)

    with pytest.raises(GraphInterrupt, match="Waiting for customer reply") as raised:
        graph.invoke({"amount": 1}, thread("order"), raise_on_interrupt=True)

    assert raised.value.node == "wait_for_reply"
    assert graph.get_state(thread("order")).next == ("wait_for_reply",)
