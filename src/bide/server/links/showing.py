"""The pages of a link, and the headers that keep its address a secret."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from fastapi import Request
from fastapi.responses import HTMLResponse

from bide.server.links.looking import Gone, Seen
from bide.server.links.offers import ANSWER, CONTINUE, RESPOND
from bide.server.pages.fields import Field, filled_in, with_value
from bide.server.pages.look import bare_page
from bide.server.pages.words import left, stamp
from bide.shape.shown import jsonable

if TYPE_CHECKING:
    from bide.server.links.deciding import Decided

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "X-Robots-Tag": "noindex, nofollow",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Vary": "Accept",
}
_BAD = ("reject", "decline", "deny", "no", "refuse", "cancel")
_WORDS = {ANSWER: "Send", CONTINUE: "Continue"}
_KNOWN = ("question", "title", "message", "prompt", "description")
"""Where a question that is an object says what it asks."""


def link_page(
    request: Request,
    seen: Seen,
    *,
    typed: Mapping[str, str] | None = None,
    wrong: Mapping[str, str] | None = None,
    problem: str | None = None,
    status: int = 200,
) -> HTMLResponse:
    """Show what is to be decided, with a button for each action; again with what was typed, if that did not fit."""
    fields = _fields(seen, typed, wrong or {})
    problem = problem or ("Something that you have filled in cannot be read." if wrong else None)
    return _page(
        request,
        "link.html",
        status,
        seen=seen,
        heading=heading_of(seen),
        details=details_of(seen),
        fields=fields,
        buttons=[_button(seen, action, number) for number, action in enumerate(seen.actions)],
        comment=(typed or {}).get("comment", ""),
        comment_word="Your response" if RESPOND in seen.actions else "Comment (optional)",
        problem=problem,
        deadline=None if seen.wait.deadline is None else (seen.wait.deadline, left(seen.wait.deadline, seen.now)),
    )


def done_page(
    request: Request, seen: Seen, sentence: str, *, status: int = 200, decided: Decided | None = None
) -> HTMLResponse:
    """Say that it is decided, by whom and when."""
    is_own = decided is not None and decided.settled is None
    return _page(
        request,
        "link_done.html",
        status,
        heading=heading_of(seen),
        sentence=sentence,
        title="Decided" if is_own else "Already settled",
        is_own=is_own,
    )


def gone_page(request: Request, gone: Gone) -> HTMLResponse:
    """Say why there is nothing to decide here."""
    titles = {404: "Not a link of ours", 410: "Not good any more", 503: "Try again"}
    title = titles.get(gone.status, "That did not work")
    return _page(request, "link_gone.html", gone.status, title=title, sentence=gone.sentence)


def _page(request: Request, template: str, status: int, **values: Any) -> HTMLResponse:
    made = bare_page(request, template, status=status, stamp=stamp, **values)
    for name, value in HEADERS.items():
        made.headers[name] = value
    return made


def _fields(seen: Seen, typed: Mapping[str, str] | None, wrong: Mapping[str, str]) -> tuple[Field, ...]:
    if typed is None:
        return seen.offer.fields
    again = filled_in(seen.offer.fields, typed)
    return tuple(with_value(one, one.value, [wrong[one.name]] if one.name in wrong else ()) for one in again)


def _button(seen: Seen, action: str, number: int) -> dict[str, Any]:
    """Return a button: the first is the one that most people want, unless it refuses."""
    look = "bad" if action.lower() in _BAD else "good" if number == 0 else "plain"
    label = _WORDS.get(action) or action.replace("_", " ").capitalize()
    return {"action": action, "label": label, "look": look, "needs_fields": seen.offer.needs_fields(action)}


# ── What is asked ──────────────────────────────────────────────────────────────────────────────────────────────────


def heading_of(seen: Seen) -> str:
    """Return what is asked, in one line."""
    title, question = seen.offer.title or seen.wait.title, seen.wait.question
    if title:
        return title
    if seen.offer.proposal is not None:
        names = ", ".join(dict.fromkeys(action.name for action in seen.offer.proposal.actions))
        return f"May it do this: {names}?"
    if isinstance(question, str):
        return question
    said = (
        [question[name] for name in _KNOWN if isinstance(question.get(name), str)] if isinstance(question, dict) else []
    )
    return said[0] if said else "Your decision is needed"


def question_of(seen: Seen) -> Any:
    """Return the question itself. For whom and for what else a thread waits is no business of whoever has a link."""
    question = jsonable(seen.wait.question)
    if not isinstance(question, dict) or seen.wait.condition is None:
        return question
    return {name: value for name, value in question.items() if name != "waiting_for"} or None


def details_of(seen: Seen) -> list[tuple[str, Any]]:
    """Return what else there is to know, by name: of a proposal, what it would do with what."""
    proposal, question = seen.offer.proposal, question_of(seen)
    if proposal is not None:
        parts = [(action.name, {"": action.description, **action.args}) for action in proposal.actions]
        return [
            (f"{name}: {key}" if key else name, value) for name, said in parts for key, value in said.items() if value
        ]
    if isinstance(question, dict):
        heading = heading_of(seen)
        return [(str(key).replace("_", " "), value) for key, value in question.items() if value != heading]
    if question is None or question == heading_of(seen):
        return []
    return [("", question)]


def machine_view(seen: Seen) -> dict[str, Any]:
    """Return the same for a program."""
    wait, settled = seen.wait, seen.settled
    said: dict[str, Any] = {
        "status": "open" if settled is None else settled.status,
        "wait_id": wait.id,
        "title": heading_of(seen),
        "question": question_of(seen),
        "actions": list(seen.actions),
        "schema": None if seen.offer.schema is None else dict(seen.offer.schema),
        "recipient": seen.link.recipient,
        "deadline": wait.deadline and wait.deadline.isoformat(),
    }
    if settled is not None:
        said |= {"by": settled.by, "at": settled.at and settled.at.isoformat(), "action": settled.action}
    return said
