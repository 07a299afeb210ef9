"""Resuming with what came in: merge, return the whole state, repeat no effect (Z0-32 … Z0-34)."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest

from bide import Command, HumanMessage, MessagesState, interrupt, step
from bide.errors import ThreadPausedError
from tests.requirements.graphs import checkpoint_ids, in_line, thread


class Order(TypedDict, total=False):
    amount: int
    approved: Any
    log: Annotated[list[str], operator.add]


class Support(MessagesState, total=False):
    customer: dict[str, Any]
    attempts: Annotated[int, operator.add]


def approve(state: Order) -> dict[str, Any]:
    return {"approved": interrupt("Do you approve this action?")}


# ── Resuming with what came in: the email, the tick of the clock ───────────────────────────────────────────────────


class Mail(TypedDict, total=False):
    customer: str
    email_content: str
    told: str
    log: Annotated[list[str], operator.add]


def wait_for_email(state: Mail) -> Mail:
    interrupt({"waiting_for": "email", "from": state["customer"]})
    return state


def proceed(state: Mail) -> dict[str, Any]:
    return {"told": f"Customer wrote: {state['email_content']}", "log": ["proceeded"]}


@pytest.mark.requirement("Z0-32")
@pytest.mark.parametrize("pinned", [False, True])
def test_plain_input_resumes_and_is_merged_when_the_graph_says_so(store, pinned):
    graph = in_line(Mail, wait_for_email, proceed).compile(store, on_paused="resume")
    paused = graph.invoke({"customer": "ada@example.com", "log": ["sent"]}, thread("mail"))
    config = thread("mail", checkpoint_id=paused.checkpoint_id) if pinned else thread("mail")

    done = graph.invoke({"email_content": "go ahead"}, config)

    assert done == {
        "customer": "ada@example.com",
        "email_content": "go ahead",
        "told": "Customer wrote: go ahead",
        "log": ["sent", "proceeded"],
    }


@pytest.mark.requirement("Z0-32")
def test_plain_input_is_also_the_answer_to_the_only_question(store):
    graph = in_line(Order, approve).compile(store)
    graph.invoke({"amount": 1}, thread("order"))

    done = graph.invoke({"approved": True, "user_notes": "Looks good"}, thread("order"), on_paused="resume")

    assert done["approved"] == {"approved": True, "user_notes": "Looks good"}
    assert done["user_notes"] == "Looks good"


@pytest.mark.requirement("Z0-32")
def test_plain_input_never_approves_anything_unless_the_graph_says_so(store):
    graph = in_line(Order, approve).compile(store)
    paused = graph.invoke({"amount": 1}, thread("order"))
    before = checkpoint_ids(graph, thread("order"))

    with pytest.raises(ThreadPausedError, match=r"Do you approve this action\?"):
        graph.invoke({"approved": True}, thread("order"))

    assert checkpoint_ids(graph, thread("order")) == before
    assert graph.get_state(thread("order")).interrupts == paused.interrupts


@pytest.mark.requirement("Z0-32")
def test_none_neither_answers_nor_asks_again(store):
    runs = []

    def wait_node(state: Order) -> Order:
        runs.append("wait")
        interrupt({"wake_time": "2026-01-01T02:00:00+00:00"})
        return state

    graph = in_line(Order, wait_node).compile(store)
    paused = graph.invoke({"amount": 1}, thread("order"))

    still = graph.invoke(None, thread("order"))
    ran_by_none = len(runs) - 1
    done = graph.invoke(Command(resume=None), thread("order"))

    assert still.interrupts == paused.interrupts
    assert ran_by_none == 0
    assert done.is_complete


# ── return state ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("Z0-33")
@pytest.mark.parametrize("hand_back", [lambda state: state, lambda state: {**state}], ids=["same object", "a copy"])
def test_node_that_returns_its_whole_state_appends_nothing_twice(store, hand_back):
    def wait(state: Order) -> Order:
        interrupt("Go on?")
        return hand_back(state)

    graph = in_line(Order, wait).compile(store)
    graph.invoke({"amount": 3, "log": ["quoted", "sent"]}, thread("order"))

    done = graph.invoke(Command(resume=True), thread("order"))

    assert done == {"amount": 3, "log": ["quoted", "sent"]}


@pytest.mark.requirement("Z0-33")
def test_node_that_changes_its_state_in_place_and_returns_it_writes_what_it_changed(store):
    def wait(state: Order) -> Order:
        state["log"].append("asked")
        state["approved"] = interrupt("Go on?")
        return state

    graph = in_line(Order, wait).compile(store)
    paused = graph.invoke({"amount": 3, "log": ["quoted"]}, thread("order"))

    done = graph.invoke(Command(resume="yes"), thread("order"))

    assert paused.value == {"amount": 3, "log": ["quoted"]}
    assert done == {"amount": 3, "approved": "yes", "log": ["quoted", "asked"]}


@pytest.mark.requirement("Z0-33")
@pytest.mark.parametrize(
    "hand_back",
    [lambda state: state, lambda state: {**state}, lambda state: {"customer": state["customer"]}],
    ids=["same object", "a copy", "the changed key"],
)
def test_change_deep_inside_a_returned_state_is_saved(store, hand_back):
    def promote(state: Support) -> Support:
        state["customer"]["tiers"].append("gold")
        return hand_back(state)

    def wait(state: Support) -> None:
        interrupt("Go on?")

    graph = in_line(Support, promote, wait).compile(store)
    paused = graph.invoke({"messages": [], "customer": {"tiers": ["silver"]}}, thread("case"))

    done = graph.invoke(Command(resume=True), thread("case"))

    assert paused["customer"] == {"tiers": ["silver", "gold"]}
    assert done["customer"] == {"tiers": ["silver", "gold"]}


@pytest.mark.requirement("Z0-33")
def test_change_inside_a_message_of_a_returned_state_is_saved(store):
    def redact(state: Support) -> Support:
        state["messages"][0].content = "[redacted]"
        return state

    def wait(state: Support) -> None:
        interrupt("Go on?")

    graph = in_line(Support, redact, wait).compile(store)
    graph.invoke({"messages": [HumanMessage("My card is 1234", id="m1")]}, thread("case"))

    done = graph.invoke(Command(resume=True), thread("case"))

    assert done["messages"] == [HumanMessage("[redacted]", id="m1")]


@pytest.mark.requirement("Z0-33")
def test_sums_and_messages_of_a_returned_state_are_not_added_again(store):
    def wait(state: Support) -> Support:
        interrupt("Go on?")
        return state

    graph = in_line(Support, wait).compile(store)
    given = {"messages": [HumanMessage("Hello", id="m1")], "customer": {"name": "Ada"}, "attempts": 2}
    graph.invoke(given, thread("case"))

    done = graph.invoke(Command(resume=True), thread("case"))

    assert done == given


# ── What was done before the pause ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("Z0-34")
def test_mail_sent_before_the_pause_is_not_sent_again_by_the_resume(open_file):
    sent: list[str] = []

    def send_mail(to: str) -> str:
        sent.append(to)
        return f"message {len(sent)}"

    def follow_up(state: Mail) -> dict[str, Any]:
        message = step(send_mail, state["customer"])
        return {"told": f"{message}: {interrupt('Any reply?')}"}

    in_line(Mail, follow_up).compile(open_file()).invoke({"customer": "ada"}, thread("mail"))

    done = in_line(Mail, follow_up).compile(open_file()).invoke(Command(resume="yes"), thread("mail"))

    assert sent == ["ada"]
    assert done["told"] == "message 1: yes"


@pytest.mark.requirement("Z0-34")
async def test_mail_sent_by_an_async_step_is_not_sent_again(store):
    sent: list[str] = []

    async def send_mail(to: str) -> None:
        sent.append(to)

    async def follow_up(state: Mail) -> dict[str, Any]:
        await step(send_mail, state["customer"])
        return {"told": interrupt("Any reply?")}

    graph = in_line(Mail, follow_up).compile(store)
    await graph.ainvoke({"customer": "ada"}, thread("mail"))

    done = await graph.ainvoke(Command(resume="yes"), thread("mail"))

    assert sent == ["ada"]
    assert done["told"] == "yes"
