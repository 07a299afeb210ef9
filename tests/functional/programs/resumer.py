"""A process that answers the question of an entrypoint's task when it is told to, while another one does the same.

    python resumer.py FOLDER WHO

It reads lines of JSON: `["ask", thread]` begins a thread, `["answer", thread]` answers it. It prints `{"won": true}`
or `{"won": false}`. `used.txt` in FOLDER has a line for every answer that the task went on with.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from bide import Command, Store, entrypoint, interrupt, task
from bide.errors import ConflictError, ResumeError


def main(folder: Path, who: str) -> None:
    @task
    def ask(name: str) -> Any:
        answer = interrupt("Pay?")
        with open(folder / "used.txt", "a", encoding="utf-8") as used:
            used.write(f"{name} {answer}\n")
        return answer

    with Store.open(f"sqlite:///{folder / 'bide.db'}") as store:

        @entrypoint(checkpointer=store)
        def pay(name: str) -> Any:
            return ask(name).result()

        print(json.dumps("ready"), flush=True)
        for line in sys.stdin:
            what, name = json.loads(line)
            try:
                given = name if what == "ask" else Command(resume=who)
                pay.invoke(given, {"configurable": {"thread_id": name}})
                print(json.dumps({"won": True}), flush=True)
            except (ConflictError, ResumeError):
                print(json.dumps({"won": False}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
