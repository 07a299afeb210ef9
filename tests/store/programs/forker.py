"""A process that forks while its store is busy, and says how its child fared.

    python forker.py DATABASE

The child has the parent's objects, and none of its threads. It must be told so, must not wait for locks that nobody
will open there, and must not take anything from its parent.
"""

from __future__ import annotations

import json
import os
import sys
from threading import Event, Thread
from typing import Any

from bide import Store
from bide.errors import StoreError


def told(call: Any) -> str:
    try:
        call()
    except StoreError as error:
        return "forked" if "forked" in str(error) else str(error)
    return "no error"


def in_child(store: Store, answers: int) -> None:
    found = [told(lambda: store.threads()), told(lambda: store.delete_thread("t")), told(lambda: store.close())]
    os.write(answers, json.dumps(found).encode())
    os._exit(0)


def main(path: str) -> None:
    is_inside, may_leave = Event(), Event()

    def hold(tx: Any) -> None:
        is_inside.set()
        may_leave.wait()

    with Store.open(f"sqlite:///{path}") as store:
        holder = Thread(target=store.database.write, args=("hold", hold))
        holder.start()
        is_inside.wait()
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            in_child(store, writing)
        os.close(writing)
        with os.fdopen(reading) as answers:
            found = json.load(answers)
        os.waitpid(child, 0)
        may_leave.set()
        holder.join()
        store.delete_thread("nobody")
        print(json.dumps({"child": found, "parent": len(store.threads())}), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
