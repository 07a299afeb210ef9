"""What the seeds' tests ask of every store: states of any shape come back, damage is told, and nothing gets lost."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any, TypedDict

import pytest

from bide import Command, CompiledGraph, MemorySaver, Store, interrupt
from bide.errors import CodecError, StoreError, StoreFormatError, StoreUnavailableError
from tests.drivers import Driver
from tests.requirements.graphs import checkpoint_ids, thread, url_of
from tests.requirements.visits import after, visit
from tests.threads import one_node

ANY_STATE = {"value": Any}


def keep(store: Store) -> CompiledGraph:
    """A graph that asks, and so keeps its input for as long as nobody answers."""
    return one_node(ANY_STATE, lambda state: {"value": [state["value"], interrupt("Go on?")]}, checkpointer=store)


# ── States of any shape ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed(
    "test_checkpoint.rs::test_checkpoint_complex_state", "test_checkpoint.rs::test_checkpoint_large_state"
)
@pytest.mark.seed(
    "test_checkpoint.rs::test_checkpoint_unicode_state", "test_checkpoint.rs::test_checkpoint_empty_state"
)
@pytest.mark.seed("test_checkpoint.rs::test_memory_checkpointer_save_and_load")
@pytest.mark.seed("test_checkpoint.rs::test_file_checkpointer_save_and_load")
@pytest.mark.seed("test_checkpoint.rs::test_file_checkpointer_persistence")
@pytest.mark.requirement("T2-14")
@pytest.mark.parametrize(
    "value",
    [
        {"text": "hello", "number": 42, "half": 0.5, "yes": True, "none": None, "list": [1, [2]], "map": {"deep": {}}},
        {f"key {number}": number for number in range(1000)},
        {"蜂": "はち", "bee": "🐝", "zero": "\0", "naïve": "пчела"},
        {},
        "x" * 1_000_000,
        None,
    ],
    ids=["complex", "many keys", "unicode", "empty", "a megabyte", "none"],
)
def test_state_of_any_shape_is_kept_through_a_pause_and_another_process(
    driver: Driver, open_file: Callable[[], Store], value: Any
):
    driver.invoke(keep(open_file()), {"value": value}, thread("t"))

    kept = keep(open_file()).get_state(thread("t")).values["value"]
    done = driver.invoke(keep(open_file()), Command(resume="yes"), thread("t"))

    assert kept == value
    assert type(kept) is type(value)
    assert done["value"] == [value, "yes"]


class Colour(Enum):
    RED = "red"


@dataclass
class Card:
    """A class of the caller's own, known from the schema."""

    owner: str
    limits: dict[str, Decimal] = field(default_factory=dict)


class Typed(TypedDict, total=False):
    card: Card
    colour: Colour
    at: datetime
    answer: Any


@pytest.mark.seed("type_registry_test.go::typed round trip")
@pytest.mark.requirement("L4-02")
def test_typed_values_come_back_as_what_they_were(driver: Driver, open_file: Callable[[], Store]):
    """langgraphgo needs each type registered by hand; here the schema names them."""
    given = Typed(card=Card("ada", {"day": Decimal("9.50")}), colour=Colour.RED, at=datetime(2026, 1, 2, tzinfo=UTC))

    def graph() -> CompiledGraph:
        return one_node(Typed, lambda state: {"answer": interrupt(state["card"])}, checkpointer=open_file())

    paused = driver.invoke(graph(), given, thread("t"))
    kept = graph().get_state(thread("t"))
    done = driver.invoke(graph(), Command(resume=Card("ben")), thread("t"))

    assert kept.values == given
    assert kept.values["colour"] is Colour.RED
    assert paused.interrupt_value == given["card"]
    assert done["answer"] == Card("ben")


# ── Many at once, and the same again ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("test_checkpoint.rs::test_memory_checkpointer_concurrent_access", "store/*_test.go::concurrency")
@pytest.mark.requirement("T2-14")
def test_many_who_use_one_store_at_once_lose_nothing(store: Store):
    graph = keep(store)

    def live(number: int) -> Any:
        graph.invoke({"value": number}, thread(number))
        return graph.invoke(Command(resume="yes"), thread(number))["value"]

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(live, range(24)))

    assert results == [[number, "yes"] for number in range(24)]
    assert {row.status for row in store.threads()} == {"done"}


@pytest.mark.seed("test_checkpoint.rs::test_memory_checkpointer_overwrite", "store/*_test.go::overwrite")
@pytest.mark.requirement("L4-10")
def test_checkpoint_is_never_written_over_an_edit_is_a_new_one(driver: Driver, store: Store):
    """Both seeds write over a checkpoint of the same id; here what was saved stays readable."""
    graph = visit("ab", store, interrupt_before=["b"])
    paused = driver.invoke(graph, {}, thread("t"))

    edited = driver.call(graph, "update_state", thread("t"), {"visited": ["edited"]})

    before = graph.get_state(thread("t", checkpoint_id=paused.checkpoint_id))
    assert before.values == after("a")
    assert graph.get_state(edited).values["visited"] == ["a", "edited"]
    assert checkpoint_ids(graph, thread("t"))[-2:] == [
        paused.checkpoint_id,
        edited["configurable"]["checkpoint_id"],
    ]


@pytest.mark.seed("test_checkpoint.rs::test_checkpoint_ids_are_unique")
@pytest.mark.requirement("T2-14")
def test_no_two_checkpoints_share_an_id_whatever_the_thread_the_node_and_the_instant(driver: Driver, store: Store):
    graph = visit("abc", store)
    for number in range(20):
        driver.invoke(graph, {}, thread(number))

    ids = [each for number in range(20) for each in checkpoint_ids(graph, thread(number))]

    assert len(set(ids)) == len(ids) == 80


# ── Damage and refusals ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("test_checkpoint.rs::test_checkpoint_from_invalid_json")
@pytest.mark.seed("test_checkpoint.rs::test_checkpoint_from_corrupt_bytes")
@pytest.mark.seed("test_checkpoint.rs::test_checkpoint_from_empty_bytes")
@pytest.mark.seed("test_checkpoint.rs::test_checkpoint_from_incomplete_json")
@pytest.mark.seed("store/*_test.go::bad state or metadata JSON")
@pytest.mark.seed("test_stategraph_checkpoint.py::test_error_handling_corrupt_file")
@pytest.mark.requirement("T2-27")
@pytest.mark.parametrize("damage", [b"", b"\x01", b"not ours {{{", b"\xff" * 40], ids=["empty", "cut", "text", "junk"])
def test_damaged_checkpoint_is_a_typed_error_that_names_it_and_other_threads_go_on(
    driver: Driver, tmp_path: Path, damage: bytes
):
    with Store.open(url_of(tmp_path)) as store:
        for name in ("damaged", "whole"):
            driver.invoke(keep(store), {"value": name}, thread(name))
    with sqlite3.connect(tmp_path / "bide.db") as raw:
        raw.execute("UPDATE checkpoints SET body = ? WHERE thread_id = 'damaged'", (damage,))
    raw.close()

    with Store.open(url_of(tmp_path)) as store:
        with pytest.raises(CodecError, match="'damaged'") as looked_at:
            keep(store).get_state(thread("damaged"))
        with pytest.raises(CodecError, match="'damaged'"):
            driver.invoke(keep(store), Command(resume="yes"), thread("damaged"))
        done = driver.invoke(keep(store), Command(resume="yes"), thread("whole"))

    assert re.search(r"checkpoint \d+", str(looked_at.value))
    assert done["value"] == ["whole", "yes"]


@pytest.mark.seed("test_checkpoint.rs::test_file_checkpointer_readonly_directory", "store/*_test.go::permissions")
@pytest.mark.seed("test_checkpointer.py::test_postgresql_setup_failure_falls_back_to_memory")
@pytest.mark.requirement("T2-27", "Z0-10", "Z0-42")
def test_place_that_cannot_be_written_is_an_error_and_never_a_store_in_memory(tmp_path: Path):
    (tmp_path / "bide.db").mkdir()

    for url in (url_of(tmp_path), url_of(tmp_path / "no such folder")):
        with pytest.raises(StoreUnavailableError, match=re.escape(str(tmp_path))):
            Store.open(url)
        with pytest.raises(StoreUnavailableError):
            visit("ab", url)  # type: ignore[arg-type]

    assert list(tmp_path.iterdir()) == [tmp_path / "bide.db"]


@pytest.mark.seed("test_checkpoint.rs::test_file_checkpointer_corrupt_file", "store/*_test.go::database errors")
@pytest.mark.seed("test_stategraph_checkpoint.py::test_error_handling_corrupt_file")
@pytest.mark.requirement("T2-27")
def test_file_that_is_no_store_is_refused_and_left_as_it_was(tmp_path: Path):
    pickled = b"\x80\x04\x95 a pickle of somebody else's " * 40
    (tmp_path / "bide.db").write_bytes(pickled)

    with pytest.raises(StoreFormatError, match=r"bide\.db"):
        Store.open(url_of(tmp_path))

    assert (tmp_path / "bide.db").read_bytes() == pickled


# ── Which store ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.seed("test_checkpointer.py::test_sqlite_returns_memory_saver")
@pytest.mark.seed("test_checkpointer.py::test_checkpointer_survives_multiple_calls")
@pytest.mark.requirement("Z0-03", "Z0-11", "Z0-10", "Z0-42")
def test_sqlite_is_durable_and_the_same_for_every_graph_that_opens_it(driver: Driver, tmp_path: Path):
    """Zerg turns a SQLite URL into a store in memory, and loses the thread."""
    for given in ({}, {"visited": ["again"]}):
        with Store.open(url_of(tmp_path)) as store:
            driver.invoke(visit("ab", store), given, thread("t"))

    with Store.open(url_of(tmp_path)) as store:
        kept = visit("ab", store).get_state(thread("t")).values

    assert kept["visited"] == ["a", "b", "again", "a", "b"]
    assert (tmp_path / "bide.db").exists()


@pytest.mark.seed("test_checkpointer.py::test_sqlite_memory_returns_memory_saver")
@pytest.mark.seed("test_checkpointer.py::test_memory_saver_can_store_and_retrieve_checkpoint")
@pytest.mark.requirement("Z0-05", "Z0-11", "Z0-42")
@pytest.mark.parametrize("opened", [MemorySaver, lambda: Store.open(":memory:")], ids=["saver", "url"])
def test_store_in_memory_keeps_threads_and_leaves_no_file(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Callable[[], Store]
):
    monkeypatch.chdir(tmp_path)

    with opened() as store:
        driver.invoke(keep(store), {"value": 1}, thread("t"))
        done = driver.invoke(keep(store), Command(resume="yes"), thread("t"))

    assert done["value"] == [1, "yes"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.seed("test_checkpointer.py::test_unknown_database_falls_back_to_memory")
@pytest.mark.requirement("Z0-11", "Z0-10", "Z0-42")
@pytest.mark.parametrize("url", ["mysql://host/db", "oracle:thing", "bide.db"])
def test_unknown_database_is_refused_with_the_known_forms(url: str):
    with pytest.raises(StoreError, match="sqlite:///"):
        Store.open(url)


@pytest.mark.seed("test_checkpointer.py::test_default_engine_used_when_none_provided")
@pytest.mark.seed("test_checkpoint.rs::test_execution_without_checkpointer")
@pytest.mark.requirement("T2-05", "Z0-11", "Z0-42")
def test_graph_without_a_store_runs_and_keeps_nothing_anywhere(
    driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)

    done = driver.invoke(visit("ab"), {})

    assert done.value == after("a", "b")
    assert (done.thread_id, done.checkpoint_id) == (None, None)
    assert list(tmp_path.iterdir()) == []
