"""What somebody has decided, in whichever of the known forms it comes: one small value.

Bide's own form, plain words, Agent Inbox, LangChain's human-in-the-loop middleware, AG-UI, MCP and the AI SDK each
write the same few decisions down in another way.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

Verb = Literal["approve", "edit", "reject", "respond", "choose"]

_VERBS: Mapping[str, Verb] = {
    "approve": "approve",
    "approved": "approve",
    "accept": "approve",
    "accepted": "approve",
    "reject": "reject",
    "rejected": "reject",
    "ignore": "reject",
    "decline": "reject",
    "deny": "reject",
    "cancel": "reject",
    "cancelled": "reject",
    "edit": "edit",
    "respond": "respond",
    "response": "respond",
}
_APPROVING = ("approve", "accept", "yes", "ok")
_REJECTING = ("reject", "decline", "deny", "no", "ignore", "cancel")
_REASONS = ("message", "reason", "comment", "user_notes", "notes", "note")
"""Under which names clients send, and forms ask, why somebody has decided so."""
LONGEST_COMMENT = 4000
"""How many characters may be said beside a decision."""
_ENVELOPE = frozenset(["interruptId", "status", "payload", "metadata"])


class Decision(NamedTuple):
    """What somebody has decided."""

    verb: Verb
    word: str = ""
    """The word that was used: of `choose`, the option itself."""
    args: Mapping[str, Any] | None = None
    """What was filled in or edited."""
    message: str | None = None


# ── Reading ────────────────────────────────────────────────────────────────────────────────────────────────────────


def decision_of(given: Any) -> Decision | None:
    """Read a decision in any of the known forms; None when it is none of them."""
    if isinstance(given, bool):
        return Decision("approve" if given else "reject")
    if isinstance(given, str):
        return Decision(_VERBS.get(given.strip().lower(), "choose"), given.strip())
    if isinstance(given, list):
        return decision_of(given[0]) if len(given) == 1 else None
    return _in_object(given) if isinstance(given, Mapping) else None


def _in_object(given: Mapping[str, Any]) -> Decision | None:
    if is_envelope(given):
        return Decision("reject") if given.get("status") == "cancelled" else decision_of(given.get("payload"))
    if "decisions" in given:
        decisions = given["decisions"]
        return decision_of(decisions) if isinstance(decisions, list) else None
    if isinstance(given.get("approved"), bool):
        return Decision("approve" if given["approved"] else "reject", "", _form_in(given), _reason_in(given))
    word = next((given[name] for name in ("decision", "type", "action") if isinstance(given.get(name), str)), None)
    if word is None:
        return None
    return Decision(_VERBS.get(word.strip().lower(), "choose"), word.strip(), _form_in(given), _reason_in(given))


def is_envelope(given: Any) -> bool:
    """Whether this is an answer as AG-UI sends it, with the answer itself inside."""
    return isinstance(given, Mapping) and "interruptId" in given and _ENVELOPE.issuperset(given)


def _form_in(given: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Find what was filled in: in `form`, `args.args` (Agent Inbox), `edited_action.args` (LangChain) or `content`."""
    edited = given.get("edited_action", given.get("args"))
    if isinstance(edited, Mapping):
        inner = edited.get("args", edited.get("arguments"))
        return inner if isinstance(inner, Mapping) else edited
    found = given.get("form", given.get("content"))
    return found if isinstance(found, Mapping) else None


def _reason_in(given: Mapping[str, Any]) -> str | None:
    if isinstance(given.get("args"), str):
        return str(given["args"])
    return next((str(given[name]) for name in _REASONS if isinstance(given.get(name), str)), None)


# ── Writing it as an approval takes it ─────────────────────────────────────────────────────────────────────────────


class Choices(NamedTuple):
    """What an approval offers."""

    options: tuple[str, ...]
    form: Mapping[str, Any] | None
    proposed: Mapping[str, Any]
    """What the form would hold if nobody changed it."""

    @property
    def approving(self) -> str | None:
        """The option that lets it happen."""
        return _named(self.options, _APPROVING) or (self.options[0] if self.options else None)

    @property
    def rejecting(self) -> str | None:
        """The option that stops it, if there is one that surely does."""
        found = _named(self.options, _REJECTING)
        if found is None and len(self.options) == 2 and self.approving == self.options[0]:
            return self.options[1]
        return found

    def values(self, decision: Decision) -> list[Any]:
        """Return what the decision may mean here, likeliest first; nothing when it means nothing here."""
        if not self.options:
            return [self._filled(decision.args)] if decision.verb in ("approve", "edit") else []
        # An option's own name is meant as such, whatever else the word may mean.
        option = _named(self.options, (decision.word,)) or self._option(decision)
        if option is None:
            return []
        if self.form is None:
            return [] if decision.verb == "edit" else [option]
        return [{"decision": option, "form": form} for form in self._forms(decision, option)] + [{"decision": option}]

    def _option(self, decision: Decision) -> str | None:
        if decision.verb in ("approve", "edit"):
            return self.approving
        if decision.verb == "respond":
            return _named(self.options, (decision.message or "",)) or self.rejecting
        return self.rejecting if decision.verb == "reject" else None

    def _forms(self, decision: Decision, option: str) -> list[dict[str, Any]]:
        forms = []
        if decision.args is not None:
            forms.append(self._filled(decision.args))
        elif option == self.options[0]:
            forms.append(self._filled(None))
        if decision.message is not None:
            asked = [name for name in _REASONS if name in self._properties()]
            # Alone if that will do; else beside what was proposed, which the form may need.
            begun = (*forms, {}, dict(self.proposed))
            forms = [{**form, name: decision.message} for form in begun for name in asked] + forms
        return forms

    def _filled(self, given: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return a form as it was filled in; without that, as it was proposed."""
        if given is None:
            return dict(self.proposed)
        return {name: _read(value, self._properties().get(name)) for name, value in given.items()}

    def _properties(self) -> Mapping[str, Any]:
        found = (self.form or {}).get("properties")
        return found if isinstance(found, Mapping) else {}


def _named(options: tuple[str, ...], names: tuple[str, ...]) -> str | None:
    known = {option.casefold(): option for option in reversed(options)}
    return next((known[name.casefold()] for name in names if name.casefold() in known), None)


def _read(value: Any, schema: Any) -> Any:
    """Read what a client has made a text of, where the form wants something else."""
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    if not isinstance(value, str) or kind not in ("integer", "number", "boolean", "array", "object", "null"):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value
