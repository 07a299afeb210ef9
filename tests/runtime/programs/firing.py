"""A process that starts what is due at an instant.

    python firing.py URL NOW

It says "ready", waits for a line, starts what is due, and says how many runs that were. It knows no graph.
"""

from __future__ import annotations

import json
import sys

from bide import Bide, Store
from tests.runtime.world import StillClock


def main(url: str, now: int) -> None:
    schema = None if url.startswith("sqlite:") else "bide"
    with Store.open(url, schema=schema, clock=StillClock(now)) as store:
        app = Bide(store)
        print(json.dumps("ready"), flush=True)
        sys.stdin.readline()
        print(json.dumps(app.start_due()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
