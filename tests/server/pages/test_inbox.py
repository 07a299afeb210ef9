"""The first page: who waits, for what, since when and until when."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from bide import Store
from bide.server.auth.keys import create_key
from bide.server.caller import SCOPES
from bide.testing import FakeClock
from tests.server.pages.desk import Desk, Office
from tests.stores import SCHEMA


@pytest.mark.complaint(25)
@pytest.mark.requirement("Z0-29")
def test_who_waits_is_shown_with_what_for_since_when_and_until_when(desk: Desk):
    desk.ask("pay", "refund-7")
    desk.clock.advance("2h")

    page = desk.browser.open("/")

    assert "Pay 120 EUR?" in page.links
    assert "Waiting for a decision: approve or reject" in page.text
    assert "pay › pay refund-7 asks maya paused 2 hours ago times out in 46 hours" in page.text
    assert {"Approve", "Reject", "Resume", "Cancel wait", "Cancel thread"} <= {
        label for form in page.forms for label in form.buttons
    }
    moments = [tag.attributes for tag in page.tags if tag.name == "time"]
    assert all("UTC" in (moment["title"] or "") and moment["datetime"] for moment in moments)


def test_what_waits_for_the_world_is_shown_beside_what_waits_for_people(desk: Desk):
    desk.ask("mail", "letter")
    desk.ask("reply", "quote")

    page = desk.browser.open("/")

    assert "Waiting for an e-mail from ada@example.org" in page.text
    assert "Waiting for the first of these" in page.text
    assert "email an e-mail from ada@example.org, subject Re: *" in page.text


def test_wait_that_is_overdue_is_marked_until_the_clock_has_settled_it(desk: Desk):
    desk.ask("pay")
    desk.clock.advance("49h")

    page = desk.browser.open("/")

    assert "1 overdue" in page.text
    assert "60 min overdue" in page.text or "1 hour overdue" in page.text
    assert "is-overdue" in page.html


def test_waits_are_chosen_by_kind_by_agent_and_by_who_is_asked(desk: Desk):
    desk.ask("pay", "a")
    desk.ask("number", "b")
    desk.ask("mail", "c")

    every = desk.browser.open("/")
    chosen = {label: desk.browser.open(every.links[label]) for label in ("Questions 1", "mail 1", "maya 1")}

    assert {"a", "b", "c"} <= set(every.links)
    assert [{"a", "b", "c"} & set(page.links) for page in chosen.values()] == [{"b"}, {"c"}, {"a"}]
    assert {"a", "b", "c"} <= set(desk.browser.open(chosen["maya 1"].links["maya 1"]).links)


def test_first_comes_what_is_due_soonest_or_on_request_what_waits_longest(desk: Desk):
    desk.ask("pay", "old", timeout="9d")
    desk.clock.advance("1h")
    desk.ask("pay", "urgent", timeout="10m")

    soonest, longest = desk.browser.open("/"), desk.browser.open("/?sort=age")

    assert soonest.text.index("urgent") < soonest.text.index("old")
    assert longest.text.index("old") < longest.text.index("urgent")


def test_more_than_a_page_of_waits_goes_on_on_the_next(desk: Desk):
    for number in range(53):
        desk.app.start("number", {}, thread_id=f"t{number:02}")
    desk.settle()

    first = desk.browser.open("/")
    second = desk.browser.open(first.links["Show more"])

    assert first.html.count("<article") == 50
    assert second.html.count("<article") == 3
    assert "Inbox 53" in first.text


def test_empty_inbox_says_how_to_start_something(desk: Desk):
    page = desk.browser.open("/")

    assert "Nobody waits for anything" in page.text
    assert "bide start pay" in page.text
    assert desk.browser.open(page.links["Start pay"]).form_with("Start pay")


def test_what_is_put_aside_is_left_out_unless_it_is_asked_for(desk: Desk):
    wait_id = desk.ask("pay", "later")
    desk.app.snooze(wait_id, "2h")

    page = desk.browser.open("/")

    assert "later" not in page.links
    assert "later" in desk.browser.open("/?snoozed=1").links


def test_everybody_sees_what_is_theirs_and_nothing_else(office: Office):
    wait_id = office.ask("pay", "secret", owner="acme")

    assert "secret" in office.maya.open("/").links
    assert "Nobody waits" in office.mallory.open("/").text
    for address in (f"/inbox/waits/{wait_id}", "/inbox/threads/secret", "/inbox/live?thread=secret"):
        assert office.mallory.open(address).status == 404
    assert "secret" not in office.mallory.open("/inbox/threads").html
    assert "secret" not in office.mallory.open(f"/?said=resumed&wait={wait_id}").html


def test_who_has_not_signed_in_is_asked_for_a_key_and_led_back(office: Office):
    page = office.browser.open("/inbox/threads")

    assert "Sign in" in page.text
    assert page.forms[0].values["next"] == "/inbox/threads"
    assert {"csrf", "key"} <= set(page.forms[0].values)
    assert office.browser.client.get("/static/bide.css").status_code == 200


def test_who_signs_in_with_a_key_decides_by_the_forms_of_that_session_alone(office: Office):
    wait_id = office.ask("pay", "refund-7", owner="acme")
    key, _ = create_key(office.store, "lea", "acme", SCOPES)
    office.browser.open("/")

    assert "This key opens nothing" in office.browser.press("Sign in", {"key": "wrong"}).text
    page = office.browser.press("Sign in", {"key": key})
    assert "lea" in page.text
    form = page.form_with("Approve")
    forged = office.client.post(form.action, data={**form.values, "csrf": "guessed", "decision": "approve"})

    assert form.values["csrf"]
    assert forged.status_code == 403
    assert office.app.wait(wait_id).status == "open"
    assert "The thread goes on." in office.browser.press("Approve").text
    assert "Sign in" in office.browser.press("Sign out").text
    assert "Sign in" in office.browser.open("/").text


def test_pages_are_the_same_on_postgresql(postgres_url: str):
    clock = FakeClock()
    with ExitStack() as stack:
        desk = Desk(stack.enter_context(Store.open(postgres_url, schema=SCHEMA, clock=clock)), clock, stack)
        desk.ask("reply", "quote")
        desk.ask("pay", "refund-7")

        page = desk.browser.open("/")
        answered = desk.browser.press("Approve", near="decide")

        assert "Inbox 2" in page.text
        assert answered.status == 200
        for address in ("/inbox/threads", "/inbox/threads/quote", "/inbox/deliveries", "/inbox/agents"):
            assert desk.browser.open(address).status == 200
