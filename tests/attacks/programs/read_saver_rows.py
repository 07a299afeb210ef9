"""The same as read_rows.py for the rows of a saver that LangGraph's own graphs run on."""

from __future__ import annotations

import json
import operator
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from bide import Store
from bide.interop.langgraph import BideSaver
from bide.store.seal import Checksums
from tests.attacks.programs.read_rows import ORDINARY, QUIET, Attack, attack_readers, report_on, targets
from tests.attacks.watch import Watch
from tests.attacks.world import HUGE, LARGE, Listening, bodies_in
from tests.threads import thread

COLUMNS = (
    ("saver_checkpoints", "body"),
    ("saver_checkpoints", "metadata"),
    ("saver_values", "body"),
    ("saver_writes", "body"),
)


class State(TypedDict, total=False):
    note: str
    letter: str
    book: str
    said: Annotated[list[str], operator.add]


def graph_on(saver: BideSaver) -> Any:
    """A graph of LangGraph's that writes, and then asks."""

    def write(state: State) -> dict[str, Any]:
        return {"note": "written", "letter": LARGE, "book": HUGE, "said": [LARGE, "one"]}

    def ask(state: State) -> dict[str, Any]:
        return {"note": interrupt("Who signs?")}

    builder = StateGraph(State).add_node("write", write).add_node("ask", ask)
    return builder.add_edge(START, "write").add_edge("write", "ask").compile(checkpointer=saver)


def readers(saver: BideSaver) -> dict[str, Callable[[], Any]]:
    """What LangGraph reads when it goes on, and when it looks back."""
    return {
        "get_tuple": lambda: saver.get_tuple({**thread("t")}),  # type: ignore[typeddict-item]
        "list": lambda: list(saver.list({**thread("t")})),  # type: ignore[typeddict-item]
        "search": lambda: list(saver.list(None, filter={"source": "loop"})),
    }


def main() -> None:
    """Build a thread, learn where its bodies are sealed, and attack."""
    path = Path(sys.argv[1]) / "bide.db"
    with Store.open(f"sqlite:///{path}") as store:
        graph_on(BideSaver(store)).invoke({"note": "begun", "said": [LARGE]}, thread("t"))
    opened: dict[str, dict[bytes, str]] = {}
    with Store.open(f"sqlite:///{path}") as store:
        store.bodies.seal = listening = Listening(Checksums())
        for name in readers(BideSaver(store)):
            listening.places = opened[name] = {}
            readers(BideSaver(store))[name]()
    found = targets(bodies_in(path, COLUMNS), opened)
    watch = Watch(ORDINARY | QUIET)
    attack = Attack(watch, path.parent)
    with Store.open(f"sqlite:///{path}") as store:
        acts = readers(BideSaver(store))
        attack_readers(attack, path, {name: fresh(store, name) for name in acts}, found)
    json.dump(report_on(attack, watch, found), sys.stdout)


def fresh(store: Store, name: str) -> Callable[[], Any]:
    """A reader that remembers nothing."""
    return lambda: readers(BideSaver(store))[name]()


if __name__ == "__main__":
    main()
