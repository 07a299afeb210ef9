"""States that many graphs share."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from bide.messages import add_messages


class MessagesState(TypedDict):
    """A conversation: new messages are added, and one with a known id replaces the old."""

    messages: Annotated[list[Any], add_messages]
