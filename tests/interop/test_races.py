"""Several at once on one thread: each write is whole or not there, and a deleted thread is deleted."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bide.errors import ThreadDeletedError
from bide.interop.langgraph import BideSaver
from tests.interop.graphs import CONFIG, chat, checkpoint, say

WORKERS = 6
TURNS = 8
LOG = ["x" * 400]


def test_branches_that_grow_at_the_same_time_keep_their_own_lists(saver: BideSaver) -> None:
    base = saver.put(
        {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}, checkpoint("0", log=LOG), {}, {"log": 1}
    )

    def grow(branch: int) -> list[tuple[Any, list[str]]]:
        config, log, made = base, LOG, []
        for turn in range(TURNS):
            log = [*log, f"{branch}.{turn}"]
            config = saver.put(config, checkpoint(f"{turn + 1}-{branch}", log=log), {}, {"log": 1})
            saver.put_writes(config, [("log", [branch, turn])], f"task-{branch}")
            made.append((config, log))
        return made

    with ThreadPoolExecutor(WORKERS) as pool:
        branches = list(pool.map(grow, range(WORKERS)))

    for config, log in [pair for branch in branches for pair in branch]:
        found = BideSaver(saver.store).get_tuple(config)
        assert found is not None
        assert found.checkpoint["channel_values"] == {"log": log}
        assert found.pending_writes is not None
        assert len(found.pending_writes) == 1


def test_a_thread_that_is_deleted_under_its_runs_is_never_half_there(saver: BideSaver) -> None:
    graph = chat().compile(checkpointer=saver)

    def talk(number: int) -> int:
        refused = 0
        for turn in range(TURNS):
            try:
                graph.invoke(say(f"{number} {turn} {'word ' * 100}"), CONFIG, durability="sync")
            except ThreadDeletedError:
                refused += 1
        return refused

    def delete(_: int) -> int:
        for _ in range(TURNS):
            saver.delete_thread("t")
        return 0

    with ThreadPoolExecutor(4) as pool:
        talking = [pool.submit(talk, number) for number in range(3)]
        deleting = pool.submit(delete, 0)
        refused = [future.result() for future in (*talking, deleting)]

    left = list(saver.list(CONFIG))
    ids = {one.checkpoint["id"] for one in left}
    parents = {one.parent_config["configurable"]["checkpoint_id"] for one in left if one.parent_config}
    assert sum(refused) <= 3 * TURNS
    assert parents <= ids, "no checkpoint is left whose parent was deleted"
    saver.delete_thread("t")
    assert list(saver.list(CONFIG)) == []
