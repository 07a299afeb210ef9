"""A message that was cut short by a crash or a question is said again from its beginning, also when it keeps its id."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bide.runtime.following import Cursor
from bide.server.streams.log import Entry
from bide.server.streams.story import Story
from bide.store.tail import LineRow

RUN = "run-1"


def entry(number: int, kind: str, body: Any) -> Entry:
    before, after = Cursor(1, number - 1, "life"), Cursor(1, number, "life")
    return Entry(before, after, LineRow(number, 1, RUN, kind, 0), "graph", body)


def token(number: int, text: str) -> Entry:
    said = {"type": "AIMessageChunk", "id": "said-1", "content": text, "tool_calls": []}
    return entry(number, "told.messages", {"ns": [], "data": json.dumps([said, {"langgraph_node": "talk"}])})


@pytest.mark.parametrize(
    ("kind", "body"), [("run.reaped", {"crashes": 1}), ("run.waiting", {"asks": []})], ids=["a crash", "a question"]
)
def test_message_that_is_said_again_does_not_grow_on_what_was_cut_short(kind: str, body: Any):
    story = Story(None, "t", RUN, ("messages",), subgraphs=False, goes_on=False)  # type: ignore[arg-type]
    lines = [token(1, "Half a "), entry(2, kind, body), token(3, "Half a "), token(4, "sentence")]

    parts = [part for line in lines for part in story.parts(line)]

    grown = [json.loads(part.data)[0]["content"] for part in parts if part.event == "messages/partial"]
    assert grown == ["Half a ", "Half a ", "Half a sentence"]
