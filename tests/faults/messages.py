"""As much of PostgreSQL's protocol as one must read to know when a transaction is about to be committed.

A client sends messages and then a synchronisation point; the server answers all of them and says that it is ready. What
lies between two such points is a batch here: it is one transaction, or a piece of one that was begun before.
"""

from __future__ import annotations

from asyncio import StreamReader
from dataclasses import dataclass

SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102
READY, ERROR = b"Z", b"E"
_ENDS_A_BATCH = (b"S", b"Q", b"X", b"p", b"H")
_WRITES = ("INSERT", "UPDATE", "DELETE", "WITH", "CREATE", "COMMENT")


@dataclass
class Batch:
    """What a client sends before it waits for an answer."""

    data: bytes
    texts: tuple[str, ...]
    """The statements that it runs."""
    is_commit: bool
    """Whether the server makes something durable when it has read all of it."""
    is_writing: bool
    """Whether it belongs to a transaction that may write."""
    ends: bool
    """Whether the client says good-bye."""
    wants_answer: bool


@dataclass
class Message:
    """One message, with its head."""

    kind: bytes
    data: bytes

    @property
    def body(self) -> bytes:
        return self.data[5:]


async def read_message(reader: StreamReader) -> Message:
    head = await reader.readexactly(5)
    length = int.from_bytes(head[1:], "big")
    return Message(head[:1], head + await reader.readexactly(length - 4))


async def read_opening(reader: StreamReader) -> tuple[int, bytes]:
    """Read what a client says first, which has no letter; return its code and the whole of it."""
    head = await reader.readexactly(8)
    length, code = int.from_bytes(head[:4], "big"), int.from_bytes(head[4:], "big")
    return code, head + await reader.readexactly(length - 8)


class Client:
    """Puts the messages of one client together, and knows what each of its prepared statements says."""

    def __init__(self, reader: StreamReader) -> None:
        self.reader = reader
        self.statements: dict[bytes, str] = {}
        self.portals: dict[bytes, bytes] = {}
        self.is_inside = False
        """Whether a transaction was begun that is not over yet."""
        self.has_written = False
        self.is_reading = False

    async def next_batch(self) -> Batch:
        """Read up to the next point at which the client waits."""
        data, texts = b"", []
        while True:
            message = await read_message(self.reader)
            data += message.data
            texts += self._run_by(message)
            if message.kind in _ENDS_A_BATCH:
                return self._batch(data, tuple(texts), message.kind)

    def _run_by(self, message: Message) -> list[str]:
        """Return the statement that a message lets run, if it is one of those."""
        words = message.body.split(b"\0")
        if message.kind == b"P":
            self.statements[words[0]] = words[1].decode(errors="replace")
        elif message.kind == b"B":
            self.portals[words[0]] = words[1]
        elif message.kind == b"E":
            return [self.statements.get(self.portals.get(words[0], b""), "")]
        elif message.kind == b"Q":
            return [words[0].decode(errors="replace")]
        return []

    def _batch(self, data: bytes, texts: tuple[str, ...], last: bytes) -> Batch:
        was_inside = self.is_inside
        wrote = is_ending = False
        for text in texts:
            word = (text.split(None, 1) or [""])[0].upper()
            if word == "BEGIN":
                self.is_inside, self.has_written, self.is_reading = True, False, "READ ONLY" in text.upper()
            elif word in ("COMMIT", "ROLLBACK"):
                is_ending = word == "COMMIT"
                wrote = wrote or self.has_written
                self.is_inside = False
            elif word in _WRITES:
                wrote = self.has_written = True
        alone = not was_inside and not self.is_inside and not is_ending
        is_writing = not self.is_reading and (wrote or was_inside or self.is_inside)
        if not self.is_inside:
            self.has_written = self.is_reading = False
        is_commit = wrote and (is_ending or alone)
        return Batch(data, texts, is_commit, is_writing, last == b"X", last in (b"S", b"Q"))
