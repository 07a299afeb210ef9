"""What was published against stores of this kind: for each a test that shows why it does not work here.

docs/encryption.md lists them with the numbers of the advisories.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

import pytest

from bide import CompiledGraph, Store
from bide.errors import BideError
from bide.store.item_errors import InvalidFilterError
from tests.attacks.corpus import constructor_dicts
from tests.stores import opened_store
from tests.threads import one_node, thread

INJECTIONS = [
    "x') OR 1=1 --",
    "source' OR '1'='1",
    "$.a') = 1 OR json_extract(value, '$.b",
    'a" OR ""="',
    "a; DROP TABLE items; --",
    "a%",
    "_",
    "*",
    "a\x00b",
    "\\'; --",
    ":thread_id",
    "?1",
    "%(key)s",
    "%s",
]


class State(TypedDict, total=False):
    said: Any


@pytest.fixture(params=["file", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with opened_store(request, tmp_path) as store:
        yield store


@pytest.fixture
def graph(store: Store) -> CompiledGraph:
    return one_node(State, lambda state: {}, checkpointer=store)


# --- SQL in filters, names and ids ------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", INJECTIONS)
def test_sql_in_a_key_of_an_item_filter_is_a_key(store, text):
    """CVE-2025-8709, CVE-2025-64104: keys of filters became SQL."""
    store.items.put(("mine",), "one", {"colour": "green"})
    store.items.put(("mine",), "two", {text: "green"})

    found = store.items.search(("mine",), filter={text: "green"})

    assert [item.key for item in found] == ["two"]
    assert store.items.search(("mine",), filter={text: "red"}) == []
    assert store.items.get(("mine",), "one").value == {"colour": "green"}


@pytest.mark.parametrize("text", INJECTIONS)
def test_sql_in_a_value_of_an_item_filter_is_a_value(store, text):
    store.items.put(("mine",), "one", {"colour": "green"})
    store.items.put(("mine",), "two", {"colour": text})

    assert [item.key for item in store.items.search(("mine",), filter={"colour": text})] == ["two"]
    assert [item.key for item in store.items.search(("mine",), filter={"colour": {"$ne": text}})] == ["one"]


@pytest.mark.parametrize("operator", ["$where", "$regex", "$gt) OR (1=1", "$ne'"])
def test_an_operator_that_is_none_is_refused(store, operator):
    """CVE-2026-27022 and its like: operators of the database, or text that becomes one."""
    with pytest.raises(InvalidFilterError, match="does not exist"):
        store.items.search(("mine",), filter={"colour": {operator: "1"}})


@pytest.mark.parametrize("text", INJECTIONS)
def test_sql_in_a_key_of_a_metadata_filter_is_a_key(graph, text):
    """CVE-2025-67644: keys of metadata filters became SQL, and showed the threads of others."""
    graph.invoke({"said": "mine"}, thread("mine"))
    graph.invoke({"said": "theirs"}, thread("theirs"))

    assert list(graph.get_state_history(thread("mine"), filter={text: "loop"})) == []
    assert list(graph.get_state_history(thread("mine"), filter={"source": text})) == []
    found = list(graph.get_state_history(thread("mine"), filter={"source": "loop"}))

    assert {state.values["said"] for state in found} == {"mine"}
    assert graph.get_state(thread("theirs")).values == {"said": "theirs"}


@pytest.mark.parametrize("text", [text for text in INJECTIONS if "\x00" not in text])  # PostgreSQL refuses those
def test_sql_in_the_id_of_a_thread_is_an_id(graph, text):
    graph.invoke({"said": "theirs"}, thread("theirs"))

    assert graph.get_state(thread(text)).values == {}
    graph.invoke({"said": "mine"}, thread(text))

    assert graph.get_state(thread(text)).values == {"said": "mine"}
    assert graph.get_state(thread("theirs")).values == {"said": "theirs"}


@pytest.mark.parametrize("text", INJECTIONS)
def test_sql_in_a_namespace_or_key_of_an_item_is_a_name(store, text):
    store.items.put(("theirs",), "one", {"n": 1})
    store.items.put((text, text), text, {"n": 2})

    assert [item.value for item in store.items.search((text,))] == [{"n": 2}]
    assert store.items.get((text, text), text).value == {"n": 2}
    assert store.items.list_namespaces(prefix=("theirs", text)) == []
    assert (text, text) in store.items.list_namespaces(suffix=(text,))


@pytest.mark.parametrize("wanted", [{"$ne": None}, {"$gt": ""}, {"$regex": ".*"}, ["theirs"]], ids=str)
def test_an_operator_in_the_place_of_a_value_is_a_value(graph, wanted):
    """CVE-2026-48121, CVE-2026-55253: operators in configs and filters reached the database, and crossed tenants."""
    graph.invoke({"said": "theirs"}, thread("theirs"))

    assert list(graph.get_state_history(thread("theirs"), filter={"source": wanted})) == []
    try:
        found = graph.get_state(thread(wanted)).values
    except BideError:
        found = {}
    assert found == {}


# --- whose items ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "sibling", ["acme-corp", "acme.corp", "acmeX", "acme%", "acm_", "ACME", "acme\x00", "acme/", "a"]
)
def test_a_search_under_a_namespace_does_not_see_its_siblings(store, sibling):
    """CVE-2026-71433: what was under "acme-corp" was found under "acme"."""
    store.items.put(("tenant", "acme"), "mine", {})
    store.items.put(("tenant", "acme", "notes"), "mine too", {})
    store.items.put(("tenant", sibling), "theirs", {})
    store.items.put(("tenant", sibling, "notes"), "theirs too", {})

    assert {item.key for item in store.items.search(("tenant", "acme"))} == {"mine", "mine too"}
    assert {item.key for item in store.items.search(("tenant", sibling))} == {"theirs", "theirs too"}
    assert store.items.list_namespaces(prefix=("tenant", "acme")) == [("tenant", "acme"), ("tenant", "acme", "notes")]


# --- bytes that become calls ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("told", constructor_dicts()[:8] + constructor_dicts()[-4:], ids=str)
def test_a_constructor_dict_is_a_dict(graph, store, told):
    """CVE-2026-48775: a dict in the state named a class, and a method to call on it."""
    graph.invoke({"said": told}, thread("t"))
    store.items.put(("mine",), "one", told)

    assert graph.get_state(thread("t")).values["said"] == told
    assert store.items.get(("mine",), "one").value == told


def test_a_lone_surrogate_beside_a_constructor_comes_back_and_changes_no_format(graph, store):
    """CVE-2025-64439: text that the first format refused was written in a second one, which ran constructors."""
    said = {"text": "\ud800", "\udfff": ["\ud800x"], **constructor_dicts()[0], "lc": 2}
    graph.invoke({"said": said}, thread("t"))
    store.items.put(("mine",), "one", {"said": said})

    assert graph.get_state(thread("t")).values["said"] == said
    assert store.items.get(("mine",), "one").value == {"said": said}
    assert [item.key for item in store.items.search(("mine",), filter={"said": said})] == ["one"]
