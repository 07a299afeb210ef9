"""Actions that an agent proposes, in the two forms in which agents for LangChain ask, and the answers they expect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

DECISIONS = ("approve", "edit", "reject", "respond")

_ALLOWED = {"allow_accept": "approve", "allow_edit": "edit", "allow_respond": "respond", "allow_ignore": "ignore"}
_INBOX_WORDS = {"approve": "accept", "edit": "edit", "respond": "response", "ignore": "ignore"}


@dataclass(frozen=True, slots=True)
class Action:
    """A call that waits for somebody's word."""

    name: str
    args: Mapping[str, Any]
    description: str
    allowed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Proposal:
    """What an agent wants to do. `form` says how it asked: "decisions" (LangChain), or "inbox" (Agent Inbox)."""

    form: str
    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """What somebody says to one action."""

    type: str
    args: Mapping[str, Any] | None = None
    message: str = ""


def proposal_in(question: Any) -> Proposal | None:
    """Find the actions that a question is about; None when it is about something else."""
    asked = question[0] if isinstance(question, list) and len(question) == 1 else question
    if not isinstance(asked, Mapping):
        return None
    several = asked.get("action_requests")
    if isinstance(several, list) and several and all(isinstance(one, Mapping) for one in several):
        return Proposal("decisions", tuple(_action(one, _allowed_for(one, asked)) for one in several))
    if isinstance(asked.get("action_request"), Mapping):
        config = asked.get("config")
        allowed = tuple(word for key, word in _ALLOWED.items() if isinstance(config, Mapping) and config.get(key))
        action = _action({"description": asked.get("description"), **asked["action_request"]}, allowed or DECISIONS[:1])
        return Proposal("inbox", (action,))
    return None


def _action(asked: Mapping[str, Any], allowed: tuple[str, ...]) -> Action:
    args: Mapping[str, Any] = next(
        (asked[key] for key in ("args", "arguments") if isinstance(asked.get(key), Mapping)), {}
    )
    name = asked.get("name") or asked.get("action") or "an action"
    return Action(str(name), args, str(asked.get("description") or ""), allowed)


def _allowed_for(asked: Mapping[str, Any], question: Mapping[str, Any]) -> tuple[str, ...]:
    name = asked.get("name") or asked.get("action")
    for review in question.get("review_configs") or ():
        if isinstance(review, Mapping) and review.get("action_name") == name:
            said = review.get("allowed_decisions")
            if isinstance(said, list):
                return tuple(one for one in DECISIONS if one in said) or DECISIONS[:3]
    return DECISIONS[:3]


def answer_of(proposal: Proposal, decisions: Sequence[Decision]) -> Any:
    """Return what the agent expects to hear."""
    pairs = list(zip(proposal.actions, decisions, strict=True))
    if proposal.form == "inbox":
        return [_for_inbox(action, decision) for action, decision in pairs]
    return {"decisions": [_for_langchain(action, decision) for action, decision in pairs]}


def _for_langchain(action: Action, decision: Decision) -> dict[str, Any]:
    if decision.type == "edit":
        return {"type": "edit", "edited_action": {"name": action.name, "args": dict(decision.args or {})}}
    said = {"message": decision.message} if decision.message or decision.type == "respond" else {}
    return {"type": decision.type, **said}


def _for_inbox(action: Action, decision: Decision) -> dict[str, Any]:
    args: Any = None
    if decision.type == "edit":
        args = {"action": action.name, "args": dict(decision.args or {})}
    elif decision.type == "respond":
        args = decision.message
    return {"type": _INBOX_WORDS.get(decision.type, decision.type), "args": args}
