"""What a thread waits for, in words: for inboxes, tables and messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bide.clock import iso

LONGEST = 120


def waiting_for(kind: str, question: Any, condition: Mapping[str, Any] | None, since: int) -> str:
    """Say what a wait needs, in one line."""
    if kind in ("before", "after"):
        return f"somebody to go on (it stops {kind} this node)"
    if condition is None:
        return _cut(f"an answer: {_asked(question)}")
    return _cut(_said(condition, since))


def _asked(question: Any) -> str:
    if isinstance(question, Mapping):
        for name in ("question", "title", "message", "waiting_for", "prompt", "action"):
            if isinstance(question.get(name), str):
                return str(question[name])
    return question if isinstance(question, str) else repr(question)


def _said(condition: Mapping[str, Any], since: int) -> str:
    match condition:
        case {"kind": "after", "ms": length}:
            return f"the time {iso(since + length)[:19]}Z"
        case {"kind": "at", "instant": instant}:
            return f"the time {iso(instant)[:19]}Z"
        case {"kind": "email"}:
            parts = [f"{name} {condition[name]}" for name in ("from", "to", "subject", "body") if condition.get(name)]
            return f"an e-mail {', '.join(map(str, parts))}".rstrip()
        case {"kind": "webhook", "name": name}:
            return f"the webhook {name!r}"
        case {"kind": "event", "name": name}:
            return f"the event {name!r}"
        case {"kind": "approval"}:
            title = condition.get("title") or "an approval"
            return f"a decision: {title} ({' / '.join(condition.get('options') or ())})"
        case {"kind": "child", "thread_id": thread_id}:
            return f"the child thread {thread_id}"
        case {"kind": kind, "of": parts}:
            said = [_said(part, since) for _, part in parts]
            word = {"any_of": "any of", "all_of": "all of"}.get(str(kind), f"{condition.get('k', '?')} of")
            return f"{word} [{'; '.join(said)}]"
    return str(condition.get("kind"))


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else line[: LONGEST - 1] + "…"
