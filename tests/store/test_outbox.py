"""The outbox keeps what is to be told until it was heard: made once, sent at least once, always under the same id."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bide import Encryption, Store
from bide.store.outbox import (
    ATTEMPTS,
    BACK_OFF,
    HOLD,
    LONGEST_DELAY,
    Message,
    OutboxRow,
    bookmark,
    claim_messages,
    delay_after,
    forget_messages,
    list_messages,
    mark_failed,
    mark_sent,
    next_message_at,
    post,
    put,
    read_message,
    retry_dead,
)
from tests.runtime.world import StillClock
from tests.store.counted_messages import count_messages
from tests.stores import KINDS, opened_store

HOUR = 3_600_000


@pytest.fixture
def clock() -> StillClock:
    return StillClock()


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: StillClock) -> Iterator[Store]:
    with opened_store(request, tmp_path, clock=clock) as opened:
        yield opened


def message(name: str = "m1", owner: str = "me") -> Message:
    return Message(name, owner, "thread", "run.finished", "webhook/1", "https://example.org/", '{"a": 1}')


def ids(rows: list[OutboxRow]) -> list[str]:
    return [row.message_id for row in rows]


# ── Making messages ────────────────────────────────────────────────────────────────────────────────────────────────


def test_of_two_who_read_the_same_lines_one_makes_the_messages(store: Store) -> None:
    place = bookmark(store, "reader")

    first = post(store, "reader", place, "0-7", [message("first")])
    second = post(store, "reader", place, "0-7", [message("second")])

    assert (first, second) == (True, False)
    assert bookmark(store, "reader") == "0-7"
    assert ids(claim_messages(store, 10)) == ["first"]


def test_many_who_race_make_each_message_once(store: Store) -> None:
    place = bookmark(store, "reader")

    with ThreadPoolExecutor(4) as pool:
        racing = [pool.submit(post, store, "reader", place, "0-7", [message(f"m{one}")]) for one in range(8)]
        won = [future.result(60) for future in racing]

    assert won.count(True) == 1
    assert ids(claim_messages(store, 10)) == [f"m{won.index(True)}"]


def test_a_message_that_is_made_again_is_there_once(store: Store) -> None:
    put(store, [message()])
    (row,) = claim_messages(store, 10)
    mark_sent(store, row)

    put(store, [message()])

    assert claim_messages(store, 10) == []
    assert count_messages(store) == {"open": 0, "sent": 1, "dead": 0}


# ── Sending them ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_claimed_message_is_its_senders_until_that_one_is_given_up(store: Store, clock: StillClock) -> None:
    put(store, [message()])

    (first,) = claim_messages(store, 10)
    meanwhile = claim_messages(store, 10)
    clock.instant += HOLD
    (again,) = claim_messages(store, 10)

    assert meanwhile == []
    assert (first.message_id, first.attempts) == ("m1", 1)
    assert (again.message_id, again.attempts) == ("m1", 2)
    assert again.payload == first.payload


def test_who_was_given_up_changes_nothing_any_more(store: Store, clock: StillClock) -> None:
    put(store, [message()])
    (slow,) = claim_messages(store, 10)
    clock.instant += HOLD
    (quick,) = claim_messages(store, 10)
    mark_sent(store, quick)

    mark_failed(store, slow, "it took too long", is_hopeless=True)

    assert not mark_sent(store, slow)
    assert read_message(store, "m1") == quick._replace(
        status="sent", sent_at=clock.instant, next_at=clock.instant + HOLD
    )


def test_many_who_claim_at_once_get_each_message_once(store: Store) -> None:
    put(store, [message(f"m{number:02}") for number in range(40)])

    with ThreadPoolExecutor(4) as pool:
        claimed = [row for rows in pool.map(lambda _: claim_messages(store, 5), range(16)) for row in rows]
    claimed += claim_messages(store, 40)

    assert sorted(ids(claimed)) == [f"m{number:02}" for number in range(40)]


def test_what_is_never_heard_is_tried_for_about_a_day_and_then_given_up(store: Store, clock: StillClock) -> None:
    began, statuses, put_off = clock.instant, [], []
    put(store, [message()])

    for _ in range(ATTEMPTS):
        (row,) = claim_messages(store, 10)
        statuses.append(mark_failed(store, row, "The receiver answered 500."))
        due = next_message_at(store)
        if due is not None:
            put_off.append(due - clock.instant)
            clock.instant = due

    assert statuses == ["open"] * (ATTEMPTS - 1) + ["dead"]
    assert all(0.8 * usual <= found <= 1.2 * usual for found, usual in zip(put_off, BACK_OFF, strict=True))
    assert 18 * HOUR < clock.instant - began < 30 * HOUR
    (dead,) = list_messages(store, "dead", "me")
    assert (dead.error, dead.attempts) == ("The receiver answered 500.", ATTEMPTS)


def test_a_dead_message_can_be_sent_again_and_has_further_attempts(store: Store, clock: StillClock) -> None:
    put(store, [message()])
    (row,) = claim_messages(store, 10)
    mark_failed(store, row, "gone", is_hopeless=True)
    assert claim_messages(store, 10) == []

    is_revived = retry_dead(store, "m1")
    (again,) = claim_messages(store, 10)

    assert is_revived
    assert again.attempts == 2
    assert mark_failed(store, again, "not yet") == "open"


def test_what_was_heard_is_not_sent_again(store: Store) -> None:
    put(store, [message()])
    (row,) = claim_messages(store, 10)
    mark_sent(store, row)

    assert not retry_dead(store, "m1")
    assert not retry_dead(store, "unknown")
    assert claim_messages(store, 10) == []


def test_a_receiver_may_ask_to_be_left_alone_for_a_day_at_most() -> None:
    assert delay_after(1, wait=HOUR) == HOUR
    assert delay_after(1, wait=1000 * HOUR) == LONGEST_DELAY
    assert delay_after(1, wait=1) >= 0.8 * BACK_OFF[0]


def test_messages_that_failed_together_do_not_come_back_together() -> None:
    assert len({delay_after(9) for _ in range(20)}) > 1


# ── Looking at them ────────────────────────────────────────────────────────────────────────────────────────────────


def test_messages_are_listed_newest_first_page_by_page_for_their_owner(store: Store, clock: StillClock) -> None:
    for number in range(5):
        clock.instant += 1
        put(store, [message(f"m{number}"), message(f"x{number}", owner="them")])

    first = list_messages(store, "open", "me", most=2)
    second = list_messages(store, "open", "me", after=first[-1], most=9)

    assert ids(first) == ["m4", "m3"]
    assert ids(second) == ["m2", "m1", "m0"]


def test_old_messages_are_let_go_but_never_those_that_are_to_be_sent(store: Store, clock: StillClock) -> None:
    put(store, [message("sent"), message("dead"), message("open")])
    for row in claim_messages(store, 3):
        if row.message_id == "sent":
            mark_sent(store, row)
        if row.message_id == "dead":
            mark_failed(store, row, "gone", is_hopeless=True)

    clock.pass_by(hours=24 * 8)
    after_a_week = forget_messages(store), count_messages(store)
    clock.pass_by(hours=24 * 30)
    after_a_month = forget_messages(store), count_messages(store)

    assert after_a_week == (1, {"open": 1, "sent": 0, "dead": 1})
    assert after_a_month == (1, {"open": 1, "sent": 0, "dead": 0})


def test_a_damaged_message_is_put_aside_and_keeps_no_other_back(store: Store) -> None:
    put(store, [message("broken"), message("whole")])
    store.database.write("test", lambda tx: tx.run("reseal_outbox_body", _damaged(tx)))

    claimed = claim_messages(store, 10)

    assert ids(claimed) == ["whole"]
    assert count_messages(store) == {"open": 1, "sent": 0, "dead": 1}


def _damaged(tx) -> dict[str, object]:  # type: ignore[no-untyped-def]
    row = tx.one("read_message", {"message_id": "broken"})
    return {"message_id": "broken", "old": row[-1], "new": b"\x01damaged!"}


def test_keys_are_changed_and_damage_is_found_in_the_outbox_too(tmp_path: Path) -> None:
    url, old, new = f"sqlite:///{tmp_path / 'a.db'}", Encryption.generate_key(), Encryption.generate_key()
    with Store.open(url, encryption=Encryption({"old": old})) as store:
        put(store, [message()])
    both = Encryption({"new": new, "old": old}, current="new")

    with Store.open(url, encryption=both) as store:
        assert store.reseal() == 1
    with Store.open(url, encryption=Encryption({"new": new})) as store:
        (row,) = claim_messages(store, 1)
        assert row.payload == '{"a": 1}'
        assert store.verify().is_sound
        mark_failed(store, row, "Trouble: it said xyzzy")
        store.database.write("test", lambda tx: tx.run("reseal_outbox_body", {**_damaged_m1(tx)}))
        assert not store.verify().is_sound
    assert b"xyzzy" not in (tmp_path / "a.db").read_bytes()


def _damaged_m1(tx) -> dict[str, object]:  # type: ignore[no-untyped-def]
    row = tx.one("read_message", {"message_id": "m1"})
    return {"message_id": "m1", "old": row[-1], "new": row[-1][:-1] + b"?"}
