"""Waits and facts in an encrypted store: nothing of them can be read in any column, and they find each other all the
same, before and after a change of keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bide import Encryption, Store, all_of, any_of, interrupt, wait_for
from bide.errors import WaitCancelled
from bide.store.database import Transaction
from bide.store.postgres_sql import our_tables
from bide.waits import email, event, webhook
from tests.runtime.world import StillClock, World, graph
from tests.stores import KINDS, SCHEMA

OLD, NEW = Encryption.generate_key(), Encryption.generate_key()

MARK = "qzx"
"""A part of everything that is said: whoever finds it in the database has read something."""
ORDER, SUM, ADDRESS, MAIL = f"{MARK}-order", f"{MARK}-sum", f"ada.{MARK}@example.org", f"<{MARK}.1@example.org>"

Open = Callable[..., Store]


def old_key() -> Encryption:
    return Encryption({"old": OLD})


def both_keys(current: str = "new") -> Encryption:
    return Encryption({"old": OLD, "new": NEW}, current)


def new_key(**options: Any) -> Encryption:
    return Encryption({"new": NEW}, **options)


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture(params=[kind for kind in KINDS if kind != "memory"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path, clock: StillClock) -> Open:
    """Opens the same database again and again."""
    if request.param == "file":
        return lambda encryption: Store.open(f"sqlite:///{tmp_path / 'bide.db'}", encryption=encryption, clock=clock)
    url = request.getfixturevalue("postgres_url")
    return lambda encryption: Store.open(url, schema=SCHEMA, encryption=encryption, clock=clock)


def world_on(store: Store, clock: StillClock) -> World:
    def pays(state: Any) -> Any:
        return {"answer": wait_for(event("paid", {"order": state["given"]})).value["sum"]}

    def reads(state: Any) -> Any:
        wanted = any_of(reply=email(mailbox="sales", in_reply_to=MAIL), hers=email(from_=ADDRESS))
        return {"answer": wait_for(wanted).value["body"]}

    def is_called(state: Any) -> Any:
        wanted = webhook("orders", match={"order": ORDER}, schema={"properties": {"sum": {"pattern": f"^{MARK}"}}})
        return {"answer": wait_for(wanted).value["sum"]}

    def asks(state: Any) -> Any:
        try:
            return {"answer": interrupt(f"{MARK}: who signs?", title=f"{MARK} title", assignees=["ada"])}
        except WaitCancelled as withdrawn:
            return {"answer": str(withdrawn)}

    def needs_both(state: Any) -> Any:
        first, second = event("paid", {"order": state["given"]}), event("sent", {"order": state["given"]})
        return {"answer": sorted(wait_for(all_of(paid=first, sent=second)).value)}

    def fails(state: Any) -> Any:
        raise ValueError(f"no such order: {state['given']}")

    nodes = {"pays": pays, "reads": reads, "is_called": is_called, "asks": asks, "both": needs_both, "fails": fails}
    return World(store, clock, [graph(node, name) for name, node in nodes.items()])


@contextmanager
def living(open_store: Open, encryption: Encryption | None, clock: StillClock) -> Iterator[World]:
    with open_store(encryption) as store:
        world = world_on(store, clock)
        yield world
        assert store.verify().is_sound, str(store.verify())


def every_cell(store: Store) -> Iterator[tuple[str, bytes]]:
    """Everything in every column of every table, and where it is."""

    def read(tx: Transaction) -> list[tuple[str, bytes]]:
        tables = our_tables()
        if hasattr(store.database, "statements"):
            tx.run("look_only_in", {"schema": SCHEMA})
        else:
            tables = [row[0] for row in tx.connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        cells: list[tuple[str, bytes]] = []
        for table in tables:
            cursor = tx.connection.execute(f"SELECT * FROM {table}")
            names = [column[0] for column in cursor.description]
            for row in cursor.fetchall():
                cells += [(f"{table}.{name}", _bytes(value)) for name, value in zip(names, row, strict=True)]
        return cells

    return iter(store.database.write("test", read))


def _bytes(value: object) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def leaks(store: Store) -> set[str]:
    return {where for where, value in every_cell(store) if MARK.encode() in value.lower()}


def correlations(store: Store) -> set[str]:
    return {value.decode() for where, value in every_cell(store) if where.endswith(".correlation") and value}


def live(world: World) -> None:
    """Let every kind of thing be said, asked, answered, waited for, cancelled and planned."""
    app = world.app
    for name in ("pays", "is_called", "both"):
        app.start(name, {"given": ORDER}, thread_id=name, config={"metadata": {"who": MARK}}, key=f"start-{name}")
    for name in ("reply", "hers"):
        app.start("reads", {"given": f"{MARK}-input"}, thread_id=name)
    for name in ("asks", "withdrawn", "cancelled"):
        app.start("asks", {"given": f"{MARK}-input"}, thread_id=name)
    app.start("fails", {"given": ORDER}, thread_id="fails")
    world.settle()
    app.start("asks", {"given": f"{MARK}-queued"}, thread_id="asks", if_busy="enqueue")
    app.deliver("nobody", {"order": ORDER, "text": [MARK]}, external_id="f-0")
    app.deliver("paid", {"order": ORDER, "sum": SUM}, external_id="f-1")
    app.deliver("orders", {"order": ORDER, "sum": SUM}, kind="webhook", external_id="f-2")
    mail = {"from": ADDRESS, "subject": f"{MARK} subject", "body": f"{MARK} body", "message_id": "<reply@example.org>"}
    app.deliver("sales", {**mail, "in_reply_to": MAIL}, kind="email", external_id="f-3")
    app.wake(app.waits(thread_id="asks")[0].id, f"{MARK}-answer", by="bob")
    app.cancel(wait_id=app.waits(thread_id="withdrawn")[0].id, reason=f"{MARK}-reason")
    app.cancel("cancelled", reason=f"{MARK}-reason")
    app.schedule("daily", "pays", "0 9 * * *", {"given": ORDER}, config={"metadata": {"who": MARK}})
    world.settle()
    app.start("asks", {"given": f"{MARK}-input"}, thread_id="ready", config={"metadata": {"who": MARK}})


def test_an_encrypted_store_holds_nothing_of_what_was_said_in_any_column_of_any_table(open_store, clock):
    with living(open_store, old_key(), clock) as world:
        live(world)

        answers = {name: world.app.get(name).values.get("answer") for name in ("pays", "is_called", "reply", "hers")}
        assert answers == {"pays": SUM, "is_called": SUM, "reply": f"{MARK} body", "hers": f"{MARK} body"}
        assert f"{MARK}-reason" in world.app.get("withdrawn").values["answer"]
        assert leaks(world.store) == set()


def test_a_plain_store_does_so_that_the_search_would_find_it(open_store, clock):
    with living(open_store, None, clock) as world:
        live(world)

        found = leaks(world.store)

    assert {"conditions.correlation", "delivery_keys.correlation", "runs.error", "waits.answered_by"} <= found
    assert {"deliveries.body", "waits.question", "waits.answer", "waits.needs", "conditions.wake"} <= found
    assert {"schedules.body", "events.body", "checkpoints.body", "runs.input", "runs.options"} <= found


def test_the_same_value_has_another_key_under_another_encryption_key():
    assert old_key().correlation("event:paid") == old_key().correlation("event:paid")
    assert old_key().correlation("event:paid") != new_key().correlation("event:paid")
    assert old_key().correlation("event:paid") != old_key().correlation("event:sent")


# --- after a change of keys -------------------------------------------------------------------------------------------


def pays(world: World, *, external_id: str) -> str:
    """Bring the payment, and return what the thread has made of it."""
    world.app.deliver("paid", {"order": ORDER, "sum": SUM}, external_id=external_id)
    world.settle()
    return str(world.app.get("pays").values.get("answer"))


def begin(open_store: Open, clock: StillClock, encryption: Encryption | None) -> None:
    with living(open_store, encryption, clock) as world:
        world.app.start("pays", {"given": ORDER}, thread_id="pays")
        world.settle()
        clock.pass_by(minutes=1)


@pytest.mark.parametrize("current", ["old", "new"])
def test_a_wait_from_before_a_change_of_keys_is_found_by_a_fact_after_it(open_store, clock, current):
    begin(open_store, clock, old_key())

    with living(open_store, both_keys(current), clock) as world:
        assert pays(world, external_id="1") == SUM


def test_a_process_that_still_encrypts_with_the_old_key_wakes_waits_of_the_new_one(open_store, clock):
    begin(open_store, clock, both_keys("new"))

    with living(open_store, both_keys("old"), clock) as world:
        assert pays(world, external_id="1") == SUM


def test_a_fact_from_before_a_change_of_keys_is_found_by_a_wait_after_it(open_store, clock):
    with living(open_store, old_key(), clock) as world:
        world.app.deliver("paid", {"order": ORDER, "sum": SUM}, external_id="1")

    with living(open_store, both_keys(), clock) as world:
        world.app.start("pays", {"given": ORDER}, thread_id="pays")
        world.settle()
        assert world.app.get("pays").values["answer"] == SUM


def test_of_facts_from_before_and_after_the_oldest_counts_first(open_store, clock):
    for number, encryption in enumerate((both_keys("new"), both_keys("old"), both_keys("new"))):
        with living(open_store, encryption, clock) as world:
            world.app.deliver("paid", {"order": ORDER, "sum": f"{number}"}, external_id=f"{number}")
            clock.pass_by(minutes=1)

    with living(open_store, both_keys("old"), clock) as world:
        world.app.start("pays", {"given": ORDER}, thread_id="pays")
        world.settle()
        assert world.app.get("pays").values["answer"] == "0"


def test_a_wait_of_two_hears_one_before_and_the_other_after(open_store, clock):
    with living(open_store, old_key(), clock) as world:
        world.app.start("both", {"given": ORDER}, thread_id="both")
        world.settle()
        world.app.deliver("paid", {"order": ORDER}, external_id="1")

    with living(open_store, both_keys(), clock) as world:
        world.app.deliver("sent", {"order": ORDER}, external_id="2")
        world.settle()
        assert world.app.get("both").values["answer"] == ["paid", "sent"]


def test_after_resealing_waits_and_facts_are_found_without_the_old_key(open_store, clock):
    # Given a wait and a fact of another order, under the old key,
    begin(open_store, clock, old_key())
    with living(open_store, old_key(), clock) as world:
        world.app.deliver("paid", {"order": "another", "sum": "9"}, external_id="0")
        before = correlations(world.store)

    # when all is sealed anew,
    with living(open_store, both_keys(), clock) as world:
        assert world.store.reseal() > 0
        assert not before & correlations(world.store)
        assert world.store.reseal() == 0

    # then the new key is enough: for a fact that comes, and for one that was there.
    with living(open_store, new_key(), clock) as world:
        assert pays(world, external_id="1") == SUM
        world.app.start("pays", {"given": "another"}, thread_id="later")
        world.settle()
        assert world.app.get("later").values["answer"] == "9"


def test_a_store_that_was_plain_is_heard_while_it_is_moved_and_no_key_stays_readable(open_store, clock):
    begin(open_store, clock, None)
    with living(open_store, None, clock) as world:
        world.app.start("both", {"given": ORDER}, thread_id="both")
        world.settle()
        assert "conditions.correlation" in leaks(world.store)

    with living(open_store, new_key(required=False), clock) as world:
        assert pays(world, external_id="1") == SUM
        world.store.reseal()
        assert leaks(world.store) == set()

    with living(open_store, new_key(), clock) as world:
        world.app.deliver("sent", {"order": ORDER}, external_id="2")
        world.settle()
        assert world.app.get("both").values["answer"] == ["paid", "sent"]


def test_explaining_finds_facts_and_waits_of_both_keys(open_store, clock):
    begin(open_store, clock, old_key())
    with living(open_store, old_key(), clock) as world:
        world.app.deliver("paid", {"order": ORDER, "sum": SUM}, external_id="1", owner="somebody else")

    with living(open_store, both_keys(), clock) as world:
        told = str(world.app.explain("paid", {"order": ORDER}))
        assert "fits 1 of 1 condition(s)" in told
        (wait,) = world.app.waits(thread_id="pays")
        assert "no fact came under" in str(world.app.explain(wait.id))


def test_a_key_that_does_not_fit_what_is_waited_for_is_told_by_verify(open_store, clock):
    begin(open_store, clock, old_key())

    with open_store(old_key()) as store:
        other = old_key().correlation("event:something else")
        params = {"wait_id": world_on(store, clock).app.waits()[0].id, "number": 0, "correlation": other}
        store.database.write("test", lambda tx: tx.run("reseal_correlation", params))

        [problem] = store.verify().problems
        assert "is found under another key than what it needs comes with" in str(problem)


def test_a_wait_that_is_exported_and_imported_under_another_key_is_found(open_store, clock, tmp_path):
    begin(open_store, clock, old_key())
    with living(open_store, old_key(), clock) as world:
        world.store.export_thread("pays", tmp_path / "file", encrypt=True)
    assert MARK.encode() not in (tmp_path / "file").read_bytes()

    with Store.open(":memory:", encryption=new_key(), clock=clock) as store:
        store.import_thread(tmp_path / "file", encryption=old_key())
        assert pays(world_on(store, clock), external_id="1") == SUM
        assert leaks(store) == set()
