"""Threads that are made for one run, and go when it is over: those of schedules, and of clients that keep none.

Such a thread is noted in the transaction that makes it. Any worker deletes it some time after its last run has ended;
until then whoever follows it can read how it ended. A thread that waits has not ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bide.store.database import Transaction

if TYPE_CHECKING:
    from bide.store.store import Store

LINGER = 60_000
"""For so many milliseconds after its end a thread can still be read."""


def let_go_when_it_ends(tx: Transaction, thread_id: str) -> None:
    """Note that a thread is to be deleted when its last run has ended."""
    tx.send("note_passing", {"thread_id": thread_id})


def let_go_of_ended(store: Store, most: int = 100) -> int:
    """Delete the threads that were noted and have ended; return how many there were."""
    params = {"before": store.clock.now() - LINGER, "most": most}
    found = store.database.read(lambda tx: tx.all("list_passed", params))
    for thread_id, is_there in found:
        if is_there:
            store.delete_thread(thread_id)
        key = {"thread_id": thread_id}
        store.database.write("pass", lambda tx, key=key: tx.run("forget_passing", key))  # type: ignore[misc]
    return len(found)
