"""Threads with every kind of history: loops, branches, edits, questions, graphs inside, growing lists, large values.

What a thread does is in its input, word by word, so that the same words on another store make the same history.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, TypedDict

from bide import END, START, Command, CompiledGraph, Interrupt, StateGraph, Store, interrupt
from bide.store.links import LinkedHistory
from bide.store.prune_plan import LogKey
from bide.store.pruning import unused_blobs
from bide.store.retention import Point
from tests.threads import thread

WORDS = ("add", "add", "add", "replace", "remove", "note", "big", "huge", "count", "team", "club", "ask", "offer")


def joined(before: list[Any], update: Any) -> list[Any]:
    """Lists whose entries have names: an entry with a known name takes its place, "-name" takes it out."""
    entries = {entry["name"]: entry for entry in before}
    for entry in update:
        if entry["name"].startswith("-"):
            entries.pop(entry["name"][1:], None)
        else:
            entries[entry["name"]] = entry
    return list(entries.values())


class Small(TypedDict, total=False):
    """Some keys that hardly ever change, so that most checkpoints have a base."""

    a: int
    b: int
    c: int
    d: int
    e: int
    f: int


class State(Small, total=False):
    words: list[str]
    said: Annotated[list[Any], joined]
    number: int
    note: str
    big: str
    team: int
    club: int
    answer: str
    depth: int


class Inner(TypedDict, total=False):
    team: int
    club: int
    trace: Annotated[list[str], lambda before, update: [*before, *update]]
    answer: str
    depth: int


def work(state: State) -> Command[Any]:
    """Do the next word."""
    words, number = state.get("words") or [], state.get("number", 0) + 1
    if not words:
        return Command(goto=END)
    word, rest = words[0], words[1:]
    update: dict[str, Any] = {"words": rest, "number": number}
    said = state.get("said") or []
    if word == "add":
        update["said"] = [{"name": f"n{number}", "text": f"text {number} " * 8}]
    elif word == "replace" and said:
        update["said"] = [{"name": said[len(said) // 2]["name"], "text": f"new {number} " * 8}]
    elif word == "remove" and said:
        update["said"] = [{"name": f"-{said[0]['name']}"}]
    elif word == "note":
        update["note"] = f"note {number} " * 60
    elif word == "big":
        update["big"] = f"{number} " * 500
    elif word == "huge":
        update["big"] = f"{number % 3} " * 40_000
    elif word == "count":
        update["a"] = number
    goto = word if word in ("team", "club", "ask", "offer") else "work"
    return Command(update=update, goto=goto)


def ask(state: State) -> dict[str, Any]:
    return {"answer": interrupt({"question": f"What about {state['number']}?"})}


def offer(state: State) -> Any:
    """A node that is done, and asks what its result leads to."""
    return {"note": f"offered {state['number']}"}, Interrupt(f"Good enough at {state['number']}?")


def first(state: Inner) -> dict[str, Any]:
    depth = len(state.get("trace") or [])
    return {"team": state.get("team", 0) + 1, "depth": depth, "trace": [f"first {len(state.get('trace') or [])} " * 30]}


def second(state: Inner) -> dict[str, Any]:
    if (state.get("team", 0) + state.get("club", 0)) % 3 == 0:
        return {"answer": interrupt("And inside?"), "club": state.get("club", 0) + 1}
    return {"club": state.get("club", 0) + 1, "trace": ["second"]}


def inner_graph(**options: Any) -> CompiledGraph:
    builder = StateGraph(Inner).add_sequence([first, second])
    return builder.add_edge(START, "first").add_edge("second", END).compile(**options)


def graph_on(store: Store) -> CompiledGraph:
    """The graph that does what its input says; `team` starts anew at each call, `club` keeps its state."""
    builder = StateGraph(State).add_node("work", work).add_node("ask", ask).add_node("offer", offer)
    builder.add_node("team", inner_graph()).add_node("club", inner_graph(checkpointer=True))
    builder.add_edge(START, "work")
    for node in ("ask", "offer", "team", "club"):
        builder.add_edge(node, "work")
    return builder.compile(checkpointer=store)


BEGINNING = {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "number": 0}


class Life:
    """One thread on one store, and what may happen to it."""

    def __init__(self, store: Store, name: str = "t") -> None:
        self.store = store
        self.graph = graph_on(store)
        self.name = name
        self.graph.invoke({**BEGINNING, "words": ["add", "note"]}, thread(name))

    @property
    def uid(self) -> str:
        return self.graph.get_state(thread(self.name)).config["configurable"]["checkpoint_id"].rpartition("-")[0]

    def at(self, seq: int) -> dict[str, Any]:
        return {"configurable": {"thread_id": self.name, "checkpoint_id": f"{self.uid}-{seq:08d}"}}

    def do(self, words: Iterable[str], durability: Any = "sync", config: Any = None) -> None:
        """Go on with new words, from the head or from an older checkpoint; questions are answered on the way."""
        self.finish()
        self.graph.invoke({"words": list(words)}, config or thread(self.name), durability=durability)

    def finish(self) -> None:
        """Answer whatever is asked, until the thread is at rest."""
        for _ in range(100):
            snapshot = self.graph.get_state(thread(self.name))
            if not (snapshot.interrupts or snapshot.next):
                return
            answers = {ask.id: f"yes {number}" for number, ask in enumerate(snapshot.interrupts)}
            self.graph.invoke(Command(resume=answers) if answers else None, thread(self.name))
        raise AssertionError("the thread never comes to rest")

    def edit(self, number: int) -> None:
        self.graph.update_state(thread(self.name), {"number": number, "note": f"edited {number} " * 30})

    def fork(self, seq: int) -> None:
        """Begin a branch at an older checkpoint, and follow it to its end."""
        self.graph.invoke(None, self.graph.fork(self.at(seq)))

    def shown(self) -> dict[int, Any]:
        """Everything that readers see of each checkpoint."""
        return {seq_of(snapshot.config): snapshot for snapshot in self.graph.get_state_history(thread(self.name))}

    def end(self) -> Any:
        """Where the thread stands, without what names this very thread."""
        snapshot = self.graph.get_state(thread(self.name), subgraphs=True)
        asked = [ask.value for ask in snapshot.interrupts]
        return snapshot.values, snapshot.next, [task.name for task in snapshot.tasks], asked


def seq_of(config: Any) -> int:
    return int(config["configurable"]["checkpoint_id"].rpartition("-")[2])


def inner_states(store: Store, name: str = "t") -> dict[tuple[str, int], Any]:
    """Every checkpoint of every graph of a thread, as the store gives it out."""
    places = sorted({point.ns for point in points_of(store, name)})
    found = {(ns, row.row.seq): row for ns in places for row in store.history(name, ns, before=2**62, most=10_000)}
    return {place: (found.row, dict(found.small), dict(found.large)) for place, found in found.items()}


def points_of(store: Store, name: str = "t") -> list[Point]:
    rows = store.database.read(lambda tx: tx.all("list_points", {"thread_id": name}))
    return [Point(*row) for row in rows]


def branches_of(points: Iterable[Point]) -> set[int]:
    """Both ends of every fork in a history of which nothing is gone: what was made from one that was not the last."""
    ends: set[int] = set()
    seqs = [point.seq for point in points if not point.ns]
    for point in points:
        is_branch = not point.ns and point.parent is not None and any(point.parent < s < point.seq for s in seqs)
        ends |= {point.seq, point.parent or 0} if is_branch else set()
    return ends


def beginning_of(store: Store, name: str = "t") -> set[int]:
    """What a run that is not over can be rolled back to: what it began at, and its first checkpoint, which says so."""
    live = {run.run_id for run in store.runs(name) if run.status not in ("done", "failed", "cancelled")}
    first = next((point for point in points_of(store, name) if not point.ns and point.run_id in live), None)
    return set() if first is None else {first.seq, first.parent or 0}


def check_nothing_is_left_over(store: Store, name: str = "t") -> None:
    """Every row of the channel log is part of a value that can be read, and every blob is used."""

    def look(tx: Any) -> None:
        spans: dict[tuple[str, str], set[tuple[int, int]]] = {}
        needed = set()
        points = [Point(*row) for row in tx.all("list_points", {"thread_id": name})]
        for point in points:
            if not point.pruned:
                frame = LinkedHistory(tx, store.bodies, name, point.ns).frame(point.seq)
                needed.add((point.ns, frame.base))
                for channel, held in frame.logged.items():
                    spans.setdefault((point.ns, channel), set()).update(held)
        for row in tx.all("list_logged", {"thread_id": name}):
            key = LogKey(*row)
            assert any(a <= key.seq <= b for a, b in spans.get((key.ns, key.channel), ())), f"{key} is left over"
        for point in points:
            assert not point.pruned or (point.ns, point.seq) in needed, f"{point} is left over"
        assert unused_blobs(tx, store.bodies, name) == set()

    store.database.read(look)


__all__ = ["WORDS", "Life", "branches_of", "check_nothing_is_left_over", "graph_on", "inner_states", "points_of"]
