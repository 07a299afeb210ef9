"""A process from which servers are born: it has imported everything already, so a server costs a fork.

    python nursery.py

It obeys the same lines as the nursery of the fleet.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    # Failpoints are armed by the environment when they are imported, or not at all. Each server arms its own.
    os.environ["BIDE_FAILPOINT_TRACE"] = os.devnull
    sys.path.insert(0, str(Path(__file__).parents[4]))


def main() -> None:
    import psycopg  # noqa: F401 — for all at once

    import bide.failpoints
    import bide.store.postgres
    import tests.server.streams.lives  # noqa: F401 — for all at once
    from tests.fleet.programs.nursery import give_birth

    assert bide.failpoints.ON
    for line in sys.stdin:
        match json.loads(line):
            case ["born", told]:
                answer: Any = give_birth(told)
            case ["wait", pid]:
                answer = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
