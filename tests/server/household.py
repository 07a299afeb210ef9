"""One of everything that a server keeps for an owner: for tests that try every route with the ids of another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypedDict

from starlette.testclient import TestClient

from bide import START, Bide, CompiledGraph, StateGraph, ask, interrupt, spawn, wait_for
from bide.server.auth.keys import create_key
from bide.store.outbox import Message, claim_messages, mark_failed, put
from bide.waits import approval, event

SECRET = "the-recipe"
"""Stands in everything that an owner has: whoever reads it has seen what is not theirs."""


class State(TypedDict, total=False):
    given: Any
    answer: Any
    messages: list[Any]


def question(state: State) -> Any:
    return {"answer": interrupt({"question": f"Sell {SECRET}?", "given": state.get("given")})}


def pay(state: State) -> Any:
    return {"answer": wait_for(approval(f"Pay for {SECRET}?"), timeout="3h").value}


def number(state: State) -> Any:
    return {"answer": ask("How many?", schema=int)}


def paid(state: State) -> Any:
    return {"answer": wait_for(event("paid", match={"order": 7})).value}


def parent(state: State) -> Any:
    return {"answer": spawn("question", {"given": SECRET}, key="child")}


def quick(state: State) -> Any:
    return {"answer": state.get("given")}


def broken(state: State) -> Any:
    raise RuntimeError(f"no {SECRET} left")


NODES = (question, pay, number, paid, parent, quick, broken)


def graphs() -> list[CompiledGraph]:
    """A graph of each node, under its name."""
    return [_graph(node.__name__, node) for node in NODES]


def _graph(name: str, node: Any) -> CompiledGraph:
    return StateGraph(State).add_node(name, node).add_edge(START, name).compile(name=name)


def settle(app: Bide) -> None:
    """Do all that is due, and drive all that is ready."""
    for _ in range(100):
        tended, driven = app.tend(), app.run_ready(most=10)
        if not driven and not tended.is_something:
            return
    raise AssertionError("it never comes to rest")


@dataclass(frozen=True)
class Things:
    """The names of what one owner has."""

    ids: Mapping[str, str]
    """By the name of the parameter that routes take it under."""
    thread_ids: tuple[str, ...]

    def path(self, template: str, **others: str) -> str:
        """Put the names into the template of a route."""
        return template.replace(":path", "").format(**{**self.ids, **others})


def furnish(
    app: Bide,
    client: TestClient,
    owner: str,
    prefix: str,
    metadata: Mapping[str, Any] = MappingProxyType({}),
    rest: Callable[[Bide], None] | None = None,
) -> Things:
    """Make one of everything, through the door where it has one; `client` may do everything for this owner.

    `rest` lets the threads come to rest: unless others drive them, they are driven here.
    """
    threads = {name: f"{prefix}-{name}" for name in ("question", "pay", "number", "paid", "parent", "quick", "broken")}
    for graph, thread_id in threads.items():
        body = {"thread_id": thread_id, "metadata": {**metadata, "note": SECRET}}
        _made(client.post("/threads", json=body))
        run = {"assistant_id": graph, "input": {"given": SECRET}, "metadata": {"note": SECRET}}
        _made(client.post(f"/threads/{thread_id}/runs", json=run))
    (rest or settle)(app)
    wait = app.waits(thread_id=threads["pay"])[0]
    run_id = app.runs(threads["pay"])[0].run_id
    state = _made(client.get(f"/threads/{threads['pay']}/state"))
    assistant = {"graph_id": "question", "name": SECRET, "metadata": {**metadata, "note": SECRET}}
    assistant_id = _made(client.post("/assistants", json={**assistant, "assistant_id": f"{prefix}-helper"}))
    cron = {"assistant_id": "quick", "schedule": "0 9 * * *", "input": {"given": SECRET}}
    cron_id = _made(client.post("/runs/crons", json={**cron, "metadata": {**metadata, "note": SECRET}}))["cron_id"]
    app.schedule(f"{prefix}-daily", "quick", "0 9 * * *", {"given": SECRET}, owner=owner)
    fact = app.deliver("nobody-waits", {"note": SECRET}, owner=owner)
    item = {"namespace": [prefix], "key": "item", "value": {"note": SECRET}}
    assert client.put("/store/items", json=item).status_code == 204
    link = _made(client.post(f"/waits/{wait.id}/links", json={"recipient": SECRET}))
    ids = {
        "link_id": link["link_id"],
        "token": link["url"].rpartition("/")[2],
        "key_id": create_key(app.store, SECRET, owner)[1].key_id,
        "name": f"{prefix}-daily",
        "thread_id": threads["pay"],
        "conversation_id": threads["pay"],
        "wait_id": wait.id,
        "run_id": run_id,
        "checkpoint_id": str(state["checkpoint"]["checkpoint_id"]),
        "assistant_id": assistant_id["assistant_id"],
        "cron_id": cron_id,
        "delivery_id": fact.id,
        "message_id": _message(app, owner, threads["quick"], prefix),
        "namespace": "nowhere",
        "prefix": prefix,
    }
    return Things(ids, tuple(threads.values()))


def _message(app: Bide, owner: str, thread_id: str, prefix: str) -> str:
    """Leave a message in the outbox that was given up."""
    name = f"msg_{prefix}"
    url = "https://127.0.0.1/in"  # nobody is ever called there: it is no address of the internet
    put(app.store, [Message(name, owner, thread_id, "run.finished", "run", url, f'{{"note":"{SECRET}"}}')])
    for row in claim_messages(app.store, 10):
        mark_failed(app.store, row, f"nobody wants {SECRET}", is_hopeless=True)
    return name


def _made(answer: Any) -> Any:
    assert answer.status_code < 300, (answer.request.url, answer.status_code, answer.text)
    return answer.json()
