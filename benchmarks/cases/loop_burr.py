"""The loop on Burr: InMemoryPersister (a list of states, nothing is encoded), SQLitePersister or PostgreSQLPersister.

Building an application is not measured, only running it.
"""

from __future__ import annotations

import sqlite3
from typing import Any

from burr.core import Application, ApplicationBuilder, State, action, when
from burr.core.persistence import InMemoryPersister, SQLitePersister
from case import Settings, report, settings
from loop import REPEATS, STOPWATCH, is_over, rounds_of


@action(reads=["n", "limit"], writes=["n", "over"])
def count(state: State) -> State:
    n = state["n"] + 1
    STOPWATCH.passed(n)
    return state.update(n=n, over=is_over({"n": n, "limit": state["limit"], "text": ""}))


@action(reads=[], writes=["text"])
def speak(state: State) -> State:
    return state.update(text="spoken")


@action(reads=[], writes=["text"])
def listen(state: State) -> State:
    return state.update(text="heard")


@action(reads=[], writes=[])
def end(state: State) -> State:
    return state


def open_persister(asked: Settings) -> Any:
    if asked.store == "memory":
        return InMemoryPersister()
    if asked.store == "postgres":
        return on_postgres(asked.url)
    connection = sqlite3.connect(asked.database)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    persister = SQLitePersister(str(asked.database), connection=connection)
    persister.initialize()
    return persister


def on_postgres(url: str) -> Any:
    """Its driver is another one than everybody else's, and only this case needs it."""
    import psycopg2
    from burr.integrations.persisters.b_psycopg2 import PostgreSQLPersister

    persister = PostgreSQLPersister(psycopg2.connect(url))
    persister.initialize()
    return persister


def build(persister: Any, number: int, rounds: int) -> Application:
    return (
        ApplicationBuilder()
        .with_actions(count=count, speak=speak, listen=listen, end=end)
        .with_transitions(
            ("count", "speak"), ("speak", "listen"), ("listen", "end", when(over=True)), ("listen", "count")
        )
        .with_state(n=0, limit=rounds, text="", over=False)
        .with_entrypoint("count")
        .with_identifiers(app_id=f"loop-{number}", partition_key="bench")
        .with_state_persister(persister)
        .build()
    )


def main() -> None:
    asked = settings()
    rounds = rounds_of(asked)
    persister = open_persister(asked)
    for number in range(asked.amount(REPEATS, 1)):
        application = build(persister, number, rounds)
        STOPWATCH.time(lambda application=application: application.run(halt_before=["end"]))
        assert application.state["n"] == rounds, application.state
    report(**STOPWATCH.metrics())


if __name__ == "__main__":
    main()
