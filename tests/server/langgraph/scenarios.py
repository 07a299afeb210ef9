"""What a client does, and what it gets to see: the same calls against any server of the protocol.

Each scenario is a function of the SDK's sync client that yields what it has seen, with a word for it. Nothing is
checked here: `differential.py` compares what two servers showed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import httpx

Seen = Iterator[tuple[str, Any]]
ALL_MODES = ["values", "updates", "custom", "tasks", "checkpoints", "debug", "messages-tuple"]


def tried(call: Callable[[], Any]) -> Any:
    """Call something; a refusal is a result, too."""
    try:
        return call()
    except httpx.HTTPStatusError as refused:
        return {"refused": refused.response.status_code}
    except Exception as refused:  # noqa: BLE001 - the SDK's own errors
        return {"refused": getattr(refused, "status_code", None), "class": type(refused).__name__}


def parts(stream: Any) -> list[Any]:
    """Read a stream to its end; its own `end` is left out, since not every server has it."""
    return [{"event": part.event, "data": part.data} for part in stream if part.event != "end"]


def new_thread(client: Any, **said: Any) -> str:
    return str(client.threads.create(**said)["thread_id"])


# ── Threads ────────────────────────────────────────────────────────────────────────────────────────────────────────


def thread_life(client: Any) -> Seen:
    made = client.threads.create(metadata={"team": "a"})
    thread = made["thread_id"]
    yield "made", made
    yield "read", client.threads.get(thread)
    yield "state of a new one", tried(lambda: client.threads.get_state(thread))
    yield "history of a new one", tried(lambda: client.threads.get_history(thread))
    yield "patched", client.threads.update(thread, metadata={"more": 1})
    yield "same id", tried(lambda: client.threads.create(thread_id=thread))
    yield "same id, do nothing", client.threads.create(thread_id=thread, if_exists="do_nothing", metadata={"x": 1})
    yield "found", client.threads.search(metadata={"team": "a"}, ids=[thread])
    yield "counted", client.threads.count(metadata={"nobody": "here"})
    yield "copied", client.threads.copy(thread)
    yield "deleted", client.threads.delete(thread)
    yield "gone", tried(lambda: client.threads.get(thread))
    yield "gone state", tried(lambda: client.threads.get_state(thread))
    yield "deleted again", tried(lambda: client.threads.delete(thread))
    yield "patched gone", tried(lambda: client.threads.update(thread, metadata={}))


def thread_after_a_run(client: Any) -> Seen:
    thread = new_thread(client, metadata={"team": "b"})
    yield "waited", client.runs.wait(thread, "steps", input={"goal": "sea"}, metadata={"m": 1})
    yield "thread", client.threads.get(thread)
    yield "state", client.threads.get_state(thread)
    yield "history", client.threads.get_history(thread)
    history = client.threads.get_history(thread)
    yield "limited", client.threads.get_history(thread, limit=1)
    yield "before", tried(lambda: client.threads.get_history(thread, before=history[1]["checkpoint"], limit=1))
    yield "by metadata", tried(lambda: client.threads.get_history(thread, metadata={"step": 1}))
    yield "by id", client.threads.get_state(thread, checkpoint_id=history[2]["checkpoint"]["checkpoint_id"])
    yield "by checkpoint", client.threads.get_state(thread, checkpoint=history[2]["checkpoint"])
    yield "selected", client.threads.get_state(thread, select=["values"])
    yield "runs", client.runs.list(thread)
    yield "found by values", client.threads.search(values={"goal": "sea"}, ids=[thread])
    found = client.threads.search(ids=[thread], select=["thread_id", "status"], extract={"g": "values.goal"})
    yield "selected thread", found
    yield "copied", client.threads.copy(thread)


def supersteps(client: Any) -> Seen:
    steps = [
        {"updates": [{"values": {"goal": "sea"}, "as_node": "__start__"}]},
        {"updates": [{"values": {"steps": ["by hand"]}, "as_node": "first"}]},
    ]
    made = client.threads.create(graph_id="steps", supersteps=steps)
    yield "made", made
    yield "state", client.threads.get_state(made["thread_id"])
    yield "went on", client.runs.wait(made["thread_id"], "steps", input=None)


def edited_state(client: Any) -> Seen:
    thread = new_thread(client)
    client.runs.wait(thread, "steps", input={"goal": "sea"})
    written = client.threads.update_state(thread, {"steps": ["edited"]}, as_node="first")
    yield "written", written
    yield "state", client.threads.get_state(thread)
    yield "thread", client.threads.get(thread)
    yield "went on", client.runs.wait(thread, "steps", input=None)
    history = client.threads.get_history(thread, limit=20)
    at_first = next(one for one in history if one["next"] == ["second"])
    forked = client.runs.wait(thread, "steps", input=None, checkpoint=at_first["checkpoint"])
    yield "forked", forked
    yield "history", client.threads.get_history(thread, limit=20)
    yield "edited nowhere", tried(lambda: client.threads.update_state(new_thread(client), {"goal": "x"}))
    wrong = client.runs.create
    yield "wrong node", tried(lambda: client.threads.update_state(thread, {"goal": "x"}, as_node="nobody"))
    yield "wrong assistant", tried(lambda: wrong(thread, "nobody", input={}))


# ── Runs ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def run_life(client: Any) -> Seen:
    thread = new_thread(client)
    made = client.runs.create(thread, "steps", input={"goal": "sea"}, metadata={"m": 1}, config={"tags": ["t"]})
    yield "made", {**made, "status": "pending"}
    yield "joined", client.runs.join(thread, made["run_id"])
    yield "read", client.runs.get(thread, made["run_id"])
    yield "replayed", parts(client.runs.join_stream(thread, made["run_id"]))
    yield "cancelled late", tried(lambda: client.runs.cancel(thread, made["run_id"]))
    yield "deleted", client.runs.delete(thread, made["run_id"])
    yield "gone", tried(lambda: client.runs.get(thread, made["run_id"]))
    yield "no thread", tried(lambda: client.runs.create("00000000-0000-0000-0000-000000000001", "steps", input={}))
    yield (
        "thread from nothing",
        client.runs.wait("00000000-0000-0000-0000-0000000000aa", "steps", input={}, if_not_exists="create"),
    )
    client.threads.delete("00000000-0000-0000-0000-0000000000aa")
    yield "loopback hook", tried(lambda: client.runs.create(thread, "steps", input={}, webhook="http://127.0.0.1/x"))


def stream_modes(client: Any) -> Seen:
    for mode in ALL_MODES:
        thread = new_thread(client)
        yield mode, parts(client.runs.stream(thread, "steps", input={"goal": "sea"}, stream_mode=mode))
    for graph in ("writing", "choosing", "failing", "asking", "both"):
        for mode in ("values", "updates", "custom", "tasks"):
            thread = new_thread(client)
            yield f"{graph} {mode}", parts(client.runs.stream(thread, graph, input={"goal": "sea"}, stream_mode=mode))
        thread = new_thread(client)
        several = client.runs.stream(thread, graph, input={"goal": "sea"}, stream_mode=["values", "updates"])
        yield f"{graph} several", parts(several)


def messages_modes(client: Any) -> Seen:
    said = {"messages": [{"role": "user", "content": "hi", "id": "h-1"}]}
    for graph in ("chat", "tooling"):
        for mode in ("messages", "messages-tuple", "values", "updates"):
            yield f"{graph} {mode}", parts(client.runs.stream(None, graph, input=said, stream_mode=mode))
    thread = new_thread(client)
    client.runs.wait(thread, "chat", input=said)
    yield "again", parts(client.runs.stream(thread, "chat", input=said, stream_mode="messages-tuple"))


def events_mode(client: Any) -> Seen:
    seen = parts(client.runs.stream(None, "steps", input={"goal": "sea"}, stream_mode="events"))
    kinds = ("on_chain_start", "on_chain_end")
    told = [part["data"] for part in seen if part["event"] == "events"]
    nodes = [one for one in told if one["event"] in kinds and one["name"] in ("first", "second", "third")]
    yield "nodes", [{key: one[key] for key in ("event", "name", "data", "tags")} for one in nodes]
    yield "where", [one["metadata"] for one in nodes]


def pauses(client: Any) -> Seen:
    thread = new_thread(client)
    yield "waited", client.runs.wait(thread, "asking", input={"goal": "sea"})
    yield "thread", client.threads.get(thread)
    yield "state", client.threads.get_state(thread)
    yield "runs", client.runs.list(thread)
    yield (
        "answered",
        parts(client.runs.stream(thread, "asking", command={"resume": "north"}, stream_mode=["values", "updates"])),
    )
    yield "thread after", client.threads.get(thread)
    yield "history", client.threads.get_history(thread, limit=20)
    yield "runs after", client.runs.list(thread)
    thread = new_thread(client)
    client.runs.wait(thread, "asking", input={"goal": "sea"})
    (interrupts,) = client.threads.get(thread)["interrupts"].values()
    named = client.runs.wait(thread, "asking", command={"resume": {interrupts[0]["id"]: "by name"}})
    yield "answered by name", named
    thread = new_thread(client)
    run = client.runs.create(thread, "asking", input={"goal": "sea"})
    client.runs.join(thread, run["run_id"])
    yield "new input while asked", client.runs.wait(thread, "asking", input={"goal": "hill"})
    yield "thread of it", client.threads.get(thread)
    yield "ended", client.threads.update_state(thread, None, as_node="__end__")
    yield "thread ended", client.threads.get(thread)
    yield "state ended", client.threads.get_state(thread)
    thread = new_thread(client)
    client.runs.wait(thread, "asking", input={"goal": "sea"})
    yield "resolved by goto", parts(client.runs.stream(thread, "asking", command={"goto": "__end__"}))
    yield "thread resolved", client.threads.get(thread)
    thread = new_thread(client)
    client.runs.wait(thread, "asking", input={"goal": "sea"})
    command = {"update": {"goal": "lake"}, "resume": "there"}
    yield "updated and answered", client.runs.wait(thread, "asking", command=command)
    yield "command and empty input", client.runs.wait(_paused(client), "asking", input={}, command={"resume": "both"})


def _paused(client: Any) -> str:
    thread = new_thread(client)
    client.runs.wait(thread, "asking", input={"goal": "sea"})
    return thread


def two_questions(client: Any) -> Seen:
    thread = new_thread(client)
    yield "asked", client.runs.wait(thread, "both", input={"goal": "sea"})
    yield "thread", client.threads.get(thread)
    yield "state", client.threads.get_state(thread)
    questions = [one for listed in client.threads.get(thread)["interrupts"].values() for one in listed]
    ids = {str(one["value"]): one["id"] for one in questions}
    yield "one answered", client.runs.wait(thread, "both", command={"resume": {ids["And then?"]: "home"}})
    yield "thread between", client.threads.get(thread)
    yield "state between", client.threads.get_state(thread)
    rest = [one for listed in client.threads.get(thread)["interrupts"].values() for one in listed]
    yield "all answered", client.runs.wait(thread, "both", command={"resume": {rest[0]["id"]: "north"}})
    yield "thread after", client.threads.get(thread)


def static_pauses(client: Any) -> Seen:
    thread = new_thread(client)
    before = client.runs.stream(
        thread, "steps", input={"goal": "sea"}, interrupt_before=["second"], stream_mode=["values", "updates"]
    )
    yield "before", parts(before)
    yield "thread", client.threads.get(thread)
    yield "state", client.threads.get_state(thread)
    yield "goes on", parts(client.runs.stream(thread, "steps", input=None, stream_mode=["values", "updates"]))
    yield "thread after", client.threads.get(thread)
    thread = new_thread(client)
    yield "everywhere", client.runs.wait(thread, "steps", input={"goal": "sea"}, interrupt_after="*")
    yield "thread everywhere", client.threads.get(thread)
    yield "one step", client.runs.wait(thread, "steps", input=None, interrupt_after="*")
    yield "before all", client.runs.wait(new_thread(client), "steps", input={"goal": "x"}, interrupt_before="*")


def subgraphs(client: Any) -> Seen:
    for mode in ("values", "updates", "tasks"):
        thread = new_thread(client)
        stream = client.runs.stream(thread, "nested", input={"goal": "sea"}, stream_mode=mode, stream_subgraphs=True)
        yield mode, parts(stream)
    yield "thread", client.threads.get(thread)
    yield "state", client.threads.get_state(thread)
    state = client.threads.get_state(thread, subgraphs=True)
    yield "deep state", state
    place = client.threads.get_state(thread)["tasks"][0]["checkpoint"]
    yield "inner state", tried(lambda: client.threads.get_state(thread, checkpoint=place))
    answer = client.runs.stream(
        thread, "nested", command={"resume": "north"}, stream_mode=["updates", "values"], stream_subgraphs=True
    )
    yield "answered", parts(answer)
    yield "without", parts(client.runs.stream(None, "nested", input={"goal": "sea"}, stream_mode="updates"))


def failures(client: Any) -> Seen:
    thread = new_thread(client)
    yield "stream", parts(client.runs.stream(thread, "failing", input={"goal": "sea"}))
    yield "thread", client.threads.get(thread)
    yield "runs", client.runs.list(thread)
    yield "state", client.threads.get_state(thread)
    yield "waited", client.runs.wait(new_thread(client), "failing", input={"goal": "sea"}, raise_error=False)
    yield "stateless", client.runs.wait(None, "failing", input={"goal": "sea"}, raise_error=False)
    yield "raised", tried(lambda: client.runs.wait(new_thread(client), "failing", input={}))
    part = {"goal": "sea", "nonsense": 1}
    yield "more input", client.runs.wait(new_thread(client), "steps", input=part, raise_error=False)
    for name, given in (("strange", {"nonsense": 1}), ("list", [1]), ("no", None)):
        thread = new_thread(client)
        yield f"{name} input", tried(partial(client.runs.wait, thread, "steps", input=given, raise_error=False))
    yield "no mode", tried(lambda: parts(client.runs.stream(None, "steps", input={}, stream_mode="nonsense")))
    deep = client.runs.wait(None, "steps", input={}, config={"recursion_limit": 1}, raise_error=False)
    yield "too deep", deep


def cancels(client: Any) -> Seen:
    thread = new_thread(client)
    run = client.runs.create(thread, "sleeping", input={"goal": "sea", "seconds": 1.5})
    yield "rejected", tried(lambda: client.runs.create(thread, "sleeping", input={}, multitask_strategy="reject"))
    yield "busy thread", client.threads.get(thread)["status"]
    yield "edit of a busy one", tried(lambda: client.threads.update_state(thread, {"goal": "x"}))
    yield "cancelled", client.runs.cancel(thread, run["run_id"], wait=True)
    yield "run", client.runs.get(thread, run["run_id"])
    yield "thread", client.threads.get(thread)
    yield "joined", tried(lambda: client.runs.join(thread, run["run_id"]))
    yield "replayed", parts(client.runs.join_stream(thread, run["run_id"]))
    thread = new_thread(client)
    client.runs.wait(thread, "sleeping", input={"goal": "sea", "seconds": 0.0})
    run = client.runs.create(thread, "sleeping", input={"goal": "hill", "seconds": 1.5})
    yield "rolled back", client.runs.cancel(thread, run["run_id"], wait=True, action="rollback")
    yield "run rolled back", tried(lambda: client.runs.get(thread, run["run_id"]))
    yield "thread rolled back", client.threads.get(thread)
    thread = new_thread(client)
    run = client.runs.create(thread, "sleeping", input={"goal": "hill", "seconds": 1.5})
    client.runs.cancel(thread, run["run_id"], wait=True, action="rollback")
    yield "new thread rolled back", client.threads.get(thread)["values"]
    yield "it runs again", client.runs.wait(thread, "sleeping", input={"goal": "lake", "seconds": 0.0})


def strategies(client: Any) -> Seen:
    for strategy in ("enqueue", "interrupt", "rollback"):
        thread = new_thread(client)
        first = client.runs.create(thread, "sleeping", input={"goal": "sea", "seconds": 0.8})
        again = {"goal": "hill", "seconds": 0.0}
        second = client.runs.create(thread, "sleeping", input=again, multitask_strategy=strategy)
        yield strategy, client.runs.join(thread, second["run_id"])
        yield f"{strategy}, the first", tried(lambda: client.runs.get(thread, first["run_id"])["status"])  # noqa: B023
        yield f"{strategy}, the second", client.runs.get(thread, second["run_id"])["status"]
        yield f"{strategy}, the thread", client.threads.get(thread)["status"]


def stateless(client: Any) -> Seen:
    yield "waited", client.runs.wait(None, "steps", input={"goal": "sea"})
    yield "streamed", parts(client.runs.stream(None, "steps", input={"goal": "sea"}, stream_mode="updates"))
    made = client.runs.create(None, "steps", input={"goal": "sea"})
    yield "made", {**made, "status": "pending"}
    batch = client.runs.create_batch([{"assistant_id": "steps", "input": {"goal": "a"}}] * 2)
    yield "batch", [{**one, "status": "pending"} for one in batch]
    yield "asked", client.runs.wait(None, "asking", input={"goal": "sea"})


SCENARIOS: tuple[Callable[[Any], Seen], ...] = (
    thread_life,
    thread_after_a_run,
    supersteps,
    edited_state,
    run_life,
    stream_modes,
    messages_modes,
    events_mode,
    pauses,
    two_questions,
    static_pauses,
    subgraphs,
    failures,
    cancels,
    strategies,
    stateless,
)
