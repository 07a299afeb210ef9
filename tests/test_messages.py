"""Messages, and how `add_messages` merges them."""

from __future__ import annotations

import copy
import re
import subprocess
import sys
from dataclasses import dataclass, replace
from typing import Annotated, Any, get_args
from uuid import UUID

import pydantic
import pytest

from bide.errors import GraphError, InvalidUpdateError
from bide.messages import (
    REMOVE_ALL_MESSAGES,
    AIMessage,
    HumanMessage,
    Message,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    add_messages,
    settled,
)


@pytest.fixture(autouse=True)
def without_langchain(monkeypatch):
    """Whether LangChain is loaded decides what `add_messages` makes; here it is not, whatever ran before."""
    monkeypatch.delitem(sys.modules, "langchain_core.messages", raising=False)


def texts(messages: list[Any]) -> list[str]:
    return [message.content for message in messages]


class Lookalike(pydantic.BaseModel):
    """As LangChain's messages are: known by their attributes only."""

    content: str
    type: str = "human"
    id: str | None = None


# --- the messages themselves ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        (HumanMessage("x"), "human"),
        (AIMessage("x"), "ai"),
        (SystemMessage("x"), "system"),
        (ToolMessage("x", tool_call_id="c"), "tool"),
        (RemoveMessage("1"), "remove"),
    ],
)
def test_type_says_who_speaks(message, kind):
    assert message.type == kind
    assert isinstance(message, Message)


def test_messages_are_equal_when_class_and_fields_are():
    assert HumanMessage("x", id="1") == HumanMessage(content="x", id="1")
    assert HumanMessage("x", id="1") != HumanMessage("x", id="2")
    assert HumanMessage("x") != AIMessage("x")


def test_messages_share_no_containers():
    one, other = AIMessage("x"), AIMessage("x")

    one.additional_kwargs["a"] = 1
    one.tool_calls.append({})

    assert other == AIMessage("x")


def test_repr_shows_what_was_given_and_nothing_else():
    assert repr(HumanMessage("hi")) == "HumanMessage('hi')"
    assert (
        repr(AIMessage("x", id="1", tool_calls=[{"name": "f"}])) == "AIMessage('x', id='1', tool_calls=[{'name': 'f'}])"
    )
    assert repr(ToolMessage("x", tool_call_id="c")) == "ToolMessage('x', tool_call_id='c')"
    assert repr(RemoveMessage("1")) == "RemoveMessage(id='1')"


def test_text_leaves_out_what_is_no_text():
    message = AIMessage(["a", {"type": "text", "text": "b"}, {"type": "image", "url": "c"}])

    assert message.text == "ab"
    assert HumanMessage("x").text == "x"


def test_pretty_print_shows_speaker_and_text(capsys):
    HumanMessage("hello", name="Ada").pretty_print()

    shown = capsys.readouterr().out
    assert re.fullmatch(r"=+ Human Message =+\nName: Ada\n\nhello\n", shown)


# --- what is accepted -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("hi", HumanMessage("hi")),
        (("user", "hi"), HumanMessage("hi")),
        (("ai", [{"type": "text", "text": "x"}]), AIMessage([{"type": "text", "text": "x"}])),
        ({"role": "user", "content": "hi"}, HumanMessage("hi")),
        ({"role": "human", "content": "hi", "name": "Ada"}, HumanMessage("hi", name="Ada")),
        ({"type": "human", "content": "hi"}, HumanMessage("hi")),
        ({"role": "assistant", "content": "x", "type": "message"}, AIMessage("x")),
        ({"type": "ai", "content": "x", "tool_calls": [{"name": "f", "args": {}, "id": "c"}]},
         AIMessage("x", tool_calls=[{"name": "f", "args": {}, "id": "c"}])),
        ({"role": "system", "content": "x"}, SystemMessage("x")),
        ({"role": "developer", "content": "x"},
         SystemMessage("x", additional_kwargs={"__openai_role__": "developer"})),
        ({"role": "tool", "content": "x", "tool_call_id": "c"}, ToolMessage("x", tool_call_id="c")),
        ({"role": "user", "content": "x", "mood": "good", "refusal": None},
         HumanMessage("x", additional_kwargs={"mood": "good"})),
        ({"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "HumanMessage"],
          "kwargs": {"content": "x", "type": "human", "name": "Ada"}},
         HumanMessage("x", name="Ada")),
        (SystemMessage("x"), SystemMessage("x")),
    ],
)  # fmt: skip
def test_message_is_made_of(given, wanted):
    (found,) = add_messages([], given)

    assert UUID(found.id).version == 4
    assert replace(found, id=None) == wanted


def test_tool_call_in_the_form_of_openai_is_understood():
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"x": 1}'}}

    (found,) = add_messages([], {"role": "assistant", "content": None, "tool_calls": [call]})

    assert found.content == ""
    assert found.tool_calls == [{"name": "f", "args": {"x": 1}, "id": "c", "type": "tool_call"}]


def test_one_or_many_can_be_given_on_both_sides():
    assert texts(add_messages("a", "b")) == ["a", "b"]
    assert texts(add_messages(["a"], [("user", "b"), HumanMessage("c")])) == ["a", "b", "c"]
    assert texts(add_messages([], [["user", "b"], ["ai", "c"]])) == ["b", "c"]  # pairs, after a way through JSON
    assert add_messages([], []) == []


def test_remove_can_be_given_as_a_dict():
    left = add_messages([], [HumanMessage("a", id="1"), HumanMessage("b", id="2")])

    assert texts(add_messages(left, {"type": "remove", "id": "1"})) == ["b"]


def test_id_in_a_dict_becomes_text():
    (found,) = add_messages([], {"role": "user", "content": "x", "id": 7})

    assert found.id == "7"


@pytest.mark.parametrize(
    "given",
    [
        None,
        5,
        b"x",
        object(),
        HumanMessage,
        {},
        {"content": "x"},
        {"role": "king", "content": "x"},
        {"role": ["user"], "content": "x"},
        {"role": "user"},
        {"role": "user", "content": 5},
        {"type": "text", "text": "x"},
        {"lc": 1, "type": "constructor", "id": ["os", "system"], "kwargs": {"content": "x"}},
        ("king", "x"),
        ("user",),
        ("user", "x", "y"),
        ("user", 5),
        ["x", None],
    ],
)
def test_anything_else_is_refused_with_what_was_given_and_what_is_accepted(given):
    with pytest.raises(
        InvalidUpdateError, match=r"Cannot make a message of .*\(role, content\).*Known roles: user"
    ) as caught:
        add_messages([], given)

    assert isinstance(caught.value, ValueError)
    bad = given[-1] if isinstance(given, list) else given
    assert repr(bad)[:50] in str(caught.value)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"role": "tool", "content": "x"}, "add 'tool_call_id'"),
        ({"type": "remove"}, "add 'id'"),
        ({"role": "ai", "content": "", "tool_calls": [5]}, "A tool call looks like"),
        (
            {"role": "ai", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": "{"}}]},
            "are not JSON",
        ),
    ],
)
def test_message_with_a_part_missing_is_refused(given, told):
    with pytest.raises(InvalidUpdateError, match=told):
        add_messages([], given)


def test_long_input_is_shortened_in_the_error():
    with pytest.raises(InvalidUpdateError) as caught:
        add_messages([], {"role": "king", "content": "x" * 10_000})

    assert len(str(caught.value)) < 600


# --- how they are merged ----------------------------------------------------------------------------------------------


def test_same_id_replaces_in_place():
    left = [HumanMessage("a", id="1"), AIMessage("b", id="2"), HumanMessage("c", id="3")]

    found = add_messages(left, [HumanMessage("new", id="2"), HumanMessage("d", id="4")])

    assert texts(found) == ["a", "new", "c", "d"]


def test_same_id_twice_in_one_update_keeps_the_last():
    assert texts(add_messages([], [HumanMessage("a", id="1"), HumanMessage("b", id="1")])) == ["b"]


def test_remove_deletes_and_a_later_message_with_the_id_brings_it_back():
    left = [HumanMessage("a", id="1"), HumanMessage("b", id="2")]

    assert texts(add_messages(left, RemoveMessage("1"))) == ["b"]
    assert texts(add_messages(left, [RemoveMessage("1"), RemoveMessage("1")])) == ["b"]
    assert texts(add_messages(left, [RemoveMessage("1"), HumanMessage("again", id="1")])) == ["again", "b"]
    assert texts(add_messages(left, [HumanMessage("again", id="1"), RemoveMessage("1")])) == ["b"]


def test_removing_an_unknown_id_is_refused_and_named():
    with pytest.raises(InvalidUpdateError, match=r"RemoveMessage\(id='9'\).*Known ids: '1'"):
        add_messages([HumanMessage("a", id="1")], RemoveMessage("9"))


def test_remove_all_resets_to_what_follows_it():
    left = [HumanMessage("a", id="1")]

    assert add_messages(left, RemoveMessage(REMOVE_ALL_MESSAGES)) == []
    assert add_messages([], RemoveMessage(id=REMOVE_ALL_MESSAGES)) == []
    assert texts(add_messages(left, ["lost", RemoveMessage(REMOVE_ALL_MESSAGES), "kept"])) == ["kept"]
    twice = [RemoveMessage(REMOVE_ALL_MESSAGES), "lost", RemoveMessage(REMOVE_ALL_MESSAGES), "kept"]
    assert texts(add_messages(left, twice)) == ["kept"]


def test_removal_after_a_reset_is_checked_too():
    with pytest.raises(InvalidUpdateError, match="id='1'"):
        add_messages([HumanMessage("a", id="1")], [RemoveMessage(REMOVE_ALL_MESSAGES), RemoveMessage("1")])


def test_nothing_that_was_given_is_changed():
    left = [HumanMessage("a"), HumanMessage("b", id="2")]
    right = [AIMessage("c"), HumanMessage("new", id="2"), Lookalike(content="d")]
    before = copy.deepcopy((left, right))

    found = add_messages(left, right)

    assert (left, right) == before
    assert found is not left
    assert all(message.id for message in found)


def test_message_with_an_id_is_kept_as_the_object_it_is():
    ours, theirs = HumanMessage("a", id="1"), Lookalike(content="b", id="2")

    found = add_messages([ours], [theirs])

    assert found[0] is ours
    assert found[1] is theirs


def test_stored_list_stays_as_it_is():
    stored = [HumanMessage("a", id="1"), Lookalike(content="b", id="2")]

    assert settled(stored) is stored


def test_each_missing_id_is_a_new_one():
    found = add_messages(["a", "b"], ["c", Lookalike(content="d")])

    assert len({message.id for message in found}) == 4


# --- messages of other libraries --------------------------------------------------------------------------------------


def test_message_of_another_library_stays_of_its_class():
    (found,) = add_messages([], Lookalike(content="x"))

    assert type(found) is Lookalike
    assert UUID(found.id)


def test_removal_of_another_library_is_understood():
    left = [HumanMessage("a", id="1"), HumanMessage("b", id="2")]

    assert texts(add_messages(left, Lookalike(content="", type="remove", id="1"))) == ["b"]
    assert add_messages(left, Lookalike(content="", type="remove", id=REMOVE_ALL_MESSAGES)) == []


def test_frozen_message_without_an_id_is_replaced_by_a_copy():
    @dataclass(frozen=True)
    class Frozen:
        content: str
        type: str = "human"
        id: str | None = None

    given = Frozen("x")

    (found,) = add_messages([], given)

    assert given.id is None
    assert UUID(found.id)


def test_message_that_cannot_take_an_id_is_refused():
    class Fixed:
        content = "x"
        type = "human"
        id = property(lambda self: None)

    with pytest.raises(InvalidUpdateError, match=r"Fixed.*Give it an id"):
        add_messages([], Fixed())


def test_add_messages_can_annotate_a_field():
    _, reducer = get_args(Annotated[list[Any], add_messages])

    assert texts(reducer(["a"], ["b"])) == ["a", "b"]


# --- options ----------------------------------------------------------------------------------------------------------


def test_add_messages_without_messages_is_a_reducer_with_these_options():
    _, reducer = get_args(Annotated[list[Any], add_messages(format=None)])

    assert texts(reducer(["a"], ["b"])) == ["a", "b"]


def test_reducers_with_the_same_options_are_the_same_and_have_a_name():
    reducer: Any = add_messages(format="langchain-openai")

    assert add_messages(format="langchain-openai") is reducer
    assert add_messages() is add_messages
    assert reducer.__name__ == "add_messages(format='langchain-openai')"


def test_unknown_format_is_refused_where_it_is_written():
    with pytest.raises(GraphError, match=r"format='markdown'.*'langchain-openai'"):
        add_messages(format="markdown")


def test_format_of_langchain_is_refused_without_langchain():
    with pytest.raises(GraphError, match=r"LangChain is not loaded.*pip install 'bide\[langchain\]'"):
        add_messages([], ["x"], format="langchain-openai")


@pytest.mark.parametrize("given", [{"left": ["a"]}, {"right": ["a"]}])
def test_one_list_alone_is_refused(given):
    with pytest.raises(InvalidUpdateError, match="two lists"):
        add_messages(**given)


# --- how it behaves ---------------------------------------------------------------------------------------------------


def test_merging_loads_neither_pydantic_nor_langchain():
    program = (
        "import sys, bide.graph.tokens as tokens; from bide import add_messages; "
        "add_messages(['x'], [('ai', 'y')]); assert tokens.token_handler(print, {}) is None\n"
        "with tokens.langchain_scope({}, None): pass\n"
        "print([name for name in sys.modules if name.startswith(('pydantic', 'langchain'))])"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True)

    assert done.stdout.strip() == "[]"


def test_time_grows_with_the_number_of_messages_and_not_with_its_square():
    class Counted(str):
        compared = 0

        def __eq__(self, other: object) -> bool:
            Counted.compared += 1
            return super().__eq__(other)

        __hash__ = str.__hash__

    many = [HumanMessage("x", id=Counted(number)) for number in range(2_000)]
    again = [HumanMessage("y", id=Counted(number)) for number in range(2_000)]

    found = add_messages(many, again)

    assert len(found) == 2_000
    assert Counted.compared < 20_000
