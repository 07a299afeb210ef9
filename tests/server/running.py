"""A real server on loopback, for tests in which requests must truly come at the same time."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI


@contextmanager
def running_server(api: FastAPI) -> Iterator[str]:
    """Serve an application in a thread, on a port that is free; give its address."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(api, log_config=None, lifespan="on", timeout_graceful_shutdown=5))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, name="server", daemon=True)
    thread.start()
    try:
        host, port = listening.getsockname()
        yield f"http://{host}:{port}"  # whoever calls before it is ready waits in the socket's queue
    finally:
        server.should_exit = True
        thread.join(10)
        listening.close()
    assert not thread.is_alive(), "the server did not stop"


def until(is_so: Callable[[], bool], what: str, seconds: float = 20) -> None:
    """Come back when something is so that others bring about, or fail when it takes too long."""
    never = threading.Event()
    for _ in range(int(seconds / 0.02)):
        if is_so():
            return
        never.wait(0.02)
    raise AssertionError(f"It has not come true in {seconds} seconds that {what}.")
