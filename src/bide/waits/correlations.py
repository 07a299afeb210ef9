"""Correlation keys: by which a fact finds the few waits that it may be for, without looking at all of them.

A wait is registered under one key, a fact has several. Whenever a fact matches a wait, the wait's key is among the
fact's: that is all a key promises. Whether they match is decided by `bide.waits.matching`.
"""

from __future__ import annotations

import json
import math
from hashlib import blake2b
from typing import Any

from bide.waits.addresses import only_address_of
from bide.waits.conditions import Child, Condition, Email, Event, Webhook
from bide.waits.facts import Fact
from bide.waits.globs import only_text
from bide.waits.mails import answered_ids
from bide.waits.texts import lower_ascii

LONGEST_KEY = 200
_LONG_TEXT = 10_000
_HASHED = 32


def correlation_of(condition: Condition) -> str:
    """Return the key under which a wait for this is registered; "" when no fact can satisfy it."""
    if isinstance(condition, Child):
        return _key("child", condition.thread_id)
    if isinstance(condition, Webhook):
        return _key("webhook", condition.name)
    if isinstance(condition, Event):
        return _key("event", condition.name, _first_equality(condition.match or {}))
    return _of_email(condition) if isinstance(condition, Email) else ""


def keys_of(fact: Fact) -> tuple[str, ...]:
    """Return every key under which a wait for this fact may be registered, sorted."""
    keys = {_key(fact.kind, fact.name)}
    if fact.kind == "event" and isinstance(fact.payload, dict):
        pairs = (_pair(key, value) for key, value in fact.payload.items())
        keys.update(_key("event", fact.name, pair) for pair in pairs if pair)
    elif fact.kind == "email":
        mailbox = lower_ascii(fact.name) if isinstance(fact.name, str) else ""
        keys = {_key("email", box, part) for box in {"", mailbox} for part in ("", *_parts_of_mail(fact.payload))}
    return tuple(sorted(keys))


def _of_email(condition: Email) -> str:
    mailbox = lower_ascii(condition.mailbox or "")
    if condition.in_reply_to is not None:
        return _key("email", mailbox, _pair("reply", condition.in_reply_to))
    sender = only_text(condition.from_) if isinstance(condition.from_, str) else None
    return _key("email", mailbox, "" if sender is None else _pair("from", lower_ascii(sender)))


def _parts_of_mail(payload: Any) -> list[str]:
    if not isinstance(payload, dict):
        return []
    sender = only_address_of(payload.get("from"))
    senders = [] if sender is None else [_pair("from", sender)]
    return [*senders, *(_pair("reply", answered) for answered in answered_ids(payload))]


def _first_equality(match: dict[str, Any]) -> str:
    """Return the first key, by the alphabet, that a match wants to have one certain value."""
    return next((pair for key in sorted(match) if (pair := _pair(key, match[key]))), "")


def _pair(key: Any, value: Any) -> str:
    """Return a key and its value as one text that is the same for equal values; "" when there is none."""
    if not isinstance(key, str) or (told := _scalar(value)) is None:
        return ""
    return f"{_ascii(key)}={told}"


def _scalar(value: Any) -> str | None:
    if isinstance(value, str):
        return json.dumps(value)
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        # 1 and 1.0 are equal, so they must have one key.
        value = int(value) if value.is_integer() else value
    if isinstance(value, int):
        return str(value) if abs(value) < _LONG_TEXT**4 else hex(value)  # longer ones Python would not print
    return repr(value) if isinstance(value, float) else None


def _ascii(text: str) -> str:
    """Return a text that every database can hold and compare."""
    return text if text.isascii() and text.isprintable() else json.dumps(text)


def _key(kind: str, name: Any, part: str = "") -> str:
    key = f"{kind}:{_ascii(name) if isinstance(name, str) else ''}" + (f"|{part}" if part else "")
    if len(key) <= LONGEST_KEY:
        return key
    digest = blake2b(key.encode(), digest_size=_HASHED // 2).hexdigest()
    return f"{key[: LONGEST_KEY - _HASHED - 1]}~{digest}"
