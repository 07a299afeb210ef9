"""What a node writes on a LangChain message is stored, also where LangChain knows no such field."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import HumanMessage

from bide import MemorySaver, MessagesState
from tests.threads import one_node, thread


def stored_after(change: Any) -> Any:
    """Let a node change the first of several messages and return it; return it as it is stored then."""

    def review(state: MessagesState) -> dict[str, Any]:
        change(state["messages"][0])
        return {"messages": [state["messages"][0]]}

    with MemorySaver() as store:
        graph = one_node(MessagesState, review, checkpointer=store)
        said = [HumanMessage("said " * 40, id=str(number), tags=[]) for number in range(5)]
        graph.invoke({"messages": said}, thread())
        return graph.get_state(thread()).values["messages"][0]


def test_field_of_its_own_is_stored():
    assert stored_after(lambda message: setattr(message, "reviewed", True)).reviewed is True


def test_list_in_a_field_of_its_own_that_is_added_to_is_stored():
    assert stored_after(lambda message: message.tags.append("read")).tags == ["read"]


def test_text_metadata_and_name_that_are_changed_in_their_place_are_stored():
    def change(message: Any) -> None:
        message.content = "said otherwise"
        message.response_metadata["model"] = "m"
        message.name = "Ada"

    stored = stored_after(change)
    assert (stored.content, stored.response_metadata, stored.name) == ("said otherwise", {"model": "m"}, "Ada")
