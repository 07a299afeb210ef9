"""Answers by plain forms: each way to ask has its own, and each says truthfully what came of it."""

from __future__ import annotations

import pytest

from tests.server.pages.desk import Desk, Office


@pytest.mark.parametrize(("button", "answer"), [("Approve", "approve"), ("Reject", "reject")])
def test_decision_is_one_press_of_a_button(desk: Desk, button: str, answer: str):
    wait_id = desk.ask("pay")
    desk.browser.open("/")

    page = desk.browser.press(button)

    assert "Answered. The thread goes on. Pay 120 EUR?" in page.text
    assert "Nobody waits" in page.text
    assert desk.answer_of() == answer
    settled = desk.app.wait(wait_id)
    assert (settled.answered_by, settled.answered_via) == ("anonymous", "inbox")


def test_comment_beside_a_decision_reaches_the_node(desk: Desk):
    wait_id = desk.ask("pay")
    desk.browser.open("/")

    desk.browser.press("Reject", {"comment": " too dear\r\n"})

    assert desk.answer_of() == "reject"
    assert desk.app.wait(wait_id).answer.comment == "too dear"
    for place in (f"/inbox/waits/{wait_id}", "/inbox/threads/t"):
        assert "too dear" in desk.browser.open(place).text


def test_comment_that_is_too_long_is_shown_again_beside_what_is_wrong(desk: Desk):
    wait_id = desk.ask("pay")
    desk.browser.open("/")

    page = desk.browser.press("Reject", {"comment": "x" * 4001})

    assert page.status == 422
    assert "may have 4000 characters" in page.text
    assert desk.app.wait(wait_id).status == "open"


def test_who_answers_second_is_told_who_was_first_and_when(office: Office):
    office.ask("pay", owner="acme")
    office.maya.open("/")
    office.tom.open("/")
    office.maya.press("Approve")
    office.clock.advance("3s")

    page = office.tom.press("Reject")

    assert page.status == 409
    first = office.app.store.waits_of("t")[0].answered_by
    assert f"{first} approved 3 s ago. Your answer was not recorded." in page.text
    assert office.answer_of() == "approve"


def test_same_form_sent_twice_counts_once_and_says_so(desk: Desk):
    desk.ask("pay")
    form = desk.browser.open("/").form_with("Approve")
    sent = {**form.values, "decision": "approve"}

    desk.browser.send(form.action, sent)
    again = desk.browser.send(form.action, sent)

    assert again.status == 200
    assert "This answer was recorded before, and counts once." in again.text


def test_answer_after_the_deadline_is_told_that_it_is_too_late(desk: Desk):
    desk.ask("pay")
    desk.browser.open("/")
    desk.clock.advance("49h")
    desk.settle()

    page = desk.browser.press("Approve")

    assert page.status == 409
    assert "The time was over" in page.text
    assert desk.answer_of() == "nobody"


def test_form_of_an_approval_is_filled_in_beside_the_decision(desk: Desk):
    desk.ask("offer")
    desk.browser.open("/")

    desk.browser.press("Offer", {"field.price": "120", "field.currency": '"EUR"', "field.note": "as agreed"})

    assert desk.answer_of() == {"decision": "offer", "form": {"price": 120, "currency": "EUR", "note": "as agreed"}}


def test_who_says_no_has_nothing_to_fill_in(desk: Desk):
    desk.ask("offer")
    page = desk.browser.open("/")
    buttons = [tag.attributes for tag in page.tags if tag.name == "button"]

    desk.browser.press("Drop")

    assert desk.answer_of() == {"decision": "drop"}
    assert all("formnovalidate" in one for one in buttons if one.get("value") in ("revise", "drop"))


def test_answer_that_does_not_fit_is_shown_again_with_the_problem_beside_it(desk: Desk):
    wait_id = desk.ask("offer")
    desk.browser.open("/")

    page = desk.browser.press("Offer", {"field.price": "many", "field.note": "keep <this>"})

    assert page.status == 422
    assert "'many' is not a number" in page.text
    form = page.form_with("Offer")
    assert (form.values["field.price"], form.values["field.note"]) == ("many", "keep <this>")
    assert desk.app.wait(wait_id).status == "open"

    page = desk.browser.press("Offer", {"field.price": "120", "field.currency": ""})

    assert page.status == 422
    assert "currency" in page.text
    assert desk.browser.press("Offer", {"field.currency": '"USD"'}).status == 200
    assert desk.answer_of()["form"]["price"] == 120


@pytest.mark.parametrize(
    ("graph", "button", "typed", "answer"),
    [
        ("number", "Send answer", {"field.value": "12"}, 12),
        ("certain", "Yes", {}, True),
        ("certain", "No", {}, False),
        ("free", "Approve", {}, True),
        ("free", "Reject", {}, False),
        ("free", "Send", {"field.value": "Tomorrow, please"}, "Tomorrow, please"),
        ("free", "Approve with changes", {"json": '{"subject": "Coffees"}'}, {"subject": "Coffees"}),
        ("free", "Resume", {"json": "[1, null]"}, [1, None]),
        ("mail", "Resume", {"json": '{"from": "by hand"}'}, {"from": "by hand"}),
    ],
)
def test_question_is_answered_with_what_it_asks_for(desk: Desk, graph, button, typed, answer):
    desk.ask(graph)
    desk.browser.open("/")

    page = desk.browser.press(button, typed)

    assert page.status == 200
    assert desk.answer_of() == answer


def test_number_that_is_none_is_refused_and_kept_in_its_field(desk: Desk):
    desk.ask("number")
    desk.browser.open("/")

    page = desk.browser.press("Send answer", {"field.value": "1.5"})

    assert page.status == 422
    assert page.form_with("Send answer").values["field.value"] == "1.5"
    assert "integer" in page.text


def test_payload_that_is_no_json_is_refused_and_kept(desk: Desk):
    desk.ask("free")
    desk.browser.open("/")

    page = desk.browser.press("Resume", {"json": "{oops"})

    assert page.status == 422
    assert page.form_with("Resume").values["json"] == "{oops"
    assert "this is not JSON" in page.text


# ── What an agent proposes ─────────────────────────────────────────────────────────────────────────────────────────


def test_proposed_action_is_shown_with_its_arguments_and_approved(desk: Desk):
    desk.ask("act")

    page = desk.browser.open("/")
    desk.browser.press("Approve")

    assert "Call refund?" in page.text
    assert "order A-17 amount 129.5" in page.text
    assert desk.answer_of() == {"decisions": [{"type": "approve"}]}


def test_proposed_arguments_are_edited_and_then_approved(desk: Desk):
    desk.ask("act")
    desk.browser.open("/")

    changed = {"arg.0.amount": "99", "arg.0.is_urgent": "yes", "arg.0.lines": "a\r\nc"}
    form = desk.browser.page.form_with("Approve with changes")
    desk.browser.send(form.action, {**form.values, **changed, "decision": "edit"})

    edited = {"order": "A-17", "amount": 99, "is_urgent": True, "lines": ["a", "c"]}
    assert desk.answer_of() == {"decisions": [{"type": "edit", "edited_action": {"name": "refund", "args": edited}}]}


def test_proposed_action_is_rejected_with_a_reason_or_answered_with_words(desk: Desk):
    desk.ask("act", "a")
    desk.ask("act", "b")
    desk.browser.open("/inbox/threads/a")
    desk.browser.press("Reject", {"message.0": "too much"})
    desk.browser.open("/inbox/threads/b")
    desk.browser.press("Reply", {"message.0": "ask Tom"})

    assert desk.answer_of("a") == {"decisions": [{"type": "reject", "message": "too much"}]}
    assert desk.answer_of("b") == {"decisions": [{"type": "respond", "message": "ask Tom"}]}


def test_several_proposed_actions_are_decided_together(desk: Desk):
    desk.ask("act", actions=2)
    desk.browser.open("/")

    page = desk.browser.press("Send decisions", {"decision.0": "approve"})
    assert page.status == 422
    assert "decide about refund" in page.text
    desk.browser.press("Send decisions", {"decision.1": "edit", "args.1": '{"order": "B-2"}'})

    edited = {"type": "edit", "edited_action": {"name": "refund", "args": {"order": "B-2"}}}
    assert desk.answer_of() == {"decisions": [{"type": "approve"}, edited]}


def test_question_in_the_form_of_agent_inbox_is_answered_in_its_form(desk: Desk):
    desk.ask("agent_inbox", "a")
    desk.ask("agent_inbox", "b")
    desk.browser.open("/inbox/threads/a")
    desk.browser.press("Approve")
    desk.browser.open("/inbox/threads/b")
    desk.browser.press("Reply", {"message.0": "why?"})

    assert desk.answer_of("a") == [{"type": "accept", "args": None}]
    assert desk.answer_of("b") == [{"type": "response", "args": "why?"}]


# ── Several decisions ──────────────────────────────────────────────────────────────────────────────────────────────


def test_each_vote_counts_and_is_ticked_until_there_are_enough(desk: Desk):
    wait_id = desk.ask("vote")
    desk.browser.open(f"/inbox/waits/{wait_id}")

    counted = desk.browser.press("Approve", near="decide:ann")
    assert "Counted. Others are still asked." in counted.text
    page = desk.browser.open(f"/inbox/waits/{wait_id}")
    assert "2 of these 3 ann a decision: Go? (approve / reject) just now by anonymous" in page.text
    assert not [form for form in page.forms if form.values.get("how") == "decide:ann"]

    desk.browser.press("Approve", near="decide:cleo")
    assert desk.answer_of() == ["ann", "cleo"]


def test_one_part_of_several_can_be_put_in_place_by_hand(desk: Desk):
    desk.ask("reply")
    desk.browser.open("/")

    desk.browser.press("Resume", {"part": "email", "json": '{"from": "ada@example.org"}'})

    assert desk.answer_of() == "email"


# ── Not answering ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("Z0-30")
def test_question_is_withdrawn_or_its_thread_cancelled(desk: Desk):
    desk.ask("pay", "a")
    desk.ask("pay", "b")
    desk.browser.open("/inbox/threads/a")
    withdrawn = desk.browser.press("Cancel wait")
    desk.browser.open("/inbox/threads/b")
    cancelled = desk.browser.press("Cancel thread", near="/inbox/waits/")
    desk.settle()

    assert "The question was withdrawn." in withdrawn.text
    assert "The thread was cancelled." in cancelled.text
    assert [desk.app.get(name).status for name in ("a", "b")] == ["failed", "cancelled"]
    again = desk.browser.send(f"/inbox/waits/{desk.store.waits_of('b')[0].wait_id}/cancel", {})
    assert "It was over already, and nothing was changed." in again.text


def test_deadline_is_moved_others_are_asked_and_it_is_put_aside(desk: Desk):
    wait_id = desk.ask("pay")
    address = f"/inbox/waits/{wait_id}"

    desk.browser.open(address)
    assert "The deadline was moved." in desk.browser.press("Move deadline", {"to": "3d"}).text
    desk.browser.press("Reassign", {"to": "tom, lea"})
    desk.browser.press("Put aside", {"to": "2h"})

    wait = desk.app.wait(wait_id)
    assert wait.deadline is not None
    assert (wait.deadline.timestamp() * 1000 - desk.clock.now()) / 3_600_000 == 72
    assert wait.assignees == ("tom", "lea")
    assert wait.snoozed_until is not None
    refused = desk.browser.press("Move deadline", {"to": "soon"})
    assert refused.status == 422
    assert "soon" in refused.text


def test_why_a_wait_still_waits_is_told_on_its_page(desk: Desk):
    wait_id = desk.ask("reply")
    desk.app.deliver("sales", {"from": "ada@example.org", "subject": "Out of office"}, kind="email")

    page = desk.browser.open(f"/inbox/waits/{wait_id}")

    assert "Why not yet" in page.text
    assert "subject" in page.text
    assert "waits for a decision" in page.text


# ── Who may ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_key_that_may_only_read_answers_nothing(office: Office):
    office.ask("pay", owner="acme")
    reader = office.person("rita", "acme", "read")
    form = reader.open("/").form_with("Approve")

    answer = reader.client.post(form.action, data={**form.values, "decision": "approve"}, headers=reader.headers)

    assert answer.status_code == 403
    assert office.app.waits(thread_id="t")


def test_form_on_the_page_of_a_stranger_answers_nothing(desk: Desk):
    wait_id = desk.ask("pay")
    sent = {"how": "decide", "decision": "approve"}
    strange = ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}, {"origin": "null"})

    codes = [
        desk.client.post(f"/inbox/waits/{wait_id}/answer", data=sent, headers=headers).status_code
        for headers in strange
    ]

    assert codes == [403, 403, 403]
    assert desk.app.wait(wait_id).status == "open"


def test_answer_for_the_wait_of_another_owner_finds_nothing(office: Office):
    wait_id = office.ask("pay", owner="acme")
    for what in ("answer", "cancel", "cancel-thread", "change"):
        page = office.mallory.send(f"/inbox/waits/{wait_id}/{what}", {"how": "decide", "decision": "approve"})
        assert page.status == 404
    for what in ("cancel", "retry", "release"):
        assert office.mallory.send(f"/inbox/threads/t/{what}", {}).status == 404
    assert office.app.wait(wait_id).status == "open"


def test_every_answer_is_in_the_audit_log_with_what_came_of_it(office: Office):
    office.ask("pay", owner="acme")
    office.maya.open("/")
    office.tom.open("/")
    office.maya.press("Approve")
    office.tom.press("Reject")

    noted = [(entry.action, entry.outcome, entry.details["via"]) for entry in office.store.audit_entries("acme")]

    assert noted == [("wait.answer", "late", "inbox"), ("wait.answer", "resumed", "inbox")]


# ── Links ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_link_is_made_shown_once_and_lets_somebody_without_an_account_decide(desk: Desk):
    wait_id = desk.ask("pay")
    desk.browser.open(f"/inbox/waits/{wait_id}")

    made = desk.browser.press("Make a link", {"recipient": "maya@example.org", "expires": "2d"})
    (address,) = [tag.attributes["value"] for tag in made.tags if tag.attributes.get("id") == "made"]
    again = desk.browser.open(f"/inbox/waits/{wait_id}")

    assert address is not None
    assert "open maya@example.org" in again.text
    assert address not in again.html
    desk.browser.open(address)
    assert desk.app.wait(wait_id).status == "open"
    desk.browser.press("Approve")
    assert desk.answer_of() == "approve"


def test_link_that_is_withdrawn_decides_nothing(desk: Desk):
    wait_id = desk.ask("vote")
    desk.browser.open(f"/inbox/waits/{wait_id}")
    made = desk.browser.press("Make a link", {"recipient": "ben", "part": "ben"})
    (address,) = [tag.attributes["value"] for tag in made.tags if tag.attributes.get("id") == "made"]

    assert "The link decides nothing any more." in desk.browser.press("Withdraw").text

    assert desk.client.get(str(address)).status_code in (404, 410)
    assert "withdrawn ben" in desk.browser.open(f"/inbox/waits/{wait_id}").text


def test_link_that_cannot_be_made_says_why(office: Office):
    wait_id = office.ask("pay", owner="acme")
    office.maya.open(f"/inbox/waits/{wait_id}")

    refused = office.maya.press("Make a link", {"expires": "soon"})

    assert refused.status == 422
    assert "soon" in refused.text
    assert office.mallory.send(f"/inbox/waits/{wait_id}/links", {"recipient": "me"}).status == 404
