"""A process that uses the gate of a database in a way that others must survive.

    python gate_user.py LOCK_FILE busy BOOK
    python gate_user.py LOCK_FILE die
    python gate_user.py LOCK_FILE orphan

It goes in and out and signs a book each time, until told to stop; or dies inside; or dies inside and leaves a forked
child, who lives until told to stop.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys

from bide.store.gate import Gate


def say(word: str) -> None:
    print(json.dumps(word), flush=True)


def sign(book: str, name: str) -> None:
    """Write a name down, as durably as a commit is."""
    with open(book, "a", encoding="ascii") as file:
        file.write(name)
        file.flush()
        os.fsync(file.fileno())


def be_busy(gate: Gate, book: str) -> None:
    while not select.select([sys.stdin], [], [], 0)[0]:
        gate.inside(sign, book, "b")


def die(gate: Gate) -> None:
    say("dying")
    os.kill(os.getpid(), signal.SIGKILL)


def leave_an_orphan(gate: Gate) -> None:
    if os.fork() == 0:
        sys.stdin.readline()
        os._exit(0)
    die(gate)


def main(lock_file: str, how: str, *more: str) -> None:
    gate = Gate(lock_file)
    if how == "busy":
        be_busy(gate, *more)
    else:
        gate.inside({"die": die, "orphan": leave_an_orphan}[how], gate)


if __name__ == "__main__":
    main(*sys.argv[1:])
