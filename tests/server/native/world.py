"""An application that asks in many ways, its server, and people who call it with keys of their own."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, TypedDict

from starlette.testclient import TestClient

from bide import START, Bide, CompiledGraph, StateGraph, Store, all_of, any_of, ask, interrupt, sleep, wait_for
from bide.server import Settings, create_app
from bide.server.auth.keys import create_key
from bide.server.caller import SCOPES
from bide.server.settings import AuthSettings, LimitSettings
from bide.testing import FakeClock
from bide.waits import approval, email, event

FORM = {
    "type": "object",
    "properties": {"amount": {"type": "integer", "minimum": 1, "default": 120}, "note": {"type": "string"}},
    "required": ["amount"],
}


class State(TypedDict, total=False):
    given: Any
    answer: Any
    messages: list[Any]


def question(state: State) -> Any:
    return {"answer": interrupt({"question": "How many?"})}


def free(state: State) -> Any:
    return {"answer": interrupt(state["given"])}


def number(state: State) -> Any:
    return {"answer": ask("How many?", schema=int, timeout="2h", default=0)}


def pay(state: State) -> Any:
    said = state.get("given") or {}
    options = {name: said[name] for name in ("assignees", "tags", "timeout", "remind_every") if name in said}
    return {"answer": wait_for(approval("Pay?"), **options).value}


def form(state: State) -> Any:
    return {"answer": wait_for(approval("Pay?", form=FORM)).value}


def both(state: State) -> Any:
    signed = wait_for(all_of(ada=approval("Ada?"), bob=approval("Bob?")))
    return {"answer": {label: wake.value for label, wake in signed.value.items()}}


def reply(state: State) -> Any:
    came = wait_for(any_of(email(from_="ada@example.org"), boss=approval("Close it?")))
    return {"answer": came.winner}


def paid(state: State) -> Any:
    return {"answer": wait_for(event("paid", match={"order": 7})).value}


def asleep(state: State) -> Any:
    sleep("3h")
    return {"answer": "slept"}


def broken(state: State) -> Any:
    raise RuntimeError("the printer is on fire")


NODES: tuple[Callable[[State], Any], ...] = (question, free, number, pay, form, both, reply, paid, asleep, broken)


def graphs() -> list[CompiledGraph]:
    """A graph of each node, under its name."""
    return [
        StateGraph(State).add_node(node.__name__, node).add_edge(START, node.__name__).compile(name=node.__name__)
        for node in NODES
    ]


class World:
    """One server over a store, whose runs the test drives itself; the clock moves when the test says so."""

    def __init__(self, store: Store, clock: FakeClock, stack: ExitStack, **settings: Any) -> None:
        self.store, self.clock, self.stack = store, clock, stack
        self.app = Bide(store, graphs())
        limits = LimitSettings(rate=0, answer=10_000)
        self.settings = Settings(**{"limits": limits, "worker": False, **settings})
        self.api = create_app(self.app, self.settings)
        self.client = stack.enter_context(TestClient(self.api))

    def settle(self) -> None:
        """Do all that is due, and drive all that is ready."""
        for _ in range(100):
            tended, driven = self.app.tend(), self.app.run_ready(most=10)
            if not driven and not tended.is_something:
                return
        raise AssertionError("it never comes to rest")

    def ask(self, graph: str = "pay", thread_id: str = "t", *, owner: str = "", **said: Any) -> str:
        """Let a thread ask; return the id of its wait."""
        self.app.start(graph, {"given": said}, thread_id=thread_id, owner=owner)
        self.settle()
        return self.app.waits(thread_id=thread_id)[0].id

    def answer(self, wait_id: str, value: Any, **more: Any) -> Any:
        """Answer over HTTP."""
        return self.client.post(f"/waits/{wait_id}/answer", json={"value": value, **more})

    def answer_of(self, thread_id: str = "t") -> Any:
        """What the node got, after it went on."""
        self.settle()
        return self.app.get(thread_id).values.get("answer")


class Office(World):
    """The same behind keys: each person has one, and Mallory belongs to another owner."""

    def __init__(self, store: Store, clock: FakeClock, stack: ExitStack) -> None:
        super().__init__(store, clock, stack, auth=AuthSettings("keys"))
        self.ada = self.person("ada", "acme")
        self.bob = self.person("bob", "acme")
        self.mallory = self.person("mallory", "other")

    def person(self, name: str, owner: str, *scopes: str) -> TestClient:
        """A client with a key."""
        key, _ = create_key(self.store, name, owner, scopes or SCOPES)
        return TestClient(self.api, headers={"x-api-key": key})
