"""A proxy before PostgreSQL that breaks connections at the worst moment: around a commit.

    with ChaosProxy(dsn) as proxy:
        proxy.plan = once(Fault.REPLY_LOST)      # the next commit is made, and nobody hears of it
        Store.open(proxy.dsn)

It runs in a thread of its own. A plan is asked for every batch, and says what goes wrong with it, if anything.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from enum import Enum, auto
from pathlib import Path
from random import Random
from threading import Event, Lock, Thread
from typing import Self

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.faults.messages import (
    CANCEL_REQUEST,
    ERROR,
    GSS_REQUEST,
    READY,
    SSL_REQUEST,
    Batch,
    Client,
    read_message,
    read_opening,
)

SECONDS = 60
"""How long a test may wait for the proxy before it gives up."""


class Fault(Enum):
    """What goes wrong with a batch."""

    REQUEST_LOST = auto()
    """The connection breaks before the server has seen any of it."""
    HALF_REQUEST = auto()
    """The connection breaks in the middle of it."""
    REPLY_LOST = auto()
    """The server does it; its reply is swallowed, and the connection breaks."""
    HALF_REPLY = auto()
    """The server does it; the connection breaks in the middle of its reply."""
    SILENT_BEFORE = auto()
    """Nothing arrives any more, and nobody says so: the connection seems to stand."""
    SILENT_AFTER = auto()
    """The server does it; from then on nothing arrives any more."""
    SILENT_MIDWAY = auto()
    """Half of it arrives, and from then on nothing any more: the server waits for the rest."""
    LATE = auto()
    """The client's side breaks; the server gets it much later, when `release` is called."""
    HELD = auto()
    """The server gets it when `release` is called; nothing breaks."""


CUTS = (Fault.REQUEST_LOST, Fault.HALF_REQUEST, Fault.REPLY_LOST, Fault.HALF_REPLY)
SILENCES = (Fault.SILENT_BEFORE, Fault.SILENT_MIDWAY, Fault.SILENT_AFTER)
_ON_THE_WAY_BACK = (Fault.REPLY_LOST, Fault.HALF_REPLY, Fault.SILENT_AFTER)

Plan = Callable[[Batch], Fault | None]


def peace(_: Batch) -> None:
    """Let everything through."""


def at(number: int, fault: Fault) -> Plan:
    """Break the so-many-th batch of a transaction that writes, counted from nought, and nothing else."""
    count = -1

    def plan(batch: Batch) -> Fault | None:
        nonlocal count
        count += batch.is_writing
        return fault if batch.is_writing and count == number else None

    return plan


def once(fault: Fault) -> Plan:
    """Break the next commit, and nothing else."""
    is_over = False

    def plan(batch: Batch) -> Fault | None:
        nonlocal is_over
        if is_over or not batch.is_commit:
            return None
        is_over = True
        return fault

    return plan


def by_dice(seed: int, share: float, faults: tuple[Fault, ...] = CUTS) -> Plan:
    """Break so large a share of all commits, the n-th of them in the same way for the same seed."""
    dice = Random(seed)

    def plan(batch: Batch) -> Fault | None:
        if not batch.is_commit:
            return None
        is_hit, fault = dice.random() < share, dice.choice(faults)
        return fault if is_hit else None

    return plan


class ChaosProxy:
    """Stands between clients and a server; clients reach it through a socket in a folder of its own."""

    def __init__(self, dsn: str) -> None:
        given = conninfo_to_dict(dsn)
        self._host, self._port = str(given["host"]), str(given.get("port") or 5432)
        # Under /tmp, since a socket's path must stay under 108 characters.
        self._folder = Path(tempfile.mkdtemp(prefix="bide-proxy-", dir="/tmp"))
        self.dsn = make_conninfo(dsn, host=str(self._folder))
        self.hits: Counter[Fault] = Counter()
        self.batches: list[Batch] = []
        """Every batch of a transaction that may write."""
        self.has_refused = Event()
        """Set when the server has not let a client in."""
        self.late_replies: list[bytes] = []
        """What the server said to those that came late."""
        self.caught = Event()
        """Set when a batch was hit."""
        self._lock = Lock()
        self._plan: Plan = peace
        self._loop = asyncio.new_event_loop()
        self._released = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = Thread(target=self._loop.run_forever, name="chaos-proxy", daemon=True)

    # ── For tests ──────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def plan(self) -> Plan:
        return self._plan

    @plan.setter
    def plan(self, plan: Plan) -> None:
        with self._lock:
            self._plan = plan
            self.caught.clear()

    def release(self) -> None:
        """Let through whatever is held, with the server's answer to what came late; hang up where all is silent."""
        self._run(self._let_through())

    def __enter__(self) -> Self:
        self._thread.start()
        self._listening = self._run(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._leave())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(SECONDS)
        self._loop.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, work: object) -> object:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(SECONDS)  # type: ignore[arg-type]

    # ── Inside its thread ──────────────────────────────────────────────────────────────────────────────────────────

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_unix_server(self._welcome, str(self._folder / f".s.PGSQL.{self._port}"))

    async def _leave(self) -> None:
        self._listening.close()  # type: ignore[attr-defined]
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _let_through(self) -> None:
        self._released.set()
        waiting = [task for task in self._tasks if task.get_name() == "late"]
        await asyncio.gather(*waiting, return_exceptions=True)
        self._released.clear()

    async def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            await Meeting(self, reader, writer).take_place()
        except (asyncio.IncompleteReadError, OSError, asyncio.CancelledError):
            pass  # one of the two has left, or the test is over
        finally:
            writer.close()
            self._tasks.discard(task)

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to the server: in a folder, or on a machine."""
        if self._host.startswith("/"):
            return await asyncio.open_unix_connection(f"{self._host}/.s.PGSQL.{self._port}")
        return await asyncio.open_connection(self._host, int(self._port))

    def judge(self, batch: Batch) -> Fault | None:
        """Decide what happens to a batch."""
        with self._lock:
            if batch.is_writing:
                self.batches.append(batch)
            fault = self._plan(batch)
            if fault is not None:
                self.hits[fault] += 1
                self.caught.set()
            return fault

    async def until_released(self) -> None:
        await self._released.wait()


class Cut(Exception):
    """The connection breaks here, on both sides."""


class Meeting:
    """One client and the server's side of its connection."""

    def __init__(self, proxy: ChaosProxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.proxy = proxy
        self.from_client, self.to_client = reader, writer
        self.client = Client(reader)
        self.expected: list[Fault | None] = [None]
        """What happens to the replies that are to come; the first is the server's welcome."""
        self.is_welcome = False
        self.is_silent = False
        self.is_over = asyncio.Event()
        """Set when no answer will come any more, or the one that came late is there."""

    async def take_place(self) -> None:
        code, opening = await read_opening(self.from_client)
        while code in (SSL_REQUEST, GSS_REQUEST):
            self.to_client.write(b"N")
            code, opening = await read_opening(self.from_client)
        self.from_server, self.to_server = await self.proxy.connect()
        try:
            self.to_server.write(opening)
            if code == CANCEL_REQUEST:
                await self.from_server.read()
                return
            await self._carry()
        finally:
            self.to_server.close()

    async def _carry(self) -> None:
        """Carry messages both ways until one side ends, or is ended."""
        ways = [asyncio.create_task(self._carry_up()), asyncio.create_task(self._carry_down())]
        try:
            done, _ = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            if self.is_silent:
                await self.proxy.until_released()
            for way in done:
                with contextlib.suppress(Cut, asyncio.IncompleteReadError, OSError):
                    way.result()
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _carry_up(self) -> None:
        while True:
            batch = await self.client.next_batch()
            fault = self.proxy.judge(batch)
            if fault is None or fault in _ON_THE_WAY_BACK:
                await self._send(batch, fault)
            elif fault is Fault.HELD:
                await self.proxy.until_released()
                await self._send(batch, None)
            elif fault is Fault.LATE:
                await self._send_late(batch)
            else:
                await self._lose(batch, fault)

    async def _send(self, batch: Batch, fault: Fault | None) -> None:
        if batch.wants_answer:
            self.expected.append(fault)
        self.to_server.write(batch.data)
        await self.to_server.drain()

    async def _lose(self, batch: Batch, fault: Fault) -> None:
        if fault in (Fault.HALF_REQUEST, Fault.SILENT_MIDWAY):
            self.to_server.write(batch.data[: len(batch.data) // 2])
            await self.to_server.drain()
        if fault in SILENCES:
            await self._fall_silent()
        raise Cut

    async def _fall_silent(self) -> None:
        """Carry nothing any more. When the client gives up, the server is not told, until the test says so."""
        self.is_silent = True
        await self.proxy.until_released()
        self.is_silent = False

    async def _send_late(self, batch: Batch) -> None:
        """Break the client's side; send the batch when the test says so, and keep what the server says."""
        self.to_client.close()
        late = asyncio.create_task(self._come_late(batch), name="late")
        self.proxy._tasks.add(late)
        late.add_done_callback(self.proxy._tasks.discard)
        await late

    async def _come_late(self, batch: Batch) -> None:
        await self.proxy.until_released()
        self.expected.append(Fault.LATE)
        with contextlib.suppress(OSError):
            self.to_server.write(batch.data)
            await self.to_server.drain()
        await self.is_over.wait()

    async def _carry_down(self) -> None:
        try:
            await self._carry_replies()
        finally:
            self.is_over.set()

    async def _carry_replies(self) -> None:
        reply = b""
        while True:
            message = await read_message(self.from_server)
            if not self.is_welcome and message.kind == ERROR:
                self.proxy.has_refused.set()
            reply += message.data
            fault = self.expected[0] if self.expected else None
            if fault is None:
                self.to_client.write(message.data)
                await self.to_client.drain()
            if message.kind == READY:
                self.is_welcome = True
                self.expected.pop(0)
                await self._end_reply(reply, fault)
                reply = b""

    async def _end_reply(self, reply: bytes, fault: Fault | None) -> None:
        """Do what was planned for a reply, now that all of it is here: the server has done what it was asked."""
        if fault is Fault.HALF_REPLY:
            self.to_client.write(reply[: len(reply) // 2])
            await self.to_client.drain()
            raise Cut
        if fault is Fault.REPLY_LOST:
            raise Cut
        if fault is Fault.SILENT_AFTER:
            await self._fall_silent()
        if fault is Fault.LATE:
            self.proxy.late_replies.append(reply)
            self.is_over.set()
