"""The process that serves and drives the agents, and that is killed.

    python -m bide.demo.server DATABASE LEDGER PACE PORT WORKER

It is what `bide serve` is: an application, and a server around it. It ends by itself when the demo does.
"""

from __future__ import annotations

import os
import signal
import sys
import threading

from bide import Bide
from bide.demo.agents import PAYMENTS, agents
from bide.demo.outside import Outside
from bide.server import Settings
from bide.server.observe.logs import write_logs
from bide.server.process import serve
from bide.server.settings import HookSettings, Listening

SECRET = "BIDE_DEMO_SECRET"
"""Where the secret of the bank's webhook is."""


def main() -> None:
    """Serve until somebody says stop, or the demo is gone."""
    database, ledger, pace, port, worker = sys.argv[1:]
    write_logs("warning", as_json=False)
    threading.Thread(target=_stop_with_the_demo, daemon=True).start()
    hook = HookSettings(PAYMENTS, "github", (os.environ[SECRET],))
    settings = Settings(hooks=(hook,), worker=worker == "worker")
    with Bide(f"sqlite:///{database}", agents(Outside(ledger, float(pace)))) as app:
        serve(app, settings, Listening(port=int(port), grace=2.0))


def _stop_with_the_demo() -> None:
    """Stop when the pipe is closed whose other end the demo holds: however it went, nobody needs this process then."""
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
