"""Looking after a store in which LangGraph's threads are: they are counted, looked at, and sealed anew like ours."""

from __future__ import annotations

import operator
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph

from bide import Encryption, Store
from bide.errors import UnknownThreadError
from bide.interop.langgraph import BideSaver
from bide.store.stored_rows import BLOBS, OF_SAVERS
from tests.store.inspected import all_rows

OLD, NEW = Encryption.generate_key(), Encryption.generate_key()
CONFIG: dict[str, Any] = {"configurable": {"thread_id": "t"}}


class Talk(TypedDict, total=False):
    log: Annotated[list[str], operator.add]
    text: str


def graph_on(saver: BideSaver) -> Any:
    """A graph of LangGraph's with a list that grows and a text that is large."""
    graph = StateGraph(Talk)
    graph.add_node("node", lambda state: {"log": ["said " * 200], "text": "large " * 20_000})
    graph.add_edge(START, "node")
    return graph.compile(checkpointer=saver)


def talk(url: str, encryption: Encryption | None) -> Any:
    with Store.open(url, encryption=encryption) as store:
        graph = graph_on(BideSaver(store))
        graph.invoke({"log": []}, CONFIG)
        graph.invoke({"log": []}, CONFIG)
        return graph.get_state(CONFIG).values


def test_store_with_threads_of_langgraph_is_sound_and_counts_them(lasting_url):
    talk(lasting_url, None)

    with Store.open(lasting_url) as store:
        found = store.verify()
        assert found.is_sound, str(found)
        assert found.checked["saver_checkpoints"] == store.stats().langgraph_checkpoints > 3
        assert store.stats().threads == 0


def test_changed_byte_of_a_thread_of_langgraph_is_named(lasting_url):
    talk(lasting_url, None)

    with Store.open(lasting_url) as store:
        for table in OF_SAVERS:
            row = all_rows(store, table)[-1]
            key = {name: row[name] for name in table.key}
            params = {**key, "old": row["body"], "new": row["body"][:-1]}
            assert store.database.write("test", lambda tx, t=table, p=params: tx.run(f"reseal_{t.name}_body", p)) == 1
        found = store.verify()

    assert {problem.invariant for problem in found.problems} == {"I12"}
    assert all(any(table.name in problem.what for problem in found.problems) for table in OF_SAVERS)


def test_one_thread_of_langgraph_can_be_looked_at_alone(lasting_url):
    talk(lasting_url, None)

    with Store.open(lasting_url) as store:
        BideSaver(store).copy_thread("t", "tt")
        found, everything = store.verify("t"), store.verify()
        row = next(row for row in all_rows(store, OF_SAVERS[0]) if row["thread_id"] == "tt")
        key = {name: row[name] for name in OF_SAVERS[0].key}
        params = {**key, "old": row["body"], "new": row["body"][:-1]}
        store.database.write("test", lambda tx: tx.run("reseal_saver_checkpoints_body", params))

        assert found.is_sound, str(found)
        assert {name: 2 * found.checked[name] for name in found.checked} == {
            table.name: everything.checked[table.name] for table in OF_SAVERS
        }
        assert store.verify("t").is_sound
        assert [problem.thread_id for problem in store.verify("tt").problems] == ["tt"]
        with pytest.raises(UnknownThreadError, match="BideSaver"):
            store.verify("nope")


def test_after_reseal_the_old_key_of_a_thread_of_langgraph_is_not_needed(lasting_url):
    values = talk(lasting_url, Encryption({"old": OLD}))

    with Store.open(lasting_url, encryption=Encryption({"old": OLD, "new": NEW}, "new")) as store:
        before = {row["hash"] for row in all_rows(store, BLOBS)}
        assert store.reseal() > 0
        assert store.reseal() == 0
        after = {row["hash"] for row in all_rows(store, BLOBS)}

    assert len(before) == len(after) > 0
    assert not before & after
    with Store.open(lasting_url, encryption=Encryption({"new": NEW})) as store:
        assert store.verify().is_sound, str(store.verify())
        assert graph_on(BideSaver(store)).get_state(CONFIG).values == values
        assert graph_on(BideSaver(store)).invoke({"log": []}, CONFIG)["log"] == ["said " * 200] * 3


def test_store_is_needed_with_its_key(lasting_url):
    talk(lasting_url, Encryption({"old": OLD}))

    with Store.open(lasting_url, encryption=Encryption({"new": NEW})) as store, pytest.raises(Exception, match="'old'"):
        graph_on(BideSaver(store)).get_state(CONFIG)
