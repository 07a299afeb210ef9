"""One of several processes that want the same thread at the same moment.

    python racer.py FOLDER WHO

It obeys lines of JSON: `["ask", thread]` starts a thread and lets it wait, `["resume", thread, rendezvous]` answers it,
`["start", thread, rendezvous]` starts a new one. With a rendezvous the racer stops between reading the thread and
taking it (its conditional edge is chosen just there), says "at the door", and goes on with the next line, whatever that
is: so both racers have seen the same waiting thread before either of them takes it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, TypedDict

from bide import END, START, Command, Interrupt, Runtime, StateGraph, Store, step
from bide.errors import BideError, ConflictError


def say(what: Any) -> None:
    print(json.dumps(what), flush=True)


class State(TypedDict):
    asked_by: str
    done_by: str


class Racer:
    def __init__(self, folder: Path, who: str) -> None:
        self.folder = folder
        self.who = who
        self.meets = False
        graph = StateGraph(State)
        graph.add_node(self.ask)
        graph.add_node(self.act)
        graph.add_conditional_edges(START, self.to_ask)
        graph.add_conditional_edges("ask", self.to_act)
        graph.add_edge("act", END)
        self.store = Store.open(f"sqlite:///{folder / 'bide.db'}")
        self.graph = graph.compile(checkpointer=self.store)

    # ── The graph ──────────────────────────────────────────────────────────────────────────────────────────────────

    def to_ask(self, state: State) -> str:
        self.stop_at_the_door()
        return "ask"

    def ask(self, state: State) -> list[Any]:
        self.leave_a_mark("ask")
        return [{"asked_by": self.who}, Interrupt("Who acts?")]

    def to_act(self, state: State) -> str:
        self.stop_at_the_door()
        return "act"

    def act(self, state: State, runtime: Runtime) -> dict[str, Any]:
        self.leave_a_mark("act")
        step(self.book, str(runtime.thread_id), runtime.resume_value, effect="tx")
        return {"done_by": runtime.resume_value}

    def leave_a_mark(self, node: str) -> None:
        """An effect that nobody journals: if the loser ran its node, this would tell."""
        file = os.open(self.folder / "marks.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.write(file, f"{self.who} {node}\n".encode())
        os.close(file)

    @staticmethod
    def book(connection: Any, thread: str, who: str) -> None:
        connection.execute("CREATE TABLE IF NOT EXISTS ledger (thread TEXT NOT NULL, who TEXT NOT NULL)")
        connection.execute("INSERT INTO ledger (thread, who) VALUES (?, ?)", (thread, who))

    # ── The race ───────────────────────────────────────────────────────────────────────────────────────────────────

    def stop_at_the_door(self) -> None:
        if self.meets:
            self.meets = False
            say("at the door")
            sys.stdin.readline()

    def obey(self, what: str, thread: str, rendezvous: bool = False) -> dict[str, Any]:
        config = {"configurable": {"thread_id": thread}}
        given = Command(resume=self.who) if what == "resume" else {"asked_by": "nobody"}
        self.meets = rendezvous
        try:
            self.graph.invoke(given, config)
        except BideError as error:
            return {"won": False, "error": type(error).__name__, "is_conflict": isinstance(error, ConflictError)}
        finally:
            self.meets = False
        return {"won": True}


def main(folder: Path, who: str) -> None:
    racer = Racer(folder, who)
    say("ready")
    for line in sys.stdin:
        say(racer.obey(*json.loads(line)))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
