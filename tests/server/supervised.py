"""A supervisor that hands a task to workers and answers when they have ended, served with a worker: all of it real."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypedDict

import httpx

from bide import START, AIMessage, CompiledGraph, MessagesState, StateGraph, ToolMessage, interrupt, spawn, wait_for
from bide.waits import child, event

PATIENCE = httpx.Timeout(60)


class Task(TypedDict, total=False):
    task: str
    summary: str


def think(state: MessagesState) -> dict[str, Any]:
    """Call a tool for each line of what was asked; two that read the same are two calls."""
    lines = str(state["messages"][-1].content).splitlines()
    calls = [
        {"name": "spawn_worker", "args": {"task": line}, "id": f"call-{number}", "type": "tool_call"}
        for number, line in enumerate(lines, 1)
    ]
    return {"messages": [AIMessage("I hand this to a worker.", tool_calls=calls)]}


def delegate(state: MessagesState) -> dict[str, Any]:
    """Submit a job for each call, and wait for them, one after the other."""
    calls = state["messages"][-1].tool_calls
    jobs = {call["id"]: spawn("worker", {"task": call["args"]["task"]}, key=call["id"]) for call in calls}
    results = []
    for call in calls:
        job, task = jobs[call["id"]], call["args"]["task"]
        asked = {"type": "worker_pending", "job_id": job.thread_id, "task": task, "message": f"Working on: {task}"}
        ended = interrupt(asked, wake=child(job)).value
        results.append(ToolMessage(ended.summary, tool_call_id=call["id"]))
    return {"messages": results}


def answer(state: MessagesState) -> dict[str, Any]:
    """Sum up what the workers found."""
    found = [str(one.content) for one in state["messages"] if isinstance(one, ToolMessage)]
    return {"messages": [AIMessage("; ".join(found))]}


def work(state: Task) -> Task:
    """Wait for the fact that the task is about: so a test says when a worker is done."""
    found = wait_for(event("found", match={"task": state["task"]})).value
    return {"summary": f"{state['task']}: {found['result']}"}


def household() -> list[CompiledGraph]:
    """The supervisor and its worker, each new."""
    supervisor = StateGraph(MessagesState).add_sequence([think, delegate, answer]).add_edge(START, "think")
    worker = StateGraph(Task).add_node(work).add_edge(START, "work")
    return [supervisor.compile(name="supervisor"), worker.compile(name="worker")]


class Sent(NamedTuple):
    """One server-sent event."""

    event: str
    data: Any
    id: str


class Stream:
    """A stream that is read one event at a time."""

    def __init__(self, response: httpx.Response) -> None:
        self._lines = response.iter_lines()

    def until(self, name: str, says: Callable[[Any], Any] = bool, **held: Any) -> Sent:
        """Read on to the next event of this name that says so, and holds these values."""
        return next(
            sent for sent in self.rest() if sent.event == name and says(sent.data) and held.items() <= sent.data.items()
        )

    def until_beat(self) -> None:
        """Read on to a sign of life, which tells nothing and keeps the connection open."""
        next(line for line in self._lines if line.startswith(":"))

    def rest(self) -> Iterator[Sent]:
        """Read all events that are still to come, until the stream ends."""
        fields: dict[str, str] = {}
        for line in self._lines:
            name, _, value = line.partition(":")
            if line and name:
                fields[name] = value.removeprefix(" ")
            elif "data" in fields:
                yield Sent(fields.get("event", ""), json.loads(fields["data"]), fields.get("id", ""))
                fields = {}


@contextmanager
def streaming(url: str, after: str = "") -> Iterator[Stream]:
    """Open a stream; leaving it closes the connection, in the middle of whatever it tells."""
    headers = {"accept": "text/event-stream"} | ({"last-event-id": after} if after else {})
    with httpx.stream("GET", url, headers=headers, timeout=PATIENCE) as response:
        assert response.status_code == 200, response.read().decode()
        yield Stream(response)
