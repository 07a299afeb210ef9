"""Conditions as plain data, in which they are stored, and back.

The plain form has no version: what is written today is read for ever (tests/waits/test_golden.py holds examples). What
does not fit is refused as damaged. So is a key that is not known: to leave out a criterion would let more facts match.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from datetime import timedelta
from typing import Any

from bide.errors import CorruptDataError, InterruptError
from bide.waits import conditions, groups
from bide.waits.conditions import After, Approval, At, Child, Condition, Email, Event, Webhook
from bide.waits.criteria import match_from_plain, match_to_plain, regex_from_plain
from bide.waits.durations import LONGEST
from bide.waits.groups import AllOf, AnyOf, Group, Quorum
from bide.waits.patterns import Regex

Plain = Mapping[str, Any]

_NAMES = {"from_": "from"}
"""Fields that Python cannot call by their name."""
_NOT_STORED = frozenset({"shape"})


# --- to plain ---------------------------------------------------------------------------------------------------------


def to_plain(condition: Condition) -> dict[str, Any]:
    """Return a condition as dicts, lists, texts and numbers."""
    if isinstance(condition, Group):
        plain: dict[str, Any] = {"kind": condition.kind}
        if isinstance(condition, Quorum):
            plain["k"] = condition.k
        return {**plain, "of": [[label, to_plain(part)] for label, part in condition.parts]}
    if type(condition) not in _READERS_BY_CLASS:
        raise InterruptError(f"{condition!r:.100} is no condition. Make one with after(), email(), event() and so on.")
    return {"kind": condition.kind, **_fields(condition)}


def _fields(condition: Any) -> dict[str, Any]:
    values = {f.name: getattr(condition, f.name) for f in fields(condition) if f.name not in _NOT_STORED}
    return {_NAMES.get(name, name): _plain(name, value) for name, value in values.items() if value is not None}


def _plain(name: str, value: Any) -> Any:
    if name == "match":
        return match_to_plain(value)
    if isinstance(value, Regex):
        return match_to_plain(value)
    return list(value) if isinstance(value, tuple) else value


# --- from plain -------------------------------------------------------------------------------------------------------


def from_plain(plain: Plain) -> Condition:
    """Return the condition that was stored; raises CorruptDataError for anything that `to_plain` does not write."""
    try:
        return _read(plain, 0)
    except InterruptError as error:
        raise CorruptDataError(f"The stored condition is damaged: {error}") from None
    except RecursionError:
        raise CorruptDataError("The stored condition is damaged: it nests too deep.") from None


def _read(plain: object, depth: int) -> Condition:
    if type(plain) is not dict or type(plain.get("kind")) is not str:
        raise InterruptError("it is no dict with a kind")
    if depth > groups.DEEPEST:
        raise InterruptError("it nests too deep")
    kind = plain["kind"]
    if kind in ("any_of", "all_of", "quorum"):
        return _read_group(kind, plain, depth)
    reader = _READERS.get(kind)
    if reader is None:
        raise InterruptError(f"there is no condition of the kind {kind!r:.100}")
    return reader({key: value for key, value in plain.items() if key != "kind"})


def _read_group(kind: str, plain: dict[str, Any], depth: int) -> Group:
    _demand(plain.keys() == {"kind", "of"} | ({"k"} if kind == "quorum" else set()), f"{kind} has other keys")
    _demand(type(plain["of"]) is list and len(plain["of"]) <= groups.MOST_LEAVES, f"{kind} has no parts")
    read = groups.checked_parts(kind, tuple(_read_part(part, depth) for part in plain["of"]))
    if kind == "quorum":
        return Quorum(read, groups.checked_number(plain["k"], len(read)))
    return AnyOf(read) if kind == "any_of" else AllOf(read)


def _read_part(part: object, depth: int) -> groups.Part:
    if type(part) is not list or len(part) != 2 or type(part[0]) is not str:
        raise InterruptError("a part of a group is no label with a condition")
    return part[0], _read(part[1], depth + 1)


def _after(said: dict[str, Any]) -> After:
    _demand(said.keys() == {"ms"} and type(said["ms"]) is int, "a length of time is not a number")
    return After(_milliseconds(said["ms"]))


def _at(said: dict[str, Any]) -> At:
    _demand(said.keys() == {"instant"} and type(said["instant"]) is int, "a moment is not a number")
    return At(conditions.checked_instant(said["instant"]))


def _email(said: dict[str, Any]) -> Email:
    texts = {"from", "to", "subject", "body"}
    _demand(said.keys() <= texts | {"in_reply_to", "mailbox", "lookback", "exclusive"}, "email has other keys")
    patterns: dict[str, Any] = {key: _pattern(said[key]) for key in texts if key in said}
    others = {key: said[key] for key in ("in_reply_to", "mailbox") if key in said}
    _demand(all(type(value) is str for value in others.values()), "an id or a mailbox is no text")
    if "from" in patterns:
        patterns["from_"] = patterns.pop("from")
    return conditions.email(**patterns, **others, **_reach(said))


def _webhook(said: dict[str, Any]) -> Webhook:
    _demand({"name"} <= said.keys() <= {"name", "schema", "match", "lookback", "exclusive"}, "webhook has other keys")
    schema = said.get("schema")
    _demand(schema is None or type(schema) is dict, "a schema is no dict")
    return conditions.webhook(said["name"], schema, _match(said), **_reach(said))


def _event(said: dict[str, Any]) -> Event:
    _demand({"name"} <= said.keys() <= {"name", "match", "lookback", "exclusive"}, "event has other keys")
    return conditions.event(said["name"], _match(said), **_reach(said))


def _approval(said: dict[str, Any]) -> Approval:
    _demand({"title", "options", "assignees"} <= said.keys(), "approval lacks something")
    _demand(said.keys() <= {"title", "options", "assignees", "form"}, "approval has other keys")
    _demand(type(said["options"]) is list and type(said["assignees"]) is list, "options or assignees are no list")
    form = said.get("form")
    _demand(form is None or type(form) is dict, "a form is no dict")
    return conditions.approval(said["title"], said["options"], said["assignees"], form)


def _child(said: dict[str, Any]) -> Child:
    _demand(said.keys() == {"thread_id"} and type(said["thread_id"]) is str, "a child has no thread id")
    return conditions.child(said["thread_id"])


def _pattern(plain: object) -> str | Regex:
    if type(plain) is str:
        return plain
    _demand(type(plain) is dict and plain.keys() == {"regex", "flags"}, "a pattern is neither a glob nor a regex")
    return regex_from_plain(plain)  # type: ignore[arg-type]


def _match(said: dict[str, Any]) -> dict[str, Any] | None:
    if "match" not in said:
        return None
    found = match_from_plain(said["match"])
    _demand(type(found) is dict, "a match asks for no keys")
    return found  # type: ignore[no-any-return]


def _reach(said: dict[str, Any]) -> dict[str, Any]:
    """Return how far back a condition looks, and whether a fact is for it alone."""
    lookback, exclusive = said.get("lookback"), said.get("exclusive")
    _demand(type(lookback) is int and type(exclusive) is bool, "lookback or exclusive is missing")
    return {"lookback": timedelta(milliseconds=_milliseconds(lookback)), "exclusive": exclusive}


def _milliseconds(value: object) -> int:
    if type(value) is not int or not 0 <= value <= LONGEST:
        raise InterruptError("a length of time is out of all bounds")
    return value


def _demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise InterruptError(otherwise)


_READERS: dict[str, Callable[[dict[str, Any]], Condition]] = {
    "after": _after,
    "at": _at,
    "email": _email,
    "webhook": _webhook,
    "event": _event,
    "approval": _approval,
    "child": _child,
}
_READERS_BY_CLASS = frozenset({After, At, Email, Webhook, Event, Approval, Child})
