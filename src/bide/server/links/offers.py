"""What can be decided about a wait by somebody who has only a page in front of them. Pure.

An action is the name of a button, and what a link may be good for: an option of an approval, what an agent's proposal
allows, `yes` and `no`, or `answer` (something is filled in) and `continue` (the thread goes on, and nothing is said).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bide.runtime.answers import leaf_for_people
from bide.runtime.views import Wait
from bide.server.pages.fields import Field, field_of, fields_of, is_absent, properties_of, read_field, read_fields
from bide.server.pages.proposals import Decision, Proposal, answer_of, proposal_in
from bide.store.queue_rows import WaitView

ANY = "*"
ANSWER, CONTINUE, EDIT, RESPOND = "answer", "continue", "edit", "respond"
FIELD, ONE = "field.", "value"
_YES_OR_NO = {"yes": True, "no": False}
_THEIR_WORDS = {"accept": "approve", "response": "respond"}

Kind = Literal["option", "decision", "form", "value", "truth", "proposal", "nothing"]


@dataclass(frozen=True, slots=True)
class Offer:
    """What can be decided, and how a decision becomes an answer."""

    kind: Kind
    options: tuple[str, ...]
    fields: tuple[Field, ...] = ()
    title: str = ""
    schema: Mapping[str, Any] | None = None
    """What is to be filled in."""
    number: int | None = None
    """The leaf that it is about."""
    proposal: Proposal | None = None
    is_object: bool = False
    """Whether the fields are the parts of an object, or the one field is the value itself."""

    def shown(self, actions: tuple[str, ...]) -> tuple[str, ...]:
        """Return the buttons that a link with these actions shows; what needs an editor has none."""
        return tuple(one for one in self.options if (ANY in actions or one in actions) and one != EDIT)

    def needs_fields(self, action: str) -> bool:
        """Whether the fields must be filled in for this action: whoever rejects has nothing to fill in."""
        return bool(self.fields) and (self.kind != "decision" or action == self.options[0])

    def answer(self, action: str, form: Any = None, message: str = "") -> Any:
        """Return what the thread is told; `form` is what was filled in, if anything was."""
        return _ANSWERS[self.kind](self, action, form, message)

    def action_of(self, value: Any) -> str | None:
        """Return which action an answer is; None when it is none that can be named."""
        if self.kind == "option":
            return value if isinstance(value, str) else None
        if self.kind == "decision":
            decision = value.get("decision") if isinstance(value, Mapping) else None
            return decision if isinstance(decision, str) else None
        if self.kind == "truth":
            return next((name for name, truth in _YES_OR_NO.items() if value is truth), None)
        return _proposed(value) if self.kind == "proposal" else self.options[0]

    def read(self, action: str, typed: Mapping[str, str]) -> tuple[Any, dict[str, str]]:
        """Return what was typed into the fields, None if nothing was, and what of it cannot be read."""
        if self.is_object:
            read, wrong = read_fields(self.fields, typed, FIELD)
            is_blank = not any(typed.get(field.name, "").strip() for field in self.fields)
            return (None if is_blank and not self.needs_fields(action) else read), wrong
        if not self.fields:
            return None, {}
        try:
            value = read_field(self.fields[0], typed)
        except ValueError as problem:
            return None, {self.fields[0].name: str(problem)}
        return (None if is_absent(value) else value), {}


_ANSWERS: Mapping[Kind, Callable[[Offer, str, Any, str], Any]] = {
    "option": lambda offer, action, form, message: action,
    "decision": lambda offer, action, form, message: (
        {"decision": action} if form is None else {"decision": action, "form": form}
    ),
    "form": lambda offer, action, form, message: form,
    "value": lambda offer, action, form, message: form,
    "truth": lambda offer, action, form, message: _YES_OR_NO[action],
    "proposal": lambda offer, action, form, message: _decided(offer, action, message),
    "nothing": lambda offer, action, form, message: None,
}


def offer_of(row: WaitView, wait: Wait, label: str = "") -> Offer:
    """Return what can be decided about a wait, or about the part of it that `label` names."""
    if row.kind in ("before", "after"):
        return Offer("nothing", (CONTINUE,))
    if row.needs.condition is None:
        return _of_question(wait.question, wait.schema)
    leaf = leaf_for_people(row, label or None)
    if leaf is None:
        return _of_question(None, wait.schema)
    if leaf.kind == "approval":
        return _of_approval(leaf.plain, leaf.number)
    return Offer("value", (ANSWER,), (_anything(),), number=leaf.number)


def _of_approval(plain: Mapping[str, Any], number: int) -> Offer:
    options, form, title = tuple(plain.get("options") or ()), plain.get("form"), str(plain.get("title") or "")
    if form is None:
        return Offer("option", options, title=title, number=number)
    kind: Kind = "decision" if options else "form"
    return _with_fields(Offer(kind, options or (ANSWER,), title=title, schema=form, number=number))


def _of_question(question: Any, schema: Mapping[str, Any] | None) -> Offer:
    proposal = proposal_in(question) if schema is None else None
    if proposal is not None:
        allowed = [set(action.allowed) for action in proposal.actions]
        options = tuple(one for one in proposal.actions[0].allowed if all(one in each for each in allowed))
        return Offer("proposal", options, proposal=proposal)
    if schema is None:
        return Offer("value", (ANSWER,), (_anything(),))
    options = schema.get("enum") or ()
    if options and all(isinstance(one, str) for one in options):
        return Offer("option", tuple(options))
    if schema.get("type") == "boolean":
        return Offer("truth", tuple(_YES_OR_NO))
    return _with_fields(Offer("value", (ANSWER,), schema=schema))


def _with_fields(offer: Offer) -> Offer:
    from dataclasses import replace

    assert offer.schema is not None, "there is something to fill in"
    if properties_of(offer.schema):
        return replace(offer, fields=fields_of(offer.schema, prefix=FIELD), is_object=True)
    return replace(offer, fields=(field_of(ONE, "Answer", offer.schema, offer.schema),))


def _anything() -> Field:
    return Field(ONE, "Answer", "long", is_required=True)


def _decided(offer: Offer, action: str, message: str) -> Any:
    assert offer.proposal is not None, "it is about a proposal"
    return answer_of(offer.proposal, [Decision(action, message=message) for _ in offer.proposal.actions])


def _proposed(value: Any) -> str | None:
    """Return the one decision that is made about all actions of a proposal."""
    decisions = value.get("decisions") if isinstance(value, Mapping) else value
    if not isinstance(decisions, list) or not all(isinstance(one, Mapping) for one in decisions):
        return None
    types = {str(one.get("type")) for one in decisions}
    found = types.pop() if len(types) == 1 else None
    return None if found is None else _THEIR_WORDS.get(found, found)
