"""What an answer to an approval looks like."""

from __future__ import annotations

from typing import Any

from bide.errors import InterruptError
from bide.waits.conditions import Approval
from bide.waits.stored import Plain, from_plain

_TABLES = ("$defs", "definitions")


def answer_schema(approval: Approval | Plain) -> dict[str, Any]:
    """Return the JSON Schema of the answers to an approval, made so that a form can be drawn from it.

    Without a form, an answer is one of the options: `"approve"`. With a form it is an object of a `decision`, one of
    the options, and the filled-in `form`, which the first option needs and the others may leave out: whoever rejects
    has nothing to fill in. With a form and no options, it is the filled-in form itself.
    """
    condition = approval if isinstance(approval, Approval) else from_plain(approval)
    if not isinstance(condition, Approval):
        raise InterruptError(f"answer_schema() is about approvals, and this is of the kind {condition.kind!r}.")
    decision = {"type": "string", "enum": list(condition.options)}
    if condition.form is None:
        return {**_titled(condition), **decision}
    if not condition.options:
        return {**_titled(condition), **condition.form}
    # Definitions are only found at the top, wherever in the schema they are used.
    tables = {name: condition.form[name] for name in _TABLES if name in condition.form}
    form = {keyword: argument for keyword, argument in condition.form.items() if keyword not in _TABLES}
    return {
        **_titled(condition),
        "type": "object",
        "properties": {"decision": decision, "form": form},
        "required": ["decision"],
        "additionalProperties": False,
        "if": {"properties": {"decision": {"const": condition.options[0]}}},
        "then": {"required": ["form"]},
        **tables,
    }


def _titled(condition: Approval) -> dict[str, Any]:
    return {"title": condition.title} if condition.title else {}
