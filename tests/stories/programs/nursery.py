"""A process from which others are born that drive an order in PostgreSQL, and die on the way.

    python nursery.py

It has imported everything already, so a child costs a fork and not a start of Python. It obeys lines of JSON,
`[folder, dsn, schema, durability, point]`, each for one child: the child leaves the points that it passes in
`FOLDER/trace.txt`, dies at `point` if there is one, and else leaves the state in `FOLDER/state.json`. The answer is the
child's exit code; what it had to say is in `FOLDER/said.txt`.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

# Failpoints are armed by the environment when they are imported, or not at all. Each child arms its own.
os.environ["BIDE_FAILPOINT_TRACE"] = os.devnull
sys.path.insert(0, str(Path(__file__).parents[3]))


def give_birth(folder: str, dsn: str, schema: str, durability: str, point: str) -> int:
    """Let a child drive the order; return how it ended, a signal as a negative number."""
    child = os.fork()
    if child == 0:
        live(Path(folder), dsn, schema, durability, point)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def live(folder: Path, dsn: str, schema: str, durability: str, point: str) -> None:
    from bide import failpoints
    from tests.stories.programs.order import drive
    from tests.stories.programs.order_on_server import OnServer

    failpoints._ARMED, failpoints._TRACE = point, str(folder / "trace.txt")
    said = os.open(folder / "said.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(said, 1)
    os.dup2(said, 2)
    code = 1
    try:
        state = drive(OnServer(folder, dsn, schema), durability)
        (folder / "state.json").write_text(json.dumps(state), encoding="utf-8")
        code = 0
    except Exception as error:  # noqa: BLE001 - whatever it is, it is told
        os.write(said, repr(error).encode())
    finally:
        os._exit(code)


def main() -> None:
    import bide.failpoints
    import tests.stories.programs.order_on_server  # noqa: F401 - for all children at once

    assert bide.failpoints.ON
    for line in sys.stdin:
        print(give_birth(*json.loads(line)), flush=True)


if __name__ == "__main__":
    main()
