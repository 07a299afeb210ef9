"""Threads that ask, a server, and what people and programs do with links."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any, TypedDict

from starlette.testclient import TestClient

from bide import START, Bide, StateGraph, Store, all_of, any_of, ask, interrupt, wait_for
from bide.server import Settings, create_app
from bide.server.settings import LimitSettings
from bide.testing import FakeClock
from bide.waits import approval, email

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
SETTINGS: dict[str, Any] = {
    "limits": LimitSettings(public_rate=0),
    "worker": False,
    "public_url": "https://bide.example",
}


class State(TypedDict, total=False):
    text: str
    answer: Any


def pay(state: State) -> dict[str, Any]:
    return {"answer": wait_for(approval(state.get("text", "Pay 120 €?")), timeout="2d").value}


def pay_with_form(state: State) -> dict[str, Any]:
    form = {
        "type": "object",
        "properties": {
            "amount": {"type": "integer", "minimum": 1, "title": "Amount in €"},
            "note": {"type": "string", "description": "Printed on the receipt"},
            "account": {"enum": ["main", "savings"]},
            "urgent": {"type": "boolean"},
        },
        "required": ["amount", "account"],
    }
    return {"answer": wait_for(approval("Pay it?", form=form)).value}


def pay_or_mail(state: State) -> dict[str, Any]:
    came = wait_for(any_of(email(from_="secret@example.org"), boss=approval("Close it by hand?")))
    return {"answer": came.value}


def two_sign(state: State) -> dict[str, Any]:
    done = wait_for(all_of(ada=approval("Ada, sign?"), bob=approval("Bob, sign?")))
    return {"answer": {label: wake.value for label, wake in done.value.items()}}


def how_many(state: State) -> dict[str, Any]:
    return {"answer": ask("How many?", schema=int)}


def is_it(state: State) -> dict[str, Any]:
    return {"answer": ask("Is it so?", schema=bool)}


def plain(state: State) -> dict[str, Any]:
    return {"answer": interrupt({"question": "What now?", "draft": "<script>alert(1)</script>", "total": 3})}


def proposal(state: State) -> dict[str, Any]:
    actions = [{"name": "send_mail", "args": {"to": "ada@example.org"}, "description": "Send the quote"}]
    allowed = {"action_name": "send_mail", "allowed_decisions": ["approve", "edit", "reject"]}
    return {"answer": interrupt({"action_requests": actions, "review_configs": [allowed]})}


NODES: tuple[Callable[[State], dict[str, Any]], ...] = (
    pay,
    pay_with_form,
    pay_or_mail,
    two_sign,
    how_many,
    is_it,
    plain,
    proposal,
)


class World:
    """An application, its server, and a client of it."""

    def __init__(self, store: Store, clock: FakeClock, stack: ExitStack, **settings: Any) -> None:
        self.store, self.clock = store, clock
        graphs = [
            StateGraph(State).add_node(node.__name__, node).add_edge(START, node.__name__).compile(name=node.__name__)
            for node in NODES
        ]
        self.app = Bide(store, graphs)
        self.api = create_app(self.app, Settings(**{**SETTINGS, **settings}))
        self.client = stack.enter_context(TestClient(self.api))

    def ask(self, graph: str = "pay", thread_id: str = "t", **state: Any) -> str:
        """Let a thread ask; return the id of its wait."""
        self.app.start(graph, state, thread_id=thread_id)
        self.settle()
        return self.app.waits(thread_id=thread_id)[0].id

    def settle(self) -> None:
        while self.app.run_ready(most=10):
            pass

    def link(self, wait_id: str, **asked: Any) -> str:
        """Make a link as a program does; return its address on this server."""
        made = self.client.post(f"/waits/{wait_id}/links", json=asked)
        assert made.status_code == 201, made.text
        return str(made.json()["url"]).removeprefix("https://bide.example")

    def open(self, path: str) -> Page:
        """Open a link in a browser."""
        return self._read(self.client.get(path, headers=BROWSER))

    def send(self, path: str, **typed: str) -> Page:
        """Send the form of a page."""
        return self._read(self.client.post(path, data=typed, headers=BROWSER))

    @staticmethod
    def _read(answer: Any) -> Page:
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        page = Page(answer.status_code, answer.text, answer.headers)
        page.check()
        return page

    def answer(self, thread_id: str = "t") -> Any:
        """What the thread got, once it has gone on."""
        self.settle()
        return self.app.get(thread_id).values.get("answer")

    def snapshot(self) -> list[Any]:
        """Every row of every table that a decision could change."""
        tables = ("threads", "runs", "waits", "conditions", "events", "links", "audit", "deliveries", "secrets")
        return [self.rows(table) for table in tables]

    def rows(self, table: str) -> list[Any]:
        """All rows of a table."""

        def read(tx: Any) -> list[Any]:
            return sorted(map(repr, tx.connection.execute(f"SELECT * FROM {self._named(table)}").fetchall()))

        return self.store.database.read(read)

    def change(self, statement: str) -> None:
        """Change rows behind everybody's back."""
        self.store.database.write("test", lambda tx: tx.connection.execute(statement) and None)

    def edit(self, wait_id: str, title: str) -> None:
        """Let a wait ask something else under its id, as when a run that was cancelled is tried again."""
        from bide.store.needed import close_needs

        row = self.store.wait(wait_id)
        assert row is not None
        assert row.needs.condition is not None
        needs = row.needs._replace(condition={**row.needs.condition, "title": title})
        said = {"wait_id": wait_id, "needs": close_needs(self.store.bodies, wait_id, needs), "remind_at": None}
        self.store.database.write("test", lambda tx: tx.run("change_needs", said))

    def _named(self, table: str) -> str:
        return table if self.store.database.path.startswith(("/", ":", "file")) else f"bide.{table}"


@dataclass
class Page:
    """A page as a browser shows it."""

    status: int
    text: str
    headers: Any

    def check(self) -> None:
        """Refuse a page that is not well formed, or whose fields have no labels."""
        read = _Reader()
        read.feed(self.text)
        read.close()
        assert self.text.startswith("<!doctype html>")
        assert not read.open, f"never closed: {read.open}"
        assert not read.wrong, read.wrong
        assert read.ids == list(dict.fromkeys(read.ids)), "an id comes twice"
        assert set(read.labelled) <= set(read.ids)
        assert set(read.fields) <= set(read.labelled), "a field has no label"
        assert (read.headings, read.lang) == (1, "en")

    @property
    def buttons(self) -> list[str]:
        read = _Reader()
        read.feed(self.text)
        return read.buttons


_VOID = ("meta", "link", "input", "br", "hr", "img")


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.ids: list[str] = []
        self.labelled: list[str] = []
        self.fields: list[str] = []
        self.buttons: list[str] = []
        self.headings = 0
        self.lang: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("script", "style") or any(name.startswith("on") or name == "style" for name in given):
            self.wrong.append(f"<{tag}> would not be allowed to run")
        if tag not in _VOID:
            self.open.append(tag)
        if given.get("id"):
            self.ids.append(str(given["id"]))
        if tag == "label":
            self.labelled.append(str(given.get("for")))
        if tag in ("input", "select", "textarea"):
            self.fields.append(str(given.get("id")))
        if tag == "button":
            self.buttons.append(str(given.get("value")))
        self.headings += tag == "h1"
        self.lang = given.get("lang") if tag == "html" else self.lang

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(f"</{tag}> closes something else")
