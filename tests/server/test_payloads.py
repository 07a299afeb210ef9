"""Answers of every known inbox become the one that a wait asks for, and an approval is shown to each of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from bide import InvalidAnswerError
from bide.runtime.views import Wait
from bide.server.payloads import Read, interrupt_of, outward, read_answer, read_resume
from bide.types import WaitStatus
from bide.waits import all_of, any_of, approval, email
from bide.waits.conditions import Condition
from bide.waits.shown import shown
from bide.waits.stored import to_plain

NOON = datetime(2026, 11, 18, 12, tzinfo=UTC)
FORM = {
    "type": "object",
    "properties": {"amount": {"type": "integer"}, "note": {"type": "string"}, "urgent": {"type": "boolean"}},
    "required": ["amount"],
}
PLAIN = approval("Pay?")
FILLED = approval("Pay?", form=FORM)
NAMED = approval("Which?", options=["yes", "no", "later"])
BARE = approval("Fill in", options=[], form=FORM)


def waiting(condition: Condition | None = None, question: Any = None, **more: Any) -> Wait:
    """A wait as the runtime shows it."""
    question = shown(condition) if question is None and condition is not None else question
    plain = None if condition is None else to_plain(condition)
    kind = "question" if condition is None else condition.kind
    said = {"title": "", "assignees": (), "tags": (), "deadline": None, "waiting_for": "a decision", **more}
    return Wait(
        "w1", "t", "r", "g", "node", None, kind, WaitStatus.OPEN, question, created_at=NOON, condition=plain, **said
    )


# ── Inward ─────────────────────────────────────────────────────────────────────────────────────────────────────────

APPROVED = {"decision": "approve", "form": {"amount": 3}}
EDITED = {"action": "Pay?", "args": {"amount": "3"}}


@pytest.mark.parametrize(
    ("condition", "given", "expected"),
    [
        # Bide's own form, and plain words
        (PLAIN, "approve", "approve"),
        (PLAIN, "reject", "reject"),
        (PLAIN, "APPROVE", "approve"),
        (PLAIN, {"decision": "approve"}, "approve"),
        (FILLED, APPROVED, APPROVED),
        (FILLED, {"decision": "reject"}, {"decision": "reject"}),
        (FILLED, "reject", {"decision": "reject"}),
        (NAMED, "later", "later"),
        (NAMED, "Later", "later"),
        (BARE, {"amount": 3}, {"amount": 3}),
        # Booleans, and the objects that say the same
        (PLAIN, True, "approve"),
        (PLAIN, False, "reject"),
        (NAMED, True, "yes"),
        (NAMED, False, "no"),
        (PLAIN, {"approved": True, "user_notes": "Looks good"}, Read("approve", "Looks good")),
        (PLAIN, {"approved": False, "reason": "too dear"}, Read("reject", "too dear")),
        # Agent Inbox
        (PLAIN, [{"type": "accept", "args": None}], "approve"),
        (PLAIN, [{"type": "accept", "args": {"action": "Pay?", "args": {}}}], "approve"),
        (PLAIN, [{"type": "ignore", "args": None}], "reject"),
        (PLAIN, [{"type": "response", "args": "too dear"}], Read("reject", "too dear")),
        (NAMED, [{"type": "response", "args": "later"}], "later"),
        (FILLED, [{"type": "edit", "args": EDITED}], APPROVED),
        (FILLED, [{"type": "accept", "args": EDITED}], APPROVED),
        (BARE, [{"type": "edit", "args": EDITED}], {"amount": 3}),
        # LangChain
        (PLAIN, {"decisions": [{"type": "approve"}]}, "approve"),
        (PLAIN, {"decisions": [{"type": "reject", "message": "no"}]}, Read("reject", "no")),
        (PLAIN, {"type": "approve"}, "approve"),
        (
            FILLED,
            {"decisions": [{"type": "edit", "edited_action": {"name": "Pay?", "args": {"amount": 3}}}]},
            APPROVED,
        ),
        (NAMED, {"decisions": [{"type": "respond", "message": "later"}]}, "later"),
        # AG-UI
        (PLAIN, {"interruptId": "w1", "status": "resolved", "payload": True}, "approve"),
        (PLAIN, {"interruptId": "w1", "status": "resolved", "payload": {"decision": "reject"}}, "reject"),
        (PLAIN, {"interruptId": "w1", "status": "cancelled"}, "reject"),
        (PLAIN, [{"interruptId": "w1", "status": "resolved", "payload": "approve"}], "approve"),
        # MCP
        (PLAIN, {"action": "accept", "content": {}}, "approve"),
        (PLAIN, {"action": "decline"}, "reject"),
        (FILLED, {"action": "accept", "content": {"amount": 3}}, APPROVED),
    ],
)
def test_decision_in_any_known_form_becomes_what_the_approval_asks_for(condition, given, expected):
    assert read_answer(waiting(condition), given) == (expected if isinstance(expected, Read) else Read(expected))


@pytest.mark.parametrize(
    ("condition", "given"),
    [
        (PLAIN, "perhaps"),
        (PLAIN, {"hello": "world"}),
        (PLAIN, None),
        (PLAIN, 1),
        (PLAIN, []),
        (PLAIN, [{"type": "accept"}, {"type": "accept"}]),
        (PLAIN, {"decisions": "approve"}),
        # An edit that nobody can make must not pass for consent to what was proposed.
        (PLAIN, [{"type": "edit", "args": EDITED}]),
        # Words must not pass for a no, where no option surely is one.
        (approval("Which?", options=["red", "green", "blue"]), [{"type": "response", "args": "purple"}]),
        (approval("Which?", options=["red", "green", "blue"]), False),
        (BARE, False),
    ],
)
def test_what_is_no_decision_is_handed_on_to_be_refused(condition, given):
    assert read_answer(waiting(condition), given).value == given


def test_approval_without_words_goes_with_what_was_proposed():
    asked = waiting(FILLED, {"amount": 120, "customer": "Ada"})

    assert read_answer(asked, True).value == {"decision": "approve", "form": {"amount": 120}}
    assert read_answer(waiting(FILLED), True).value == {"decision": "approve", "form": {}}, (
        "which is refused: what amount?"
    )


def test_message_goes_where_the_form_asks_for_one():
    asked = waiting(FILLED, {"amount": 120})

    said = read_answer(asked, {"decisions": [{"type": "reject", "message": "too dear"}]}).value

    assert said == {"decision": "reject", "form": {"amount": 120, "note": "too dear"}}


def test_decision_among_other_things_is_found_and_of_several_the_one_that_is_named():
    among = waiting(any_of(email(from_="a@example.org"), boss=PLAIN))
    several = waiting(all_of(ada=PLAIN, bob=FILLED))

    assert read_answer(among, True).value == "approve"
    assert read_answer(several, True, "ada").value == "approve"
    assert read_answer(several, [{"type": "edit", "args": EDITED}], "bob").value == APPROVED
    assert read_answer(several, True).value is True, "nobody can tell which"


LANGCHAIN = {
    "action_requests": [{"name": "send", "args": {"to": "ada"}}],
    "review_configs": [{"action_name": "send", "allowed_decisions": ["approve", "edit", "reject"]}],
}
RESPONDS = {**LANGCHAIN, "review_configs": [{"action_name": "send", "allowed_decisions": ["respond"]}]}
INBOX = {"action_request": {"action": "send", "args": {"to": "ada"}}, "config": {"allow_accept": True}}
ACTION = {"action": "send", "args": {"to": "bob"}}


@pytest.mark.parametrize(
    ("question", "given", "expected"),
    [
        # What the author's own code expects is left alone.
        ("How many?", {"approved": True}, {"approved": True}),
        ("How many?", [{"type": "accept"}], [{"type": "accept"}]),
        ("How many?", None, None),
        (LANGCHAIN, {"decisions": [{"type": "approve"}]}, {"decisions": [{"type": "approve"}]}),
        (INBOX, [{"type": "accept", "args": None}], [{"type": "accept", "args": None}]),
        # An inbox of another kind than the author had in mind.
        (LANGCHAIN, [{"type": "accept", "args": None}], {"decisions": [{"type": "approve"}]}),
        (LANGCHAIN, [{"type": "ignore", "args": None}], {"decisions": [{"type": "reject"}]}),
        (LANGCHAIN, [{"type": "response", "args": "no"}], {"decisions": [{"type": "reject", "message": "no"}]}),
        (RESPONDS, [{"type": "response", "args": "hm"}], {"decisions": [{"type": "respond", "message": "hm"}]}),
        (
            LANGCHAIN,
            [{"type": "edit", "args": ACTION}],
            {"decisions": [{"type": "edit", "edited_action": {"name": "send", "args": {"to": "bob"}}}]},
        ),
        (INBOX, {"decisions": [{"type": "approve"}]}, [{"type": "accept", "args": None}]),
        ([INBOX], {"decisions": [{"type": "reject"}]}, [{"type": "ignore", "args": None}]),
        (INBOX, {"decisions": [{"type": "reject", "message": "no"}]}, [{"type": "response", "args": "no"}]),
        (
            INBOX,
            {"decisions": [{"type": "edit", "edited_action": {"name": "send", "args": {"to": "bob"}}}]},
            [{"type": "edit", "args": ACTION}],
        ),
        # AG-UI puts an envelope around any answer.
        ("How many?", {"interruptId": "w1", "status": "resolved", "payload": {"n": 3}}, {"n": 3}),
    ],
)
def test_answer_to_a_question_is_what_its_author_expects(question, given, expected):
    assert read_answer(waiting(question=question), given).value == expected


def test_answer_that_an_inbox_has_wrapped_up_is_unwrapped_where_only_that_fits():
    asked = waiting(question="Name?", schema={"type": "string"})

    assert read_answer(asked, [{"type": "response", "args": "Ada"}]).value == "Ada"
    assert read_answer(asked, [{"type": "response", "args": 3}]).value == [{"type": "response", "args": 3}]


def test_envelope_without_an_answer_is_refused_with_the_way_out():
    with pytest.raises(InvalidAnswerError, match="cancel the wait"):
        read_answer(waiting(question="How many?"), {"interruptId": "w1", "status": "cancelled"})


def test_several_answers_are_read_each_for_its_own_wait():
    first, second = waiting(PLAIN), waiting(question="How many?")
    second = Wait(**{name: getattr(second, name) for name in Wait.__slots__} | {"id": "w2"})

    by_id = read_resume([first, second], {"w1": True, "w2": 3})
    in_envelopes = read_resume(
        [first, second],
        [
            {"interruptId": "w1", "status": "resolved", "payload": "approve"},
            {"interruptId": "w2", "status": "resolved", "payload": 3},
        ],
    )

    assert by_id == in_envelopes == ({"w1": "approve", "w2": 3}, {})
    assert read_resume([first], True) == ("approve", {})
    assert read_resume([first], {"approved": False, "reason": "too dear"}) == ("reject", {"w1": "too dear"})
    assert read_resume([first, second], True) == (True, {}), "nobody can tell which"
    assert read_resume([], {"a": 1}) == ({"a": 1}, {})


# ── Outward ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_approval_goes_out_with_the_keys_of_both_inboxes_beside_the_authors_own():
    told = outward(waiting(PLAIN, {"plan": "buy a boat", "ui_url": "/approve/1"}))

    assert told["plan"] == "buy a boat"
    assert told["ui_url"] == "/approve/1"
    assert told["action_request"] == {"action": "Pay?", "args": {"plan": "buy a boat", "ui_url": "/approve/1"}}
    assert told["config"] == {
        "allow_accept": True,
        "allow_edit": False,
        "allow_respond": True,
        "allow_ignore": True,
    }
    (action,) = told["action_requests"]
    assert action["args"] == action["arguments"] == told["action_request"]["args"]
    assert told["review_configs"] == [{"action_name": action["name"], "allowed_decisions": ["approve", "reject"]}]
    assert isinstance(told["description"], str)


def test_form_is_what_can_be_edited():
    told = outward(waiting(FILLED, {"amount": 120, "customer": "Ada"}))

    assert told["config"]["allow_edit"] is True
    assert told["action_request"]["args"] == {"amount": 120}
    assert told["review_configs"][0]["allowed_decisions"] == ["approve", "edit", "reject"]
    assert told["review_configs"][0]["args_schema"] == FORM


def test_author_who_writes_an_inboxs_keys_has_the_last_word():
    told = outward(waiting(PLAIN, {"description": "Mine", "action_request": {"action": "mine", "args": {}}}))

    assert told["description"] == "Mine"
    assert told["action_request"] == {"action": "mine", "args": {}}


def test_further_options_are_answered_in_words():
    told = outward(waiting(NAMED))

    assert told["review_configs"][0]["allowed_decisions"] == ["approve", "reject", "respond"]


@pytest.mark.parametrize("question", ["How many?", {"a": 1}, None, [INBOX], LANGCHAIN])
def test_plain_question_goes_out_as_it_is(question):
    assert outward(waiting(question=question)) == question


def test_interrupt_carries_what_an_answer_must_look_like_and_what_is_ours_beside_it():
    told = interrupt_of(waiting(PLAIN, deadline=NOON))

    assert told["id"] == "w1"
    assert told["response_schema"]["enum"] == ["approve", "reject"]
    assert told["wait"]["kind"] == "approval"
    assert told["wait"]["deadline"].startswith("2026-11-18T12:00:00")
    assert "response_schema" not in interrupt_of(waiting(question="How many?"))


@pytest.mark.parametrize("condition", [PLAIN, FILLED, NAMED])
def test_every_decision_that_is_offered_can_be_made(condition):
    asked = waiting(condition, {"amount": 120})
    offered = outward(asked)["review_configs"][0]["allowed_decisions"]

    said = {
        "approve": {"type": "approve"},
        "edit": {"type": "edit", "edited_action": {"name": "Pay?", "args": {"amount": 3}}},
        "reject": {"type": "reject", "message": "no"},
        "respond": {"type": "respond", "message": "later"},
    }
    for decision in offered:
        answer = read_answer(asked, {"decisions": [said[decision]]}).value
        assert read_answer(asked, answer).value == answer
        assert answer != {"decisions": [said[decision]]}
