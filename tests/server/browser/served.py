"""A server in a process of its own, to be killed: `python -m tests.server.browser.served DATABASE PORT`."""

from __future__ import annotations

import socket
import sys
from typing import Any

import uvicorn

from bide import START, Bide, StateGraph, step
from bide.server import Settings, create_app
from bide.server.settings import LimitSettings
from tests.server.pages.desk import State, graphs, number


def order() -> Any:
    """Ask how many, and then do it once."""

    def buy(state: State) -> dict[str, Any]:
        return {"answer": step(lambda: f"ordered {state['answer']} teapots")}

    builder = StateGraph(State).add_node("ask", number).add_node("buy", buy)
    return builder.add_edge(START, "ask").add_edge("ask", "buy").compile(name="order")


def main(database: str, port: str) -> None:
    """Serve until killed."""
    # Whoever calls before the server is ready waits in the socket's queue.
    listening = socket.create_server(("127.0.0.1", int(port)))
    with Bide(f"sqlite:///{database}", [*graphs(), order()]) as app, app.worker(poll=0.05):
        settings = Settings(limits=LimitSettings(rate=0, public_rate=0), heartbeat=0.5, worker=False)
        config = uvicorn.Config(create_app(app, settings), log_config=None, timeout_graceful_shutdown=2)
        uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main(*sys.argv[1:])
