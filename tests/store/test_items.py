"""The long-term store: dicts under a key of a namespace, kept in the same database as the threads."""

from __future__ import annotations

import gc
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import pytest

from bide import Store, checkpointable
from bide.errors import CorruptDataError, StoreError, StoreUnavailableError, UnstorableValueError
from bide.store.item_errors import InvalidItemError, InvalidNamespaceError, NoSearchIndexError
from bide.store.item_memory import InMemoryStore
from bide.store.item_ops import GetOp, Item, ListNamespacesOp, MatchCondition, PutOp, SearchItem, SearchOp
from bide.store.items import ItemStore
from tests.store.conftest import FakeClock, Kept

ADA = ("users", "ada")
BOB = ("users", "bob")
START = datetime.fromtimestamp(1_700_000_000, UTC)


@checkpointable("tests.items.Address")
@dataclass
class Address:
    street: str
    number: int


@pytest.fixture
def items(clock: FakeClock) -> Iterator[InMemoryStore]:
    with InMemoryStore(clock=clock) as items:
        yield items


def keys(found: list[SearchItem]) -> list[str]:
    return [item.key for item in found]


# ── One item ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_item_comes_back_with_its_place_and_its_times(items):
    items.put(ADA, "pet", {"name": "Rex", "age": 3})

    assert items.get(ADA, "pet") == Item(
        value={"name": "Rex", "age": 3}, key="pet", namespace=ADA, created_at=START, updated_at=START
    )


def test_item_that_is_not_there_is_none(items):
    items.put(ADA, "pet", {})

    assert items.get(ADA, "car") is None
    assert items.get(BOB, "pet") is None


def test_put_replaces_the_whole_value_keeps_when_it_was_made_and_moves_when_it_was_written(items, clock):
    items.put(ADA, "pet", {"name": "Rex", "age": 3})
    clock.advance(60_000)

    items.put(ADA, "pet", {"name": "Max"})

    pet = items.get(ADA, "pet")
    assert pet.value == {"name": "Max"}
    assert (pet.created_at, pet.updated_at) == (START, datetime.fromtimestamp(1_700_000_060, UTC))


def test_deleted_item_is_gone_and_deleting_it_again_is_no_error(items):
    items.put(ADA, "pet", {"name": "Rex"})

    items.delete(ADA, "pet")
    items.delete(ADA, "pet")

    assert items.get(ADA, "pet") is None


def test_item_made_again_after_it_was_deleted_is_new(items, clock):
    items.put(ADA, "pet", {})
    items.delete(ADA, "pet")
    clock.advance(1000)

    items.put(ADA, "pet", {})

    assert items.get(ADA, "pet").created_at == datetime.fromtimestamp(1_700_000_001, UTC)


def test_values_are_copies_both_ways(items):
    mine = {"tags": ["a"]}
    items.put(ADA, "pet", mine)
    mine["tags"].append("changed after it was put")
    items.get(ADA, "pet").value["tags"].append("changed after it was read")
    items.search(ADA)[0].value.clear()

    assert items.get(ADA, "pet").value == {"tags": ["a"]}


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"nested": {"list": [1, 2.5, None, True, {"deep": "text"}]}},
        {"born": date(2020, 2, 29), "seen": START, "raw": b"\x00\xff", "odd": "\ud800\x00", 7: (1, 2), "large": 2**80},
        {"address": Address("Elm", 1)},
    ],
)
def test_whatever_the_codec_can_take_comes_back_equal_and_of_the_same_types(items, value):
    items.put(ADA, "thing", value)

    assert repr(items.get(ADA, "thing").value) == repr(value)


def test_items_say_what_they_are_as_json_has_it(items):
    items.put(ADA, "pet", {"name": "Rex"})
    plain = {
        "namespace": ["users", "ada"],
        "key": "pet",
        "value": {"name": "Rex"},
        "created_at": "2023-11-14T22:13:20+00:00",
        "updated_at": "2023-11-14T22:13:20+00:00",
    }

    assert items.get(ADA, "pet").dict() == plain
    assert items.search(ADA)[0].dict() == {**plain, "score": None}


def test_items_can_be_gathered_in_sets(items):
    items.put(ADA, "pet", {"name": "Rex"})

    assert len({items.get(ADA, "pet"), items.get(ADA, "pet")}) == 1
    assert len({*items.search(ADA), *items.search(())}) == 1


# ── Searching ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_search_finds_what_is_in_a_namespace_and_below_it(items):
    items.put(("users",), "count", {"n": 2})
    items.put(ADA, "pet", {"name": "Rex"})
    items.put((*ADA, "notes"), "first", {"text": "hello"})
    items.put(BOB, "pet", {"name": "Tom"})
    items.put(("shop",), "open", {})

    assert {item.namespace for item in items.search(ADA)} == {ADA, (*ADA, "notes")}
    assert len(items.search(("users",))) == 4
    assert len(items.search(())) == 5
    assert items.search(("nobody",)) == []


def test_what_was_written_last_comes_first_and_ties_are_in_the_order_of_namespace_and_key(items, clock):
    items.put(BOB, "b", {})
    items.put(BOB, "a", {})
    items.put(ADA, "z", {})
    clock.advance(1)
    items.put(ADA, "y", {})
    clock.advance(1)
    items.put(BOB, "b", {"again": True})

    for filter in (None, {"missing": None}):
        found = items.search(("users",), filter=filter)
        assert [(item.namespace[1], item.key) for item in found] == [
            ("bob", "b"),
            ("ada", "y"),
            ("ada", "z"),
            ("bob", "a"),
        ]


def test_search_hands_out_pages(items, clock):
    for number in range(25):
        items.put(ADA, f"{number:02}", {"number": number})
        clock.advance(1)

    newest = [f"{number:02}" for number in reversed(range(25))]
    assert keys(items.search(ADA)) == newest[:10]
    assert keys(items.search(ADA, limit=7, offset=20)) == newest[20:]
    assert keys(items.search(ADA, limit=0)) == []
    assert keys(items.search(ADA, limit=2**62, offset=24)) == newest[24:]
    assert keys(items.search(ADA, offset=25)) == []


@pytest.mark.parametrize("ask", [{"query": "a dog"}, {"query": ""}, {"query": "a dog", "filter": {"a": 1}}])
def test_search_in_words_is_refused_because_there_is_no_index_for_it(items, ask):
    items.put(ADA, "pet", {"name": "Rex"})

    with pytest.raises(NoSearchIndexError, match=r"no index.*use filter="):
        items.search(ADA, **ask)


def test_index_is_refused_because_nothing_would_search_it(items):
    with pytest.raises(NoSearchIndexError, match=r"put\(index=\['name'\]\).*filter="):
        items.put(ADA, "pet", {"name": "Rex"}, ["name"])
    with pytest.raises(NoSearchIndexError, match=r"InMemoryStore\(index=.*filter="):
        InMemoryStore(index={"dims": 2})

    items.put(ADA, "pet", {"name": "Max"}, index=False)
    assert keys(items.search(())) == ["pet"]


# ── Batches ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_batch_answers_in_order_and_each_operation_sees_those_before_it(items):
    old, read, new, found, namespaces, gone, nothing = items.batch(
        [
            PutOp(ADA, "pet", {"name": "Rex"}),
            GetOp(ADA, "pet"),
            PutOp(ADA, "pet", {"name": "Max"}),
            SearchOp(("users",), filter={"name": "Max"}),
            ListNamespacesOp(match_conditions=(MatchCondition("prefix", ("users",)),)),
            PutOp(ADA, "pet", None),
            GetOp(ADA, "pet"),
        ]
    )

    assert old is new is gone is nothing is None
    assert read.value == {"name": "Rex"}
    assert [item.value for item in found] == [{"name": "Max"}]
    assert namespaces == [ADA]


def test_batch_of_reads_sees_one_moment(items):
    items.put(ADA, "pet", {"name": "Rex"})

    pet, found, none = items.batch(iter([GetOp(ADA, "pet"), SearchOp(ADA), GetOp(BOB, "pet")]))

    assert pet.value == found[0].value == {"name": "Rex"}
    assert none is None
    assert items.batch([]) == []


@pytest.mark.parametrize(
    "wrong",
    [
        PutOp(("users", ""), "pet", {}),
        PutOp(ADA, "pet", {"name": object()}),
        PutOp(ADA, "pet", {}, ttl=-1),
        SearchOp(ADA, filter={"age": {"$near": 3}}),
        ListNamespacesOp(match_conditions=(MatchCondition("middle", ADA),)),  # type: ignore[arg-type]
        {"op": "put"},
    ],
)
def test_batch_with_a_mistake_anywhere_does_nothing(items, wrong):
    with pytest.raises((InvalidItemError, UnstorableValueError)):
        items.batch([PutOp(ADA, "pet", {"name": "Rex"}), wrong])

    assert items.search(()) == []


def test_batch_that_meets_damage_takes_back_what_it_wrote(path):
    with Store.open(f"sqlite:///{path}") as store:
        store.items.put(ADA, "broken", {"a": 1})
        damage(path, "UPDATE items SET body = x'00'")

        with pytest.raises(CorruptDataError):
            store.items.batch([PutOp(ADA, "new", {}), GetOp(ADA, "broken")])

        assert store.items.get(ADA, "new") is None


# ── What is refused ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("namespace", "hint"),
    [
        ((), r"namespace is empty.*\('users', '42'\)"),
        ("users", r"letter by letter.*\('users',\)"),
        (("users", ""), "Segment 1 of the namespace .* is empty"),
        (("users", 42), r"Segment 1 .* of type int.*write \('users', '42'\)"),
        (("users", None), "Segment 1 .* of type NoneType"),
        (None, "of type NoneType. Write a tuple of texts"),
        ({"users"}, "of type set. Write a tuple of texts"),
    ],
)
def test_namespace_that_is_none_is_refused_with_what_to_write(items, namespace, hint):
    for call in (
        lambda: items.put(namespace, "key", {}),
        lambda: items.get(namespace, "key"),
        lambda: items.delete(namespace, "key"),
    ):
        with pytest.raises(InvalidNamespaceError, match=hint):
            call()

    assert items.list_namespaces() == []


def test_prefix_may_be_empty_and_is_checked_as_namespaces_are(items):
    items.put(ADA, "pet", {})

    assert keys(items.search(())) == ["pet"]
    with pytest.raises(InvalidNamespaceError, match=r"prefix 'users' is one text.*\('users',\)"):
        items.search("users")
    with pytest.raises(InvalidNamespaceError, match=r"Segment 0 of the namespace prefix .* is empty"):
        items.search(("",))
    with pytest.raises(InvalidNamespaceError, match=r"Segment 0 of the suffix .* of type int"):
        items.list_namespaces(suffix=(1,))


def test_namespace_may_come_as_the_list_that_json_has(items):
    items.put(["users", "ada"], "pet", {})

    assert items.get(ADA, "pet").namespace == ADA


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        (None, "of type NoneType.*delete"),
        ([1, 2], r"of type list.*\{'value': \[1, 2\]\}"),
        ("text", "of type str"),
    ],
)
def test_value_that_is_no_dict_is_refused(items, value, hint):
    with pytest.raises(InvalidItemError, match=hint):
        items.put(ADA, "pet", value)


def test_value_that_would_not_come_back_equal_is_refused_with_its_place(items):
    with pytest.raises(UnstorableValueError, match=r"items\['pet'\]\['owner'\]"):
        items.put(ADA, "pet", {"owner": object()})

    assert items.get(ADA, "pet") is None


def test_key_is_a_text(items):
    with pytest.raises(InvalidItemError, match=r"key 7 in namespace .* of type int.*write '7'"):
        items.put(ADA, 7, {})


@pytest.mark.parametrize("wrong", [{"limit": -1}, {"offset": -1}, {"limit": 1.5}, {"limit": True}, {"limit": 2**63}])
def test_number_of_results_is_a_whole_number(items, wrong):
    for call in (lambda: items.search((), **wrong), lambda: items.list_namespaces(**wrong)):
        with pytest.raises(InvalidItemError, match=r"(limit|offset)=.*whole number"):
            call()


# ── In a file, beside the threads ──────────────────────────────────────────────────────────────────────────────────


def test_items_outlive_the_process_and_share_the_database_with_the_threads(kept: Kept):
    with Store.open(kept.url) as store:
        store.items.put(ADA, "pet", {"name": "Rex"})

    with Store.open(kept.url) as store:
        assert store.items.get(ADA, "pet").value == {"name": "Rex"}
        assert store.items is store.items
    kept.check()


def test_deleting_a_thread_leaves_items_alone(kept: Kept):
    with Store.open(kept.url) as store:
        store.items.put(("waiting",), "waiting", {"a": 1})

        store.delete_thread("waiting")

        assert store.items.get(("waiting",), "waiting").value == {"a": 1}


def test_items_of_a_store_go_by_its_clock_and_leave_it_open(path, clock):
    with Store.open(f"sqlite:///{path}", clock=clock) as store:
        with store.items as items:
            items.put(ADA, "pet", {})

        assert store.items.get(ADA, "pet").created_at == START


def test_items_of_a_closed_store_say_so(path):
    with Store.open(f"sqlite:///{path}") as store:
        items = store.items

    for call in (lambda: items.get(ADA, "pet"), lambda: items.put(ADA, "pet", {}), items.sweep_ttl):
        with pytest.raises(StoreError, match=r"closed.*Store\.open"):
            call()


def test_items_live_as_long_as_somebody_holds_them(path):
    items = Store.open(f"sqlite:///{path}").items
    gc.collect()

    items.put(ADA, "pet", {"name": "Rex"})

    assert items.get(ADA, "pet").value == {"name": "Rex"}


def test_store_in_memory_that_nobody_closed_goes_quietly(recwarn):
    items: ItemStore | None = InMemoryStore()
    assert items is not None
    items.put(ADA, "pet", {})

    items = None
    gc.collect()

    assert [str(warning.message) for warning in recwarn] == []


def test_store_in_memory_is_closed_by_its_block():
    with InMemoryStore() as items:
        items.put(ADA, "pet", {})

    with pytest.raises(StoreError, match="closed"):
        items.get(ADA, "pet")


def test_nothing_is_acknowledged_that_would_go_to_a_file_which_is_gone(path):
    with Store.open(f"sqlite:///{path}") as store:
        store.items.put(ADA, "pet", {"name": "Rex"})
        path.unlink()

        with pytest.raises(StoreUnavailableError, match=r"moved, deleted or replaced"):
            store.items.put(ADA, "pet", {"name": "Max"})


def test_two_stores_in_memory_know_nothing_of_each_other(items):
    items.put(ADA, "pet", {})

    with InMemoryStore() as other:
        assert other.search(()) == []


def damage(path: Any, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE items SET body = x'00'",
        "UPDATE items SET body = x''",
        "UPDATE items SET body = substr(body, 1, length(body) - 1)",
        "UPDATE items SET body = 'text'",
        "UPDATE items SET body = x'01c0'",
        "UPDATE items SET updated_at = 'yesterday'",
        "UPDATE items SET created_at = 9000000000000000000",
        "UPDATE items SET ttl = 'long', expires_at = 'late'",
    ],
)
def test_damaged_item_is_named_and_never_handed_out(path, statement):
    with Store.open(f"sqlite:///{path}") as store:
        store.items.put(ADA, "pet", {"name": "Rex"})
        damage(path, statement)

        for call in (
            lambda: store.items.get(ADA, "pet"),
            lambda: store.items.search(("users",)),
            lambda: store.items.search((), filter={"name": "Rex"}),
        ):
            with pytest.raises(CorruptDataError, match=r"item 'pet' of namespace \('users', 'ada'\).*put\(\)"):
                call()


def test_damaged_item_can_be_written_again(path):
    with Store.open(f"sqlite:///{path}") as store:
        store.items.put(ADA, "pet", {"name": "Rex"})
        damage(path, "UPDATE items SET body = x'00'")

        store.items.put(ADA, "pet", {"name": "Max"})

        assert store.items.get(ADA, "pet").value == {"name": "Max"}


@pytest.mark.parametrize("bytes_of_it", ["x'75'", "x'7aff00'", "x'00ed00'"])
def test_damaged_namespace_is_reported_and_never_handed_out(path, bytes_of_it):
    with Store.open(f"sqlite:///{path}") as store:
        store.items.put(ADA, "pet", {"name": "Rex"})
        damage(path, f"UPDATE items SET namespace = {bytes_of_it}")

        for call in (store.items.list_namespaces, lambda: store.items.search(())):
            with pytest.raises(CorruptDataError, match=r"namespace that is damaged.*backup"):
                call()


# ── From async code ────────────────────────────────────────────────────────────────────────────────────────────────


async def test_every_call_has_its_twin_for_async_code(items):
    await items.aput(ADA, "pet", {"name": "Rex"}, ttl=5)
    await items.aput(BOB, "pet", {"name": "Tom"})

    assert (await items.aget(ADA, "pet", refresh_ttl=False)).value == {"name": "Rex"}
    assert keys(await items.asearch(("users",), filter={"name": "Tom"}, limit=1)) == ["pet"]
    assert await items.alist_namespaces(suffix=("bob",)) == [BOB]
    assert [item.value for item in await items.abatch(iter([GetOp(BOB, "pet")]))] == [{"name": "Tom"}]
    await items.adelete(ADA, "pet")
    assert await items.aget(ADA, "pet") is None


async def test_errors_reach_async_code_as_they_are(items):
    with pytest.raises(InvalidNamespaceError):
        await items.aput((), "pet", {})
    with pytest.raises(NoSearchIndexError):
        await items.asearch((), query="a dog")
