"""The body of a webhook as whoever waits for it sees it, and what it is known by."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NoReturn
from urllib.parse import parse_qsl

from bide.server.hooks.signatures import Call
from bide.server.problems import Problem

MOST_FIELDS = 1000
FORM = "application/x-www-form-urlencoded"
_WRAPPED = ("github", "slack")
"""Who may send JSON in the field `payload` of a form."""
_ID_HEADERS: Mapping[str, tuple[str, ...]] = {
    "standard": ("webhook-id",),
    "github": ("x-github-delivery",),
    "none": ("webhook-id", "idempotency-key"),
}
_ID_FIELDS: Mapping[str, str] = {"stripe": "id", "slack": "event_id"}


def read_payload(scheme: str, call: Call) -> Any:
    """Return the body: JSON as it says, a form as its fields, text as it is."""
    kind = call.headers.get("content-type", "").partition(";")[0].strip().lower()
    if call.headers.get("content-encoding", "identity").lower() != "identity":
        raise Problem(415, "Send the body as it is: one that is compressed is not taken.")
    if not call.body:
        return None
    if kind == "application/json" or kind.endswith("+json"):
        return read_json(call.body)
    if kind == FORM:
        return _read_form(scheme, call.body)
    if kind.startswith("text/"):
        return _text(call.body)
    if not kind:
        return _read_unnamed(call.body)
    raise Problem(415, f"A body of the type {kind[:80]!r} cannot be waited for. Send JSON, a form, or text.")


def known_by(scheme: str, call: Call, payload: Any, by: str = "id") -> str:
    """Return what a call is known by: its own id, or else a digest of its body. The same again is the same call."""
    if by == "id":
        found: list[Any] = [call.headers[name] for name in _ID_HEADERS.get(scheme, ()) if call.headers.get(name)]
        if scheme in _ID_FIELDS and isinstance(payload, dict):
            found.append(payload.get(_ID_FIELDS[scheme]))
        if found and isinstance(found[0], str) and found[0]:
            return found[0]
    return f"sha256:{sha256(call.body).hexdigest()}"


def read_json(body: bytes) -> Any:
    """Read JSON, and nothing that only looks like it."""
    try:
        return json.loads(_text(body), parse_constant=_no_number)
    except (ValueError, RecursionError) as problem:
        raise Problem(400, f"The body is no JSON: {str(problem)[:200]}.") from problem


def _read_form(scheme: str, body: bytes) -> Any:
    fields = read_fields(body)
    wrapped = fields.get("payload")
    if scheme in _WRAPPED and isinstance(wrapped, str):
        return read_json(wrapped.encode())
    return fields


def read_fields(body: bytes) -> dict[str, str | list[str]]:
    """Read the fields of a form; one that comes several times is a list."""
    try:
        pairs = parse_qsl(_text(body), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS)
    except ValueError as problem:
        raise Problem(400, f"The body is no form: {problem}.") from problem
    fields: dict[str, str | list[str]] = {}
    for name, value in pairs:
        before = fields.get(name)
        if before is None:
            fields[name] = value
        else:
            fields[name] = [*before, value] if isinstance(before, list) else [before, value]
    return fields


def _read_unnamed(body: bytes) -> Any:
    """Read a body whose type nobody has said: JSON if it is, else text."""
    text = _text(body)
    try:
        return json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return text


def _text(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise Problem(400, f"The body is no text in UTF-8: {problem.reason} at byte {problem.start}.") from problem


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number of JSON")
