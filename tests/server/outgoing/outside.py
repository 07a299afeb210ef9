"""The world outside a server: receivers of webhooks on loopback, kind and unkind ones, and whoever resolves names."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from bide.clock import elapsed

PATIENCE = 30.0

OK = b"HTTP/1.1 204 No Content\r\n\r\n"


class Call(NamedTuple):
    """A request as it came."""

    line: str
    headers: Mapping[str, str]
    body: bytes


Answer = Callable[[socket.socket, Call], None]


def saying(response: bytes) -> Answer:
    """Answer with these bytes."""
    return lambda connection, call: connection.sendall(response)


def status(code: int, *headers: str) -> Answer:
    """Answer with a status and headers."""
    lines = "".join(f"{header}\r\n" for header in (*headers, "content-length: 0"))
    return saying(f"HTTP/1.1 {code} Whatever\r\n{lines}\r\n".encode())


class Receiver:
    """A server that hears what it is told: answers are used up one after the other, and the last one stays."""

    def __init__(self, answers: Sequence[Answer], wrap: Callable[[socket.socket], socket.socket]) -> None:
        self.answers = list(answers)
        self.calls: list[Call] = []
        self.connections = 0
        self._wrap = wrap
        self._changed = threading.Condition()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/in"
        threading.Thread(target=self._accept, daemon=True).start()

    def wait_for(self, count: int) -> list[Call]:
        """Return the calls, as soon as there are so many."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.calls) >= count, PATIENCE), f"{len(self.calls)} calls"
            return list(self.calls)

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, raw: socket.socket) -> None:
        try:
            with self._wrap(raw) as connection:
                connection.settimeout(PATIENCE)
                call = read_call(connection)
                with self._changed:
                    answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                    self.calls.append(call)
                    self._changed.notify_all()
                answer(connection, call)
        except (OSError, ValueError):
            raw.close()


def read_call(connection: socket.socket) -> Call:
    """Read one request."""
    read = b""
    while b"\r\n\r\n" not in read:
        piece = connection.recv(65536)
        if not piece:
            raise ValueError("nobody said anything")
        read += piece
    head, _, body = read.partition(b"\r\n\r\n")
    line, *lines = head.decode("ascii").split("\r\n")
    headers = {name.lower(): value for name, _, value in (text.partition(": ") for text in lines)}
    while len(body) < int(headers.get("content-length", "0")):
        body += connection.recv(65536)
    return Call(line, headers, body)


@contextmanager
def receiving(
    *answers: Answer, wrap: Callable[[socket.socket], socket.socket] = lambda connection: connection
) -> Iterator[Receiver]:
    """Let somebody listen on loopback."""
    receiver = Receiver(answers or [saying(OK)], wrap)
    try:
        yield receiver
    finally:
        receiver.close()


def until(is_so: Callable[[], bool], what: str) -> None:
    """Look until something is so; it takes no longer than it takes."""
    began, pause = elapsed(), threading.Event()
    while not is_so():
        assert elapsed() - began < PATIENCE, f"it never was so: {what}"
        pause.wait(0.01)


class Names:
    """A resolver that knows a few names, and remembers who asked."""

    def __init__(self, **known: Sequence[str]) -> None:
        self.known = {name.replace("_", "."): list(addresses) for name, addresses in known.items()}
        self.asked: list[str] = []

    def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        if host not in self.known:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return self.known[host]
