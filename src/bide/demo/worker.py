"""The process that drives the agents, and that is killed.

    python -m bide.demo.worker DATABASE LEDGER PACE

It is what `bide worker` is: an application, and `worker().run()`. It ends by itself when the demo does.
"""

from __future__ import annotations

import sys
import threading

from bide import Bide
from bide.demo.agents import agents
from bide.demo.outside import Outside
from bide.runtime import Worker


def main() -> None:
    """Work until somebody says stop, or the demo is gone."""
    database, ledger, pace = sys.argv[1:]
    with Bide(f"sqlite:///{database}", agents(Outside(ledger, float(pace)))) as app:
        worker = app.worker(poll=0.2, grace=2.0)
        threading.Thread(target=_stop_with_the_demo, args=[worker], daemon=True).start()
        worker.run()


def _stop_with_the_demo(worker: Worker) -> None:
    """Stop when the pipe is closed whose other end the demo holds: however it went, nobody needs this process then."""
    sys.stdin.read()
    worker.stop()


if __name__ == "__main__":
    main()
