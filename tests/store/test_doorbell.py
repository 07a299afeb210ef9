"""The doorbell wakes whoever waits for work, here and in other processes, and never stands in anybody's way."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from threading import Event, current_thread
from threading import enumerate as threads_here
from typing import Any, NamedTuple

import psycopg
import pytest

from bide import Store
from bide.clock import elapsed
from bide.store.doorbell import Doorbell, FileDoorbell
from bide.store.postgres_wire import Wire
from tests.lossy_proxy import lossy_proxy
from tests.pooler import pooler
from tests.store.programs.process import talking
from tests.store.test_postgres_fences import NEW
from tests.store.waiting import SECONDS, holds_at_last
from tests.stores import KINDS, opened_store


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with opened_store(request, tmp_path) as store:
        yield store


class Sent(NamedTuple):
    """One exchange with the server."""

    thread: str
    texts: list[bytes]
    in_transaction: bool


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Sent]:
    """Everything that this process sends to PostgreSQL."""
    seen: list[Sent] = []
    exchange = Wire.exchange

    def watched(wire: Wire, commands: Any, *args: Any, **options: Any) -> Any:
        seen.append(Sent(current_thread().name, [c.statement.text for c in commands], wire.is_in_transaction))
        return exchange(wire, commands, *args, **options)

    monkeypatch.setattr(Wire, "exchange", watched)
    return seen


def rings(sent: list[Sent]) -> list[Sent]:
    return [each for each in sent if any(b"pg_notify" in text for text in each.texts)]


def listens(sent: list[Sent]) -> bool:
    return any(text.startswith(b"LISTEN") for each in sent for text in each.texts)


# ── Within one store ───────────────────────────────────────────────────────────────────────────────────────────────


def test_ring_wakes_everybody_who_waits(store):
    with ThreadPoolExecutor(3) as pool:
        heard = store.doorbell.rings
        waiting = [pool.submit(store.doorbell.wait, SECONDS, heard) for _ in range(3)]

        store.doorbell.ring()

        assert [each.result(SECONDS) for each in waiting] == [True] * 3


def test_ring_that_came_before_somebody_waited_is_not_lost(store):
    bell = store.doorbell
    while bell.wait(0.0):
        # To begin to listen counts as a ring: others may have rung before.
        pass

    bell.ring()

    assert bell.wait(SECONDS)


def test_who_waits_for_nothing_is_told_so_when_the_time_is_over(tmp_path):
    with Store.open(f"sqlite:///{tmp_path / 'bide.db'}") as store:
        began = elapsed()

        assert not store.doorbell.wait(0.05)
        assert elapsed() - began >= 0.05


def test_store_that_is_closed_keeps_nobody_waiting(store):
    with ThreadPoolExecutor(1) as pool:
        bell = store.doorbell
        bell.wait(0.0)
        heard = bell.rings
        waiting = pool.submit(bell.wait, 10 * SECONDS, heard)

        store.close()
        waiting.result(SECONDS)
        bell.ring()

        assert waiting.done()


# ── Between processes ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["file", "postgres"])
def test_ring_in_another_process_is_heard(kind, path, request):
    url = f"sqlite:///{path}" if kind == "file" else request.getfixturevalue("postgres_url")
    with (
        Store.open(url, schema=None if kind == "file" else "bide") as store,
        talking("bell_ringer.py", url) as ringer,
    ):
        assert ringer.hear() == "ready"
        bell = store.doorbell
        settle(bell)

        ringer.tell()

        assert bell.wait(SECONDS)
        assert ringer.hear() == "rung"


def settle(bell: Any) -> None:
    """Wait until a bell listens: that it begins to is told as a ring."""
    if not isinstance(bell, FileDoorbell):
        assert bell.wait(SECONDS)
    assert not bell.wait(0.0)


def test_ring_of_a_process_that_ends_at_once_is_still_heard(postgres_url):
    with Store.open(postgres_url, schema="bide") as store:
        settle(store.doorbell)

        with Store.open(postgres_url, schema="bide") as other:
            other.doorbell.ring()
            first = store.doorbell.wait(SECONDS)
            # This one has to wait until it may be sent, and the store is closed before.
            other.doorbell.ring()

        assert first
        assert store.doorbell.wait(SECONDS)


def test_ring_is_heard_in_its_own_schema_alone(postgres_url):
    with (
        Store.open(postgres_url, schema="bide") as store,
        Store.open(postgres_url, schema="bide") as sister,
        Store.open(postgres_url, schema="elsewhere") as other,
    ):
        settle(store.doorbell)
        settle(sister.doorbell)

        other.doorbell.ring()
        other.doorbell.close()
        store.doorbell.ring()

        assert sister.doorbell.wait(SECONDS)
        assert sister.doorbell.rings == 2
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA elsewhere CASCADE")


def test_own_ring_is_heard_once(postgres_url):
    with Store.open(postgres_url, schema="bide") as store, Store.open(postgres_url, schema="bide") as other:
        settle(store.doorbell)
        settle(other.doorbell)

        store.doorbell.ring()
        assert other.doorbell.wait(SECONDS)
        other.doorbell.ring()

        # One for that it listens, one for its own, and one for the other's, which comes behind what it sent itself.
        assert holds_at_last(lambda: store.doorbell.rings >= 3)
        assert not store.doorbell.wait(0.2, 3)


def have_rung(bells: Sequence[Doorbell], wanted: Sequence[int]) -> bool:
    return all(bell.rings >= rings for bell, rings in zip(bells, wanted, strict=True))


def test_two_who_ring_at_the_same_time_hear_each_other(postgres_url):
    """The ring of one may come in together with the answer to the other's own."""
    with Store.open(postgres_url, schema="bide") as store, Store.open(postgres_url, schema="bide") as other:
        bells = (store.doorbell, other.doorbell)
        for bell in bells:
            settle(bell)

        for _ in range(50):
            wanted = [bell.rings + 2 for bell in bells]
            for bell in bells:
                bell.ring()

            heard = partial(
                lambda wanted: store.doorbell.rings >= wanted[0] and other.doorbell.rings >= wanted[1], wanted
            )
            assert holds_at_last(heard, 10)


# ── Never in the way ───────────────────────────────────────────────────────────────────────────────────────────────


def test_ring_is_sent_by_itself_outside_of_every_transaction(postgres_url, sent):
    with Store.open(postgres_url, schema="bide") as store:
        store.begin(NEW)
        store.doorbell.ring()

    (ring,) = rings(sent)
    assert (ring.thread, len(ring.texts), ring.in_transaction) == ("bide-doorbell", 1, False)


def test_many_rings_are_sent_on_as_few(postgres_url, sent):
    with Store.open(postgres_url, schema="bide") as store:
        began, between = elapsed(), Event()
        for _ in range(200):
            store.doorbell.ring()
            between.wait(0.001)
        took = elapsed() - began

    assert 1 <= len(rings(sent)) <= min(took / 0.01 + 2, 150)


def test_store_that_nobody_rings_or_waits_at_has_neither_thread_nor_connection_for_it(postgres_url, sent):
    with Store.open(postgres_url, schema="bide") as store:
        store.begin(NEW)
        names = [thread.name for thread in threads_here()]

    assert "bide-doorbell" not in names
    assert not listens(sent)


def test_who_only_rings_does_not_listen(postgres_url, sent):
    with Store.open(postgres_url, schema="bide") as store:
        store.doorbell.ring()

    assert len(rings(sent)) == 1
    assert not listens(sent)


def test_bell_is_heard_again_after_its_connection_was_broken(postgres_url):
    with (
        Store.open(postgres_url, schema="bide") as store,
        Store.open(postgres_url, schema="bide") as other,
        psycopg.connect(postgres_url, autocommit=True) as server,
    ):
        settle(store.doorbell)
        server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LISTEN%'")
        # It listens anew, and tells so with a ring.
        assert store.doorbell.wait(SECONDS)
        settled = store.doorbell.rings

        other.doorbell.ring()

        assert store.doorbell.wait(SECONDS, settled)


def test_server_that_is_gone_is_no_error(postgres_url):
    with lossy_proxy(postgres_url) as proxy:
        store = Store.open(proxy.dsn, schema="bide")
        proxy.close()

        store.doorbell.ring()
        rung = store.doorbell.wait(SECONDS)
        waited = store.doorbell.wait(0.01)
        store.close()

    assert (rung, waited) == (True, False)


def test_disk_that_is_full_is_no_error(path, monkeypatch):
    def refuse(*_: object) -> int:
        raise OSError(28, "No space left on device")

    with Store.open(f"sqlite:///{path}") as store:
        bell = store.doorbell
        monkeypatch.setattr(os, "pwrite", refuse)

        bell.ring()

        assert bell.wait(SECONDS)


def test_behind_a_pooler_nothing_is_listened_for_and_rings_are_sent_all_the_same(postgres_database, sent):
    with (
        pooler(postgres_database) as pooled,
        Store.open(postgres_database, schema="bide") as direct,
        Store.open(pooled, schema="bide") as store,
    ):
        settle(direct.doorbell)
        sent.clear()
        settle(store.doorbell)
        waited = store.doorbell.wait(0.05)

        store.doorbell.ring()

        assert direct.doorbell.wait(SECONDS)
        assert not waited
        assert not listens(sent)
