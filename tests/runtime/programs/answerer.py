"""Answers waits as fast as it can, in a process of its own.

    python answerer.py URL SCHEMA NAMES

reads the ids of the waits from its standard input, one in a line, and an empty line as the sign to begin. Each of the
comma-separated NAMES is an answerer in a thread of its own. Prints a line of JSON for each answer.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[3]))

from bide import Store
from tests.runtime.answering import answer_all


def main(url: str, schema: str, names: str) -> None:
    waits: list[str] = []
    with Store.open(url, **({"schema": schema} if schema else {})) as store:
        print(json.dumps("open"), flush=True)
        for line in sys.stdin:
            if not line.strip():
                break
            waits.append(line.strip())
        for told in answer_all(store, waits, names.split(",")):
            print(json.dumps(told._asdict()))
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
