"""Human-in-the-loop payloads: a wait as other people's inboxes show it, and their answers as its node expects them.

Outward, an approval carries the keys of Agent Inbox and of LangChain's middleware together, beside what its author
wrote. Inward, an answer in any of the known forms becomes the one that the wait asks for. Nothing is guessed: what
cannot be read as a decision is handed on as it is, and refused where answers are checked. A plain `interrupt()` gets
what was sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bide.clock import iso
from bide.errors import InvalidAnswerError
from bide.runtime.views import Wait
from bide.server.decisions import Choices, decision_of, is_envelope
from bide.shape import problems
from bide.waits.answers import answer_schema
from bide.waits.leaves import leaves

# ── Outward ────────────────────────────────────────────────────────────────────────────────────────────────────────


def interrupt_of(wait: Wait) -> dict[str, Any]:
    """Return a wait as clients know interrupts: `id`, `value`, `response_schema`, and what is ours beside that."""
    approval = _approval_of(wait, None)
    schema = wait.schema if approval is None else answer_schema(approval)
    told = {"id": wait.id, "value": outward(wait)}
    if schema:
        told["response_schema"] = schema
    deadline = None if wait.deadline is None else iso(int(wait.deadline.timestamp() * 1000))
    ours = {"kind": wait.kind, "title": wait.title, "waiting_for": wait.waiting_for, "deadline": deadline}
    return {**told, "wait": {**ours, "node": wait.node, "assignees": list(wait.assignees)}}


def outward(wait: Wait) -> Any:
    """Return what a wait asks, as other people's inboxes can show it; a plain question is left as it is."""
    approval = _approval_of(wait, None)
    if approval is None:
        return wait.question
    choices = _choices(approval, wait)
    own = dict(wait.question) if isinstance(wait.question, Mapping) else {"value": wait.question}
    action = wait.title or str(approval.get("title") or "") or wait.node
    args = dict(choices.proposed) if choices.form is not None else _shown_args(own)
    said = (own.get(name) for name in ("description", "message", "question"))
    description = next((text for text in said if isinstance(text, str)), None) or wait.waiting_for
    decisions = _allowed(choices)
    review: dict[str, Any] = {"action_name": action, "allowed_decisions": decisions}
    if choices.form is not None:
        review["args_schema"] = dict(choices.form)
    return {
        # Agent Inbox
        "action_request": {"action": action, "args": args},
        "config": {
            "allow_accept": "approve" in decisions,
            "allow_edit": "edit" in decisions,
            "allow_respond": "respond" in decisions or "reject" in decisions,
            "allow_ignore": "reject" in decisions,
        },
        "description": description,
        # LangChain; Agent Inbox reads these too, and calls the arguments otherwise.
        "action_requests": [{"name": action, "args": args, "arguments": args, "description": description}],
        "review_configs": [review],
        **own,
    }


def _allowed(choices: Choices) -> list[str]:
    found = ["approve"] if choices.approving is not None else []
    if choices.form is not None:
        found.append("edit")
    if choices.rejecting is not None:
        found.append("reject")
    if set(choices.options) - {choices.approving, choices.rejecting}:
        found.append("respond")
    return found


def _shown_args(own: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in own.items() if name != "waiting_for"}


def _approval_of(wait: Wait, label: str | None) -> Mapping[str, Any] | None:
    """Find the decision that an answer is for: the one that is named, or the only one."""
    if wait.condition is None:
        return None
    every = [leaf for leaf in leaves(wait.condition, 0) if leaf.kind == "approval"]
    found = every if label is None else [leaf for leaf in every if leaf.label == label]
    return found[0].plain if len(found) == 1 else None


def _choices(approval: Mapping[str, Any], wait: Wait) -> Choices:
    form = approval.get("form")
    return Choices(tuple(approval.get("options") or ()), form, _proposed(form, wait.question))


def _proposed(form: Mapping[str, Any] | None, question: Any) -> dict[str, Any]:
    """Return what a form would hold if nobody changed it: what the question says, or the form's own defaults."""
    fields = (form or {}).get("properties")
    own = question if isinstance(question, Mapping) else {}
    told: dict[str, Any] = {}
    for name, schema in fields.items() if isinstance(fields, Mapping) else ():
        if name in own:
            told[name] = own[name]
        elif isinstance(schema, Mapping) and "default" in schema:
            told[name] = schema["default"]
    return told


# ── Inward ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Read(NamedTuple):
    """An answer as its wait asks for it, and the words that came with it for which it has no place."""

    value: Any
    comment: str | None = None


def read_answer(wait: Wait, given: Any, leaf: str | None = None) -> Read:
    """Read an answer, whichever client has sent it."""
    approval = _approval_of(wait, leaf)
    if approval is None:
        return Read(given if leaf is not None else _to_question(wait, given))
    schema = answer_schema(approval)
    if not problems(given, schema):
        return Read(given)
    decision = decision_of(given)
    found = [] if decision is None else _choices(approval, wait).values(decision)
    value = next((value for value in found if not problems(value, schema)), found[0] if found else given)
    message = decision.message if decision is not None and found else None
    return Read(value, message if message and not _says(value, message) else None)


def _says(value: Any, message: str) -> bool:
    """Whether an answer holds these words already: as the option that was chosen, or in its form."""
    form = value.get("form") if isinstance(value, Mapping) else None
    return value == message or (isinstance(form, Mapping) and message in form.values())


def read_resume(waits: Sequence[Wait], given: Any) -> tuple[Any, dict[str, str]]:
    """Read what a client resumes a thread with, one answer or several by the ids of their waits; return that, and the
    words that came with each, by the ids, too."""
    known = {wait.id: wait for wait in waits}
    if isinstance(given, list) and given and all(map(is_envelope, given)):
        given = {str(one["interruptId"]): one for one in given}
    if isinstance(given, Mapping) and given and all(key in known for key in given):
        read = {key: read_answer(known[key], value) for key, value in given.items()}
        return {key: one.value for key, one in read.items()}, _comments(read)
    if len(waits) != 1:
        return given, {}
    only = read_answer(waits[0], given)
    return only.value, _comments({waits[0].id: only})


def _comments(read: Mapping[str, Read]) -> dict[str, str]:
    return {key: one.comment for key, one in read.items() if one.comment is not None}


def _to_question(wait: Wait, given: Any) -> Any:
    if is_envelope(given):
        if given.get("status") == "cancelled":
            raise InvalidAnswerError(
                f"Wait {wait.id} asks for an answer, and this says that there is none. To withdraw the question, "
                f"cancel the wait. Nothing was written; it is still open."
            )
        given = given.get("payload")
    question = wait.question[0] if isinstance(wait.question, list) and len(wait.question) == 1 else wait.question
    if isinstance(question, Mapping):
        if isinstance(question.get("action_requests"), list) and isinstance(given, list):
            return _as_langchain(question, given)
        if "action_request" in question and isinstance(given, Mapping) and isinstance(given.get("decisions"), list):
            return [_as_inbox(one) for one in given["decisions"]]
    if wait.schema is not None and problems(given, wait.schema):
        return next((one for one in _inside(given) if not problems(one, wait.schema)), given)
    return given


def _inside(given: Any) -> list[Any]:
    """Return what an inbox may have wrapped up: its own form for an answer in words, or for one that was edited."""
    if isinstance(given, list) and len(given) == 1 and isinstance(given[0], Mapping):
        args = given[0].get("args")
        return [args["args"], args] if isinstance(args, Mapping) and "args" in args else [args]
    return []


def _as_langchain(question: Mapping[str, Any], given: list[Any]) -> Any:
    """Answer LangChain's middleware in its own form, where Agent Inbox has answered in its."""
    if len(given) != len(question["action_requests"]) or not all(isinstance(one, Mapping) for one in given):
        return given
    reviews = [review for review in question.get("review_configs") or () if isinstance(review, Mapping)]
    may_respond = any("respond" in (review.get("allowed_decisions") or ()) for review in reviews)
    return {"decisions": [_one_for_langchain(one, may_respond) for one in given]}


def _one_for_langchain(given: Mapping[str, Any], may_respond: bool) -> Mapping[str, Any]:
    args = given.get("args")
    match given.get("type"):
        case "accept":
            return {"type": "approve"}
        case "edit" if isinstance(args, Mapping):
            return {"type": "edit", "edited_action": {"name": args.get("action"), "args": args.get("args")}}
        case "response":
            return {"type": "respond" if may_respond else "reject", "message": args}
        case "ignore":
            return {"type": "reject"}
    return given


def _as_inbox(given: Any) -> Any:
    """Answer an author who asked in Agent Inbox's form, where somebody has answered in LangChain's."""
    if not isinstance(given, Mapping):
        return given
    match given.get("type"):
        case "approve":
            return {"type": "accept", "args": None}
        case "edit":
            edited = given.get("edited_action") or {}
            return {"type": "edit", "args": {"action": edited.get("name"), "args": edited.get("args")}}
        case "reject" | "respond" if given.get("message") is not None:
            return {"type": "response", "args": given["message"]}
        case "reject":
            return {"type": "ignore", "args": None}
    return given
