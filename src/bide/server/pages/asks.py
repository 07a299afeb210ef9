"""The ways in which somebody can answer a wait: each is a form, made of what the wait asks for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bide.runtime.views import Wait
from bide.server.pages.fields import Choice, Field, field_of, fields_for, fields_of, properties_of
from bide.server.pages.proposals import Action, Proposal, proposal_in
from bide.server.pages.words import as_json
from bide.waits.answers import answer_schema
from bide.waits.leaves import Leaf, leaves

GO, STOP, PLAIN = "go", "stop", "plain"
FIELD = "field."
PAYLOAD = "json"
COMMENT = Field("comment", "Comment (optional)", "long")


@dataclass(frozen=True, slots=True)
class Button:
    """A word to say."""

    value: str
    label: str
    tone: str = PLAIN
    answer: Any = None
    """What is said with it."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One way to answer. `how` says how what was typed becomes the answer; see `answering`."""

    how: str
    buttons: tuple[Button, ...]
    fields: tuple[Field, ...] = ()
    comment: Field | None = None
    """Where something may be said beside a decision."""
    title: str = ""
    """What it is called when it is folded; without it, it is always open."""
    note: str = ""
    leaf: str = ""
    """Which part of the wait it is for, where there are several."""
    schema: Mapping[str, Any] | None = None
    proposal: Proposal | None = None
    problems: tuple[str, ...] = ()
    is_open: bool = False

    @property
    def name(self) -> str:
        """What tells it apart from the other ways to answer the same wait."""
        return f"{self.how}:{self.leaf}" if self.leaf else self.how


def asks_of(wait: Wait) -> tuple[Ask, ...]:
    """Return the ways to answer a wait, the most likely ones first; none when it is settled."""
    if wait.status.value != "open":
        return ()
    if wait.kind == "pause":
        return (Ask("go", (Button("go", "Go on", GO),)),)
    parts = [] if wait.condition is None else list(leaves(wait.condition, 0))
    if parts:
        return (*_decisions(wait, parts), _payload(wait, parts))
    proposal = proposal_in(wait.question)
    if proposal is not None:
        return (*_about(proposal), _payload(wait, parts))
    return (*(_free(wait.question) if wait.schema is None else _shaped(wait, wait.schema)), _payload(wait, parts))


# ── Decisions ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _decisions(wait: Wait, parts: Sequence[Leaf]) -> Iterator[Ask]:
    for leaf in parts:
        if leaf.kind == "approval" and leaf.number not in wait.satisfied:
            is_one_of_many = len(parts) > 1
            note = _of_part(leaf) if is_one_of_many else ""
            yield _decision(leaf, note, leaf.label if is_one_of_many else "")


def _of_part(leaf: Leaf) -> str:
    title = leaf.plain.get("title")
    return f"{leaf.label}: {title}" if title and leaf.label != "approval" else str(title or leaf.label)


def _decision(leaf: Leaf, note: str, label: str) -> Ask:
    options, form = leaf.plain.get("options") or [], leaf.plain.get("form")
    schema = answer_schema(leaf.plain)
    if form is None:
        return Ask("decide", _options(options), comment=COMMENT, note=note, leaf=label, schema=schema)
    fields = _form_fields(form)
    if not options:
        how = "fill" if properties_of(form) else "value"
        return Ask(how, (Button("send", "Send", GO),), fields, note=note, leaf=label, schema=schema)
    return Ask("decide", _options(options), fields, COMMENT, note=note, leaf=label, schema=schema)


def _form_fields(form: Mapping[str, Any], given: Any = None) -> tuple[Field, ...]:
    if properties_of(form):
        return fields_of(form, given if isinstance(given, Mapping) else None)
    return (field_of(f"{FIELD}value", "answer", form, form),)


def _options(options: Sequence[Any]) -> tuple[Button, ...]:
    """Return a button for each option: the first is what is hoped for, and the last of several is the way out."""
    last = len(options) - 1
    tones = [GO if not number else STOP if number == last else PLAIN for number in range(len(options))]
    return tuple(
        Button(one if isinstance(one, str) else json.dumps(one), _label(one), tone, one)
        for one, tone in zip(options, tones, strict=True)
    )


def _label(option: Any) -> str:
    text = option if isinstance(option, str) else {True: "Yes", False: "No"}.get(option, json.dumps(option))
    spaced = text.replace("_", " ")
    return spaced[:1].upper() + spaced[1:]


# ── Questions ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _shaped(wait: Wait, schema: Mapping[str, Any]) -> Iterator[Ask]:
    """Ask for what a schema describes: a word of several, yes or no, or something to fill in."""
    options = schema.get("enum")
    if isinstance(options, list) and 0 < len(options) <= 6:
        yield Ask("decide", _options(options), schema=schema)
    elif schema.get("type") == "boolean":
        yield Ask("decide", _options([True, False]), schema=schema)
    else:
        how = "fill" if properties_of(schema) else "value"
        yield Ask(how, (Button("send", "Send answer", GO),), _form_fields(schema, wait.question), schema=schema)


def _free(question: Any) -> Iterator[Ask]:
    """Ask for anything: yes, no, the question itself with changes, or words."""
    yield Ask(
        "decide",
        (Button("true", "Approve", GO, True), Button("false", "Reject", STOP, False)),
        note="The node hears true or false.",
    )
    if isinstance(question, Mapping | list) and question:
        changed = Field(PAYLOAD, "The answer", "json", True, as_json(question))
        yield Ask("edit", (Button("send", "Approve with changes", GO),), (changed,), title="Edit")
    said = Field(f"{FIELD}value", "Your words", "long", True)
    yield Ask("say", (Button("send", "Send", GO),), (said,), title="Reply")


_VERBS = {
    "approve": "Approve",
    "edit": "Approve with changes",
    "reject": "Reject",
    "respond": "Reply",
    "ignore": "Ignore",
}


def _about(proposal: Proposal) -> Iterator[Ask]:
    if len(proposal.actions) > 1:
        fields = [one for number, action in enumerate(proposal.actions) for one in _choices(number, action)]
        yield Ask("act", (Button("", "Send decisions", GO),), tuple(fields), proposal=proposal)
        return
    action = proposal.actions[0]
    plain = [word for word in action.allowed if word in ("approve", "ignore")]
    if plain:
        buttons = [Button(word, _VERBS[word], GO if word == "approve" else PLAIN) for word in plain]
        yield Ask("act", tuple(buttons), proposal=proposal)
    for word, tone in (("edit", GO), ("reject", STOP), ("respond", GO)):
        if word in action.allowed:
            yield _with_words(word, tone, action, proposal)


def _with_words(word: str, tone: str, action: Action, proposal: Proposal) -> Ask:
    message = Field("message.0", "What the agent should know", "long", word == "respond")
    fields = fields_for(action.args, "arg.0.") if word == "edit" else (message,)
    title = {"edit": "Edit", "reject": "Reject", "respond": "Reply"}[word]
    return Ask(f"act-{word}", (Button(word, _VERBS[word], tone),), fields, title=title, proposal=proposal)


def _choices(number: int, action: Action) -> Iterator[Field]:
    choices = tuple(Choice(word, _VERBS[word]) for word in action.allowed)
    yield Field(f"decision.{number}", f"{number + 1}. {action.name}", "choice", True, choices=choices)
    if "edit" in action.allowed:
        args = as_json(action.args)
        yield Field(f"args.{number}", "Its arguments", "json", value=args, hint="Sent with “Approve with changes”.")
    if {"reject", "respond"} & set(action.allowed):
        yield Field(f"message.{number}", "What the agent should know", "text")


# ── Anything ───────────────────────────────────────────────────────────────────────────────────────────────────────


def _payload(wait: Wait, parts: Sequence[Leaf]) -> Ask:
    """Put any value in the place of what is waited for."""
    asks_people = not parts or any(leaf.kind == "approval" for leaf in parts)
    note = "" if asks_people else "It waits for the world and asks nobody. What you send here is taken in its place."
    fields = [Field(PAYLOAD, "Payload, as JSON", "json", True)]
    if len(parts) > 1:
        still = [leaf for leaf in parts if leaf.number not in wait.satisfied]
        choices = tuple(Choice(leaf.label, f"{leaf.label} ({leaf.kind})") for leaf in still)
        is_needed = (wait.condition or {}).get("kind") != "any_of"
        fields.insert(0, Field("part", "In place of", "choice", is_needed, choices=choices))
    return Ask("payload", (Button("send", "Resume", GO),), tuple(fields), title="Resume with payload", note=note)
