"""A load on a server over HTTP: many who answer, and many who follow. The standard library alone, so that every subject
is asked by the same client."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

from case import Settings, metric
from fleet import percentile

CALLERS = 16
PATIENCE_SECONDS = 120


def free_port() -> int:
    """Return a port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def served(command: Sequence[str], port: int, folder: Path) -> Iterator[int]:
    """Run a server as a process of its own until the block ends; yield its process id."""
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, *command], cwd=folder, stdout=log, stderr=log)
    try:
        _until_it_answers(port, process)
        yield process.pid
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(15)
        process.kill()


def _until_it_answers(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = perf_counter() + PATIENCE_SECONDS
    while True:
        try:
            status, _ = asyncio.run(_once(port, "GET", "/ok", None))
            if status == 200:
                return
        except OSError:
            pass
        if process.poll() is not None or perf_counter() > deadline:
            raise RuntimeError("the server does not answer; see its log")
        sleep(0.05)


async def _once(port: int, method: str, path: str, body: Any) -> tuple[int, Any]:
    caller = await Caller.connect(port)
    try:
        return await caller.call(method, path, body)
    finally:
        caller.close()


class Caller:
    """One connection that is kept open, as clients keep theirs."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def connect(cls, port: int) -> Caller:
        return cls(*await asyncio.open_connection("127.0.0.1", port, limit=2**22))

    def close(self) -> None:
        self.writer.close()

    async def send(self, method: str, path: str, body: Any) -> tuple[int, dict[str, str]]:
        """Send a request; return the status and the headers, with the body still to be read."""
        sent = b"" if body is None else json.dumps(body).encode()
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        self.writer.write(f"{head}Content-Length: {len(sent)}\r\n\r\n".encode() + sent)
        status = int((await self.reader.readline()).split()[1])
        headers = {}
        while (line := (await self.reader.readline()).decode().strip()) != "":
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        return status, headers

    async def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        status, headers = await self.send(method, path, body)
        if headers.get("transfer-encoding") == "chunked":
            read = b"".join([chunk async for chunk in self.chunks()])
        else:
            read = await self.reader.readexactly(int(headers.get("content-length", 0)))
        return status, json.loads(read) if read.strip() else None

    async def chunks(self) -> Any:
        """Yield the chunks of a body."""
        while size := int(await self.reader.readline(), 16):
            yield await self.reader.readexactly(size)
            await self.reader.readline()
        await self.reader.readline()


async def paused_threads(port: int, many: int) -> list[str]:
    """Make threads that ask, several at a time."""
    names: list[str] = []

    async def make(caller: Caller) -> None:
        while len(names) < many:
            _, thread = await caller.call("POST", "/threads", {})
            names.append(thread["thread_id"])
            await caller.call("POST", f"/threads/{names[-1]}/runs/wait", {"assistant_id": "order", "input": {}})

    await _by_callers(port, make)
    return names[:many]


async def _by_callers(port: int, work: Any) -> None:
    callers = [await Caller.connect(port) for _ in range(CALLERS)]
    try:
        await asyncio.gather(*(work(caller) for caller in callers))
    finally:
        for caller in callers:
            caller.close()


async def answers(port: int, threads: list[str]) -> dict[str, Any]:
    """Answer all threads, several at a time, each until it is done; say how long one took."""
    left, took = list(threads), []

    async def answer(caller: Caller) -> None:
        while left:
            path = f"/threads/{left.pop()}/runs/wait"
            before = perf_counter()
            status, values = await caller.call("POST", path, {"assistant_id": "order", "command": {"resume": "yes"}})
            took.append(perf_counter() - before)
            assert status == 200, status
            assert values["approved"] == "yes", values

    before = perf_counter()
    await _by_callers(port, answer)
    seconds = perf_counter() - before
    return {
        "answer": metric("ms", [seconds * 1e3 / len(threads)]),
        "answer_p99": metric("ms", [percentile(took, 0.99) * 1e3]),
    }


async def followers(port: int, pid: int, threads: list[str]) -> dict[str, Any]:
    """Follow all threads at once, answer one after the other, and see how soon each follower hears of it."""
    before_memory = memory_of(pid)
    heard = {thread: asyncio.Event() for thread in threads}
    asked: dict[str, float] = {}
    took: list[float] = []
    ready = asyncio.Semaphore(0)

    async def follow(thread: str) -> None:
        caller = await Caller.connect(port)
        status, _ = await caller.send("GET", f"/threads/{thread}/stream?stream_mode=run_modes", None)
        assert status == 200, status
        ready.release()
        async for chunk in caller.chunks():
            if b"event:" in chunk and b"metadata" in chunk and thread in asked:
                took.append(perf_counter() - asked[thread])
                heard[thread].set()
                caller.close()
                return

    tasks = [asyncio.create_task(follow(thread)) for thread in threads]
    for _ in threads:
        await asyncio.wait_for(ready.acquire(), PATIENCE_SECONDS)
    grown = memory_of(pid) - before_memory
    caller = await Caller.connect(port)
    for thread in threads:
        asked[thread] = perf_counter()
        await caller.call("POST", f"/threads/{thread}/runs", {"assistant_id": "order", "command": {"resume": "yes"}})
    await asyncio.wait_for(asyncio.gather(*(event.wait() for event in heard.values())), PATIENCE_SECONDS)
    caller.close()
    await asyncio.gather(*tasks)
    return {
        "follower_p50": metric("ms", [percentile(took, 0.5) * 1e3]),
        "follower_p99": metric("ms", [percentile(took, 0.99) * 1e3]),
        "follower_memory": metric("KB", [max(grown, 0) / 1024 / len(threads)]),
    }


def memory_of(pid: int) -> int:
    """Return how much memory a process has, in bytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def load(asked: Settings, port: int, pid: int) -> dict[str, Any]:
    """Put the whole load on a server that runs."""

    async def everything() -> dict[str, Any]:
        to_answer = await paused_threads(port, asked.amount(400, 4))
        to_follow = await paused_threads(port, asked.amount(300, 3))
        return {**await answers(port, to_answer), **await followers(port, pid, to_follow)}

    return asyncio.run(everything())
