"""One of many processes on one SQLite file, each with its own habit.

    python crowd.py HABIT FOLDER WHO ROUNDS

What is acknowledged is written to a ledger of its own, fsynced, before anything else is done. At the end the program
prints how many rounds it made, its longest wait, and every error that it met.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypedDict

from bide import END, START, Command, CompiledGraph, StateGraph, Store, interrupt, step
from bide.store.backup import back_up

TWO_THREADS = 2
STEPS = 4


class State(TypedDict):
    count: int


def book(connection: Any, thread: str, count: int) -> None:
    connection.execute("INSERT INTO bookings (thread, count) VALUES (?, ?)", (thread, count))


def build(store: Store, thread: str) -> CompiledGraph:
    """A node that books in the store's own transaction, again and again, and asks once in the middle."""

    def work(state: State) -> dict[str, Any]:
        if state["count"] == STEPS // 2:
            interrupt("Half-time. Go on?")
        step(book, thread, state["count"], effect="tx")
        return {"count": state["count"] + 1}

    graph = StateGraph(State).add_node(work).add_edge(START, "work")
    graph.add_conditional_edges("work", lambda state: "work" if state["count"] < STEPS else END)
    return graph.compile(checkpointer=store)


class Member:
    """One process of the crowd."""

    def __init__(self, folder: Path, who: str, rounds: int) -> None:
        self.folder, self.who, self.rounds = folder, who, rounds
        self.url = f"sqlite:///{folder / 'bide.db'}"
        self.longest = 0.0
        self.errors: list[str] = []

    def timed(self, call: Callable[[], Any]) -> Any:
        began = time.monotonic()
        try:
            return call()
        finally:
            self.longest = max(self.longest, time.monotonic() - began)

    def acknowledge(self, line: str) -> None:
        file = os.open(self.folder / f"ledger-{self.who}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.write(file, f"{line}\n".encode())
        os.fsync(file)
        os.close(file)

    # ── Habits ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def write(self) -> None:
        """Run threads to their end, with a pause in the middle, two at a time."""
        with Store.open(self.url) as store, ThreadPoolExecutor(TWO_THREADS) as pool:
            names = [f"{self.who}-{os.getpid()}-{number}" for number in range(self.rounds)]
            list(pool.map(lambda name: self.run(store, name), names))

    def run(self, store: Store, name: str) -> None:
        try:
            graph, config = build(store, name), {"configurable": {"thread_id": name}}
            self.timed(lambda: graph.invoke({"count": 0}, config))
            self.acknowledge(f"paused {name}")
            self.timed(lambda: graph.invoke(Command(resume="yes"), config))
            self.acknowledge(f"done {name}")
        except Exception as error:  # noqa: BLE001 — the test looks at them
            self.errors.append(f"{name}: {error!r}")

    def read(self) -> None:
        """List threads and waits, and look through histories."""
        with Store.open(self.url) as store:
            for _ in range(self.rounds):
                waits = self.timed(store.open_waits)
                for row in self.timed(lambda: store.threads(most=5)):
                    graph = build(store, row.thread_id)
                    config = {"configurable": {"thread_id": row.thread_id}}
                    counts = [snapshot.values.get("count", 0) for snapshot in graph.get_state_history(config)]
                    if counts != sorted(counts, reverse=True):
                        self.errors.append(f"{row.thread_id}: a history that goes {counts}")
                if any(wait.thread_id is None for wait in waits):
                    self.errors.append("a wait of nobody")

    def come_and_go(self) -> None:
        """Open the store and close it, all the time."""
        for number in range(self.rounds):
            with self.timed(lambda: Store.open(self.url)) as store:
                self.run(store, f"{self.who}-{os.getpid()}-{number}")

    def back_up(self) -> None:
        """Copy the store, all the time; whoever was acknowledged before is in the copy."""
        with Store.open(self.url) as store:
            for number in range(self.rounds):
                known = {line.split()[1] for file in self.folder.glob("ledger-*") for line in whole_lines(file)}
                copy = self.timed(lambda number=number: back_up(store.database, self.folder / f"copy-{number}.db"))
                with Store.open(f"sqlite:///{copy}") as copied:
                    missing = known - {row.thread_id for row in copied.threads(most=100_000)}
                if missing:
                    self.errors.append(f"not in the copy: {missing}")


def whole_lines(ledger: Path) -> list[str]:
    """The lines of a ledger that may be in the middle of being written."""
    return ledger.read_text().rpartition("\n")[0].splitlines()


def main(habit: str, folder: Path, who: str, rounds: int) -> None:
    member = Member(folder, who, rounds)
    try:
        getattr(member, habit)()
    except Exception as error:  # noqa: BLE001 — the test looks at them
        member.errors.append(repr(error))
    print(json.dumps({"who": who, "longest": round(member.longest, 3), "errors": member.errors}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
