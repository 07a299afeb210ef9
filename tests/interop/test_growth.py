"""What a conversation costs on disk grows with what was said, and not with its square."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, RemoveMessage

from bide.interop.langgraph import BideSaver
from tests.interop.graphs import CONFIG, chat, checkpoint, say

WORDS = "word " * 100


def bytes_in(path: Path) -> int:
    """Everything that the saver has stored: bodies, metadata and keys."""
    with closing(sqlite3.connect(path)) as database:
        return sum(
            database.execute(f"SELECT COALESCE(SUM(LENGTH(body) + LENGTH(thread_id) + 80), 0) FROM {table}").fetchone()[
                0
            ]
            for table in ("saver_checkpoints", "saver_values", "saver_writes")
        )


def talk(graph: Any, turns: int) -> int:
    """Talk for so many turns; return how many bytes were said."""
    said = 0
    for turn in range(turns):
        text = f"{turn} {WORDS}"
        graph.invoke(say(text), CONFIG, durability="sync")
        said += 2 * len(text)
    return said


def test_two_hundred_turns_cost_a_small_multiple_of_what_was_said(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with BideSaver(f"sqlite:///{path}") as saver:
        graph = chat().compile(checkpointer=saver)

        said = talk(graph, 100)
        half = bytes_in(path)
        said += talk(graph, 100)
        whole = bytes_in(path)
        spoken = graph.get_state(CONFIG).values["messages"]

    assert len(spoken) == 400
    assert whole < 2.2 * half
    assert whole < 5 * said


def test_every_old_checkpoint_reads_as_it_was_written(tmp_path: Path) -> None:
    with BideSaver(f"sqlite:///{tmp_path / 'app.db'}") as saver:
        graph = chat().compile(checkpointer=saver)
        talk(graph, 80)

    with BideSaver(f"sqlite:///{tmp_path / 'app.db'}") as saver:
        graph = chat().compile(checkpointer=saver)
        lengths = [len(state.values["messages"]) for state in graph.get_state_history(CONFIG)]  # type: ignore[arg-type]

    expected = [length for turn in range(80) for length in (2 * turn, 2 * turn + 1, 2 * turn + 2)]
    assert lengths[::-1] == expected


def test_messages_that_are_changed_or_removed_cost_what_they_are(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with BideSaver(f"sqlite:///{path}") as saver:
        graph = chat().compile(checkpointer=saver)
        talk(graph, 50)
        before = bytes_in(path)
        first, second = graph.get_state(CONFIG).values["messages"][:2]  # type: ignore[arg-type]

        edit = {"messages": [HumanMessage("changed", id=first.id), RemoveMessage(id=second.id)]}
        graph.update_state(CONFIG, edit, as_node="model")  # type: ignore[arg-type]

        edited = graph.get_state(CONFIG).values["messages"]  # type: ignore[arg-type]

    assert [edited[0].content, len(edited)] == ["changed", 99]
    assert bytes_in(path) - before < 3000


def test_a_long_fork_deleted_again_leaves_the_trunk_readable(tmp_path: Path) -> None:
    with BideSaver(f"sqlite:///{tmp_path / 'app.db'}") as saver:
        graph = chat().compile(checkpointer=saver)
        talk(graph, 3)
        trunk = graph.get_state(CONFIG)  # type: ignore[arg-type]
        # Long enough that its rows are put together in groups with those of the trunk.
        for turn in range(80):
            graph.invoke(say(f"{turn} {WORDS}"), {"configurable": {**CONFIG["configurable"], "run_id": "fork"}})

        saver.delete_for_runs(["fork"])
        talk(graph, 2)

        found = graph.get_state(CONFIG).values["messages"]  # type: ignore[arg-type]

    assert [message.content for message in found[:6]] == [message.content for message in trunk.values["messages"]]
    assert len(found) == 10


@pytest.mark.parametrize("who", ["the same saver", "one that remembers", "one that has read nothing"])
def test_a_list_goes_on_from_a_row_that_stands_for_a_deleted_fork_too(who: str) -> None:
    def put(by: BideSaver, parent: Any, name: str, log: list[str], run: str) -> Any:
        return by.put(parent, checkpoint(name, log=log), {"run_id": run}, {"log": 1})  # type: ignore[typeddict-unknown-key]

    saver = BideSaver(":memory:")
    other = BideSaver(saver.store)
    trunk = put(saver, {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}, "000", [WORDS], "trunk")
    if who == "one that remembers":
        assert other.get_tuple(trunk) is not None
    fork, log = trunk, [WORDS]
    for number in range(1, 80):  # so many that they are put together in one row, with the trunk's
        log = [*log, f"{number} {WORDS}"]
        fork = put(saver, fork, f"{number:03}", log, "fork")
    saver.delete_for_runs(["fork"])

    newest = put(saver if who == "the same saver" else other, trunk, "100", [WORDS, "after"], "trunk")

    with saver:
        logs = [one.checkpoint["channel_values"]["log"] for one in BideSaver(saver.store).list(CONFIG)]
        assert newest["configurable"]["checkpoint_id"] == "100"
        assert logs == [[WORDS, "after"], [WORDS]]
