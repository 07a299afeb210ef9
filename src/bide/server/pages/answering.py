"""What somebody typed, as the answer that a wait asks for; or what does not fit, beside what was typed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from bide.server.decisions import LONGEST_COMMENT
from bide.server.pages.asks import FIELD, PAYLOAD, Ask, Button
from bide.server.pages.fields import (
    Field,
    FieldProblem,
    Typed,
    filled_in,
    is_absent,
    read_field,
    read_fields,
    read_json,
    with_value,
)
from bide.server.pages.proposals import Decision, answer_of
from bide.server.problems import Problem
from bide.shape import misfits


class Answer(NamedTuple):
    """What is to be said, and to which part of the wait."""

    value: Any
    leaf: str | None
    comment: str | None = None


class Refused(Exception):
    """What was typed does not fit; it is shown again, with what is wrong."""

    def __init__(self, general: Sequence[str] = (), by_field: Mapping[str, Sequence[str]] | None = None) -> None:
        super().__init__("; ".join(general) or "see the fields")
        self.general = tuple(general)
        self.by_field = dict(by_field or {})


def chosen_ask(asks: Iterable[Ask], typed: Typed) -> Ask:
    """Return the way to answer that a form was made of."""
    name = typed.get("how", "")
    found = next((ask for ask in asks if ask.name == name), None)
    if found is None:
        raise Problem(422, "The question has changed since this form was shown. Look at it again, and then decide.")
    return found


def read_answer(ask: Ask, typed: Typed) -> Answer:
    """Return the answer that a form holds, or raise `Refused`."""
    value = _READERS[ask.how.partition("-")[0]](ask, typed)
    found = misfits(value, dict(ask.schema)) if ask.schema is not None else []
    if found:
        raise _told(ask, found)
    return Answer(value, typed.get("part") or ask.leaf or None, _comment(ask, typed))


def _comment(ask: Ask, typed: Typed) -> str | None:
    if ask.comment is None:
        return None
    said = typed.get(ask.comment.name, "").replace("\r\n", "\n").strip()
    if len(said) > LONGEST_COMMENT:
        raise Refused(by_field={ask.comment.name: [f"may have {LONGEST_COMMENT} characters"]})
    return said or None


def shown_again(ask: Ask, typed: Typed, refused: Refused) -> Ask:
    """Return the form as it was filled in, with what is wrong beside it."""
    asked = ask.fields if ask.comment is None else (*ask.fields, ask.comment)
    names = {field.name for field in asked}
    fields = tuple(
        with_value(field, field.value, refused.by_field.get(field.name, ())) for field in filled_in(asked, typed)
    )
    others = [text for name, texts in refused.by_field.items() if name not in names for text in texts]
    own, beside = (fields, None) if ask.comment is None else (fields[:-1], fields[-1])
    return replace(ask, fields=own, comment=beside, problems=(*refused.general, *others), is_open=True)


def _told(ask: Ask, found: Sequence[Any]) -> Refused:
    """Put each problem beside the field that it is about."""
    general: list[str] = []
    by_field: dict[str, list[str]] = {}
    names = {field.name for field in ask.fields}
    for problem in found:
        path = problem.path[1:] if problem.path[:1] == ("form",) else problem.path
        name = f"{FIELD}{path[0]}" if path else f"{FIELD}value"
        if name in names:
            got = f", got {problem.got}" if problem.got else ""
            by_field.setdefault(name, []).append(f"{problem.text}{got}")
        else:
            general.append(str(problem))
    return Refused(general, by_field)


# ── One reader for each kind of form ───────────────────────────────────────────────────────────────────────────────


def _go(ask: Ask, typed: Typed) -> Any:
    return None


def _decide(ask: Ask, typed: Typed) -> Any:
    button = _pressed(ask, typed)
    if not ask.fields:
        return button.answer
    form = _object(ask, typed) if ask.fields[0].name != f"{FIELD}value" else _single(ask, typed)
    is_first = button.value == ask.buttons[0].value
    # Whoever rejects has nothing to fill in; a tick that is not there is nothing either.
    is_empty = form in (None, {}) or (isinstance(form, dict) and not any(form.values()))
    return {"decision": button.answer} if is_empty and not is_first else {"decision": button.answer, "form": form}


def _pressed(ask: Ask, typed: Typed) -> Button:
    said = typed.get("decision", "")
    found = next((button for button in ask.buttons if button.value == said), None)
    if found is None:
        raise Refused([f"Choose one of these: {', '.join(button.label for button in ask.buttons)}."])
    return found


def _object(ask: Ask, typed: Typed, prefix: str = FIELD) -> dict[str, Any]:
    value, wrong = read_fields(ask.fields, typed, prefix)
    if wrong:
        raise Refused(by_field={name: [text] for name, text in wrong.items()})
    return value


def _single(ask: Ask, typed: Typed) -> Any:
    value = _read(ask.fields[-1], typed)
    return None if is_absent(value) else value


def _payload(ask: Ask, typed: Typed) -> Any:
    if not typed.get(PAYLOAD, "").strip():
        raise Refused(by_field={PAYLOAD: ["say something, if only null"]})
    return _single(ask, typed)


def _act(ask: Ask, typed: Typed) -> Any:
    proposal = ask.proposal
    assert proposal is not None, "it is what the form is about"
    decisions = [_decision(ask, typed, number) for number in range(len(proposal.actions))]
    for number, (action, decision) in enumerate(zip(proposal.actions, decisions, strict=True)):
        if decision.type not in action.allowed:
            raise Refused([], {f"decision.{number}": [f"decide about {action.name}"]})
        if decision.type == "respond" and not decision.message:
            raise Refused([], {f"message.{number}": ["say something"]})
    return answer_of(proposal, decisions)


def _decision(ask: Ask, typed: Typed, number: int) -> Decision:
    word = typed.get(f"decision.{number}") or typed.get("decision", "")
    message = typed.get(f"message.{number}", "").strip()
    if word != "edit":
        return Decision(word, message=message)
    if f"args.{number}" in typed:
        return Decision(word, _arguments(f"args.{number}", typed))
    return Decision(word, _object(ask, typed, f"arg.{number}."))


def _arguments(name: str, typed: Typed) -> dict[str, Any]:
    try:
        read = read_json(typed[name])
    except FieldProblem as problem:
        raise Refused(by_field={name: [str(problem)]}) from None
    if not isinstance(read, dict):
        raise Refused(by_field={name: ["arguments are an object, as {…}"]})
    return read


def _read(field: Field, typed: Typed) -> Any:
    try:
        return read_field(field, typed)
    except FieldProblem as problem:
        raise Refused(by_field={field.name: [str(problem)]}) from None


_READERS = {
    "go": _go,
    "decide": _decide,
    "fill": _object,
    "value": _single,
    "say": _single,
    "edit": _payload,
    "payload": _payload,
    "act": _act,
}
