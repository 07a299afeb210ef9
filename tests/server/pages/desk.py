"""Agents that ask in every way there is, their server, and whoever sits in front of it."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypedDict

from starlette.testclient import TestClient

from bide import (
    START,
    Bide,
    CompiledGraph,
    StateGraph,
    Store,
    add_messages,
    any_of,
    ask,
    interrupt,
    quorum,
    spawn,
    wait_for,
)
from bide.messages import AIMessage, ToolMessage
from bide.server import Settings, create_app
from bide.server.auth.keys import create_key
from bide.server.caller import SCOPES
from bide.server.settings import AuthSettings, LimitSettings
from bide.testing import FakeClock
from bide.waits import approval, child, email
from tests.server.pages.plain_browser import PlainBrowser


class State(TypedDict, total=False):
    given: Any
    answer: Any
    topics: list[str]
    amount: int


class Chat(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]


@dataclass
class Terms:
    """What is offered."""

    price: int
    currency: Literal["EUR", "USD"]
    note: str = ""


def given(state: State) -> dict[str, Any]:
    return dict(state.get("given") or {})


def pay(state: State) -> Any:
    """Ask for a decision."""
    options: dict[str, Any] = {"timeout": "48h", "default": "nobody", **given(state)}
    title = options.pop("title", "Pay 120 EUR?")
    decided = wait_for(approval(title, assignees=["maya"]), **options)
    return {"answer": decided if isinstance(decided, str) else decided.value}


def offer(state: State) -> Any:
    return {"answer": wait_for(approval("Offer these terms?", options=("offer", "revise", "drop"), form=Terms)).value}


def number(state: State) -> Any:
    return {"answer": ask("How many?", schema=int)}


def certain(state: State) -> Any:
    return {"answer": ask("Are you sure?", schema=bool)}


def free(state: State) -> Any:
    return {"answer": interrupt(state.get("given", {"question": "Send this?", "subject": "Teas"}))}


ACTION = {"name": "refund", "args": {"order": "A-17", "amount": 129.5, "is_urgent": False, "lines": ["a", "b"]}}


def act(state: State) -> Any:
    review = {"action_name": "refund", "allowed_decisions": ["approve", "edit", "reject", "respond"]}
    several = (state.get("given") or {}).get("actions", 1)
    return {"answer": interrupt({"action_requests": [ACTION] * several, "review_configs": [review]})}


def agent_inbox(state: State) -> Any:
    config = {"allow_accept": True, "allow_edit": True, "allow_respond": True, "allow_ignore": True}
    request = {"action": "refund", "args": {"order": "A-17"}}
    return {"answer": interrupt([{"action_request": request, "config": config, "description": "Broken."}])}


def vote(state: State) -> Any:
    return {"answer": sorted(wait_for(quorum(2, ann=approval("Go?"), ben=approval("Go?"), cleo=approval("Go?"))).value)}


def reply(state: State) -> Any:
    came = wait_for(any_of(email(from_="ada@example.org", subject="Re: *"), boss=approval("Close it?")))
    return {"answer": came.winner}


def mail(state: State) -> Any:
    return {"answer": wait_for(email(from_="ada@example.org"), timeout="2d", default=None).value}


def broken(state: State) -> Any:
    raise RuntimeError("the printer is on <b>fire</b>")


def parent(state: State) -> Any:
    return {"answer": wait_for(child(spawn("mail", {}, key="one"))).value.summary}


def think(state: Chat) -> Any:
    call = {"name": "refund", "args": {"order": "A-17"}, "id": "c1"}
    return {"messages": [AIMessage("I would refund it.", tool_calls=[call])]}


def tool(state: Chat) -> Any:
    said = interrupt("May I?")
    return {"messages": [ToolMessage(str(said), tool_call_id="c1"), AIMessage("Done.")]}


NODES = (pay, offer, number, certain, free, act, agent_inbox, vote, reply, mail, broken, parent)


def graphs() -> list[CompiledGraph]:
    """A graph of each node, and one that talks."""
    made = [
        StateGraph(State).add_node(node.__name__, node).add_edge(START, node.__name__).compile(name=node.__name__)
        for node in NODES
    ]
    chat = StateGraph(Chat).add_sequence([think, tool]).add_edge(START, "think").compile(name="chat")
    stop = StateGraph(State).add_node("stop", number).add_edge(START, "stop").compile(name="stop")
    return [*made, chat, stop]


class Desk:
    """A server whose runs the test drives itself, on a clock that moves when the test says so."""

    def __init__(self, store: Store, clock: FakeClock, stack: ExitStack, **settings: Any) -> None:
        self.store, self.clock = store, clock
        self.app = Bide(store, graphs())
        limits = LimitSettings(rate=0, public_rate=0)
        self.api = create_app(self.app, Settings(**{"limits": limits, "worker": False, **settings}))
        self.client = stack.enter_context(TestClient(self.api, base_url="http://127.0.0.1"))
        self.browser = PlainBrowser(self.client)

    def settle(self) -> None:
        """Do all that is due, and drive all that is ready."""
        for _ in range(200):
            tended, driven = self.app.tend(), self.app.run_ready(most=10)
            if not driven and not tended.is_something:
                return
        raise AssertionError("it never comes to rest")

    def ask(self, graph: str, thread_id: str = "t", owner: str = "", **said: Any) -> str:
        """Let a thread ask; return the id of its wait."""
        self.app.start(graph, {"given": said} if said else {}, thread_id=thread_id, owner=owner)
        self.settle()
        return self.app.waits(thread_id=thread_id)[0].id

    def answer_of(self, thread_id: str = "t") -> Any:
        """What the node got, after it went on."""
        self.settle()
        return self.app.get(thread_id).values.get("answer")


class Office(Desk):
    """The same behind keys: everybody has a browser with a key in it."""

    def __init__(self, store: Store, clock: FakeClock, stack: ExitStack) -> None:
        super().__init__(store, clock, stack, auth=AuthSettings("keys"))
        self.maya = self.person("maya", "acme")
        self.tom = self.person("tom", "acme")
        self.mallory = self.person("mallory", "other")

    def person(self, name: str, owner: str, *scopes: str) -> PlainBrowser:
        key, _ = create_key(self.store, name, owner, scopes or SCOPES)
        return PlainBrowser(TestClient(self.api, base_url="http://127.0.0.1"), **{"x-api-key": key})
