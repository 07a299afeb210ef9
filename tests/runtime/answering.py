"""Many who answer the same questions at once, and what each of them was told."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from operator import or_
from threading import Barrier
from typing import Annotated, Any, NamedTuple, TypedDict

from bide import END, START, Bide, CompiledGraph, Send, StateGraph, Store, interrupt
from bide.errors import AlreadyAnsweredError

PATIENCE = 100


class Told(NamedTuple):
    """What somebody was told who answered a wait."""

    wait: str
    who: str
    key: str | None
    status: str
    by: str | None


class Asking(TypedDict, total=False):
    many: int
    number: int
    answers: Annotated[dict[str, str], or_]


def ask(state: Asking) -> Asking:
    return {"answers": {str(state["number"]): interrupt(state["number"])}}


def fan_out(state: Asking) -> list[Send]:
    return [Send("ask", {"number": number}) for number in range(state["many"])]


def asking(store: Store) -> CompiledGraph:
    """A graph that asks many questions at once."""
    builder = StateGraph(Asking).add_node(ask).add_conditional_edges(START, fan_out, ["ask"]).add_edge("ask", END)
    return builder.compile(name="asking", checkpointer=store)


def key_of(who: str, wait_id: str) -> str | None:
    """Those whose names begin alike have the same key; who begins with an x has none."""
    return None if who.startswith("x") else f"{who[0]} {wait_id}"


def answer_all(store: Store, waits: list[str], names: list[str]) -> list[Told]:
    """Let each of these people answer all waits, in the same order and at the same time."""
    app, begin = Bide(store), Barrier(len(names))

    def answer(who: str) -> list[Told]:
        begin.wait(PATIENCE)
        return [answer_one(app, wait_id, who) for wait_id in waits]

    with ThreadPoolExecutor(len(names)) as people:
        return [told for one in people.map(answer, names) for told in one]


def answer_one(app: Bide, wait_id: str, who: str) -> Told:
    key = key_of(who, wait_id)
    try:
        woken = app.wake(wait_id, f"answer of {who[0]}", by=who, key=key)
    except AlreadyAnsweredError as refused:
        outcome: Any = refused.outcome
        return Told(wait_id, who, key, "refused", outcome.by)
    return Told(wait_id, who, key, woken.status, woken.by)


def check_answers(told: list[Told], waits: list[str], many: int) -> dict[str, Told]:
    """Each wait has one winner; who has its key hears the same calmly, all others are refused and told who it was."""
    winners: dict[str, Told] = {}
    for one in told:
        if one.status == "resumed":
            assert one.wait not in winners, f"{one.wait} was answered by {winners[one.wait].who} and by {one.who}"
            winners[one.wait] = one
    assert winners.keys() == set(waits)
    assert len(told) == many * len(waits)
    for one in told:
        winner = winners[one.wait]
        if one is winner:
            continue
        is_alike = one.key is not None and one.key == winner.key
        assert (one.status, one.by) == ("already_answered" if is_alike else "refused", winner.who), (one, winner)
    return winners
