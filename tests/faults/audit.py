"""What must be true when the storm is over: the ledger against the store, and the store against itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import psycopg

from tests.faults.shop import Shop
from tests.threads import thread

BOOKED = ("packed", "shipped")

# What no row may look like, each with what it would mean.
IMPOSSIBLE = {
    "a run is live": "SELECT thread_id FROM runs WHERE status NOT IN ('done', 'cancelled', 'failed')",
    "two runs have ended well": "SELECT thread_id FROM runs WHERE status = 'done' "
    "GROUP BY thread_id HAVING count(*) > 1",
    "a finished thread has a journal": "SELECT thread_id FROM journal",
    "a question is open": "SELECT thread_id FROM waits WHERE status = 'open' OR consumed = 0",
    "a question was asked twice": "SELECT thread_id FROM waits GROUP BY thread_id HAVING count(*) > 1",
    "the log has a hole": "SELECT thread_id FROM events GROUP BY thread_id "
    "HAVING count(*) <> max(number) OR min(number) <> 1",
    "the log was miscounted": "SELECT thread_id FROM threads t "
    "WHERE events <> (SELECT count(*) FROM events e WHERE e.thread_id = t.thread_id)",
    "history has a hole": "SELECT thread_id FROM checkpoints GROUP BY thread_id, ns "
    "HAVING count(*) <> max(seq) OR min(seq) <> 1",
    "history has two branches": "SELECT thread_id FROM checkpoints WHERE coalesce(parent, 0) <> seq - 1",
    "an epoch went back": "SELECT thread_id FROM (SELECT thread_id, epoch, lag(epoch) OVER "
    "(PARTITION BY thread_id, ns, run_id ORDER BY seq) AS before FROM checkpoints) c WHERE epoch < before",
    "an answer is nobody's": "SELECT thread_id FROM waits WHERE status = 'answered' "
    "AND (answer IS NULL OR answered_at IS NULL OR answered_via IS NULL)",
    "a run has kept its input": "SELECT thread_id FROM runs WHERE input IS NOT NULL",
    "a condition has no wait": "SELECT wait_id FROM conditions EXCEPT SELECT wait_id FROM waits",
    "a condition is satisfied by nothing": "SELECT wait_id FROM conditions "
    "WHERE (is_open = 1 AND wake IS NOT NULL) OR (delivery_id IS NOT NULL AND wake IS NULL)",
    "a fact was not matched": "SELECT delivery_id FROM deliveries WHERE is_pending = 1",
    "a fact woke more than it is said to": "SELECT d.delivery_id FROM deliveries d JOIN conditions c "
    "ON c.delivery_id = d.delivery_id GROUP BY d.delivery_id HAVING count(*) > d.wakes",
    "a fact is two's alone": "SELECT d.delivery_id FROM deliveries d JOIN conditions c "
    "ON c.delivery_id = d.delivery_id AND c.exclusive = 1 WHERE d.taken_by IS DISTINCT FROM c.wait_id",
    "a key has no fact": "SELECT delivery_id FROM delivery_keys EXCEPT SELECT delivery_id FROM deliveries",
    "a row has no thread": "SELECT thread_id FROM runs UNION SELECT thread_id FROM checkpoints "
    "EXCEPT SELECT thread_id FROM threads",
}


def check_nothing_lost_or_doubled(shop: Shop, dsn: str, orders: Iterable[str]) -> None:
    """Compare ledger and store, for orders that have all been driven to their end."""
    orders = set(orders)
    assert orders
    with psycopg.connect(dsn, options=f"-c search_path={shop.schema}") as database:
        check_acknowledged(shop, orders)
        check_outside_effects(shop, orders)
        check_bookings(database, orders)
        check_store(database, orders)


def check_acknowledged(shop: Shop, orders: set[str]) -> None:
    """Every order is done, and is in the store just as its caller was told."""
    graph = shop.graph()
    lost = {order: state for order in orders if (state := told_in(graph, order)) != shop.expected(order, is_done=True)}
    assert not lost, f"{len(lost)} of {len(orders)} orders are not as in a peaceful run: {lost}"
    acknowledged = shop.ledger.acknowledged
    wrong = [line for line in acknowledged if line.told != shop.expected(line.order, is_done=line.is_done)]
    assert not wrong, f"callers were told something else: {wrong}"
    assert {line.order for line in acknowledged} <= orders


def told_in(graph: Any, order: str) -> list[str]:
    return list(graph.get_state(thread(order)).values.get("told", []))


def check_outside_effects(shop: Shop, orders: set[str]) -> None:
    """What may happen once has, and what may be repeated came with its old key."""
    effects = shop.ledger.effects
    charged = Counter(effect.order for effect in effects if effect.how == "once")
    assert charged == dict.fromkeys(orders, 1), f"charged more than once, or not at all: {differing(charged, orders)}"
    keys = {(effect.order, effect.what, effect.key) for effect in effects}
    assert len(keys) == len({key for _, _, key in keys}) == 2 * len(orders), "an effect has two keys, or a key two"
    assert {effect.order for effect in effects} == orders


def check_bookings(database: psycopg.Connection, orders: set[str]) -> None:
    """What was booked in the store's own transaction is there exactly once."""
    booked: Counter[Any] = Counter(database.execute("SELECT booked, what FROM bookings").fetchall())
    wanted = [(order, what) for order in orders for what in BOOKED]
    assert booked == dict.fromkeys(wanted, 1), f"booked twice, or lost: {differing(booked, wanted)}"


def check_store(database: psycopg.Connection, orders: set[str]) -> None:
    """The store contradicts itself nowhere."""
    found = {what: rows for what, query in IMPOSSIBLE.items() if (rows := database.execute(query).fetchall())}
    assert not found, found
    assert {name for (name,) in database.execute("SELECT thread_id FROM threads")} == orders


def differing(counts: Counter[Any], wanted: Iterable[Any]) -> dict[Any, int]:
    return {name: counts[name] for name in {*counts, *wanted} if counts[name] != 1}
