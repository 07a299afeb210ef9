"""Agents are started from a form; facts are tried out; schedules are paused."""

from __future__ import annotations

from tests.server.pages.desk import Desk, Office


def test_agent_is_started_by_filling_in_the_fields_of_its_input(desk: Desk):
    page = desk.browser.open("/inbox/agents")
    assert "bide-node" in page.html

    page = desk.browser.press(
        "Start number",
        {"thread": "mine", "field.amount": "12", "field.topics": "tides\r\n\r\nwinds", "field.given": '{"a": [1]}'},
    )

    assert "Started. A worker takes it from here." in page.text
    assert page.url.endswith("/inbox/threads/mine?said=started")
    desk.settle()
    values = desk.app.get("mine").values
    assert (values["amount"], values["topics"], values["given"]) == (12, ["tides", "winds"], {"a": [1]})


def test_agent_is_started_with_json(desk: Desk):
    form = next(
        form
        for form in desk.browser.open("/inbox/agents").forms
        if form.values.get("how") == "json" and "/number/" in form.action
    )

    page = desk.browser.send(form.action, {**form.values, "json": '{"amount": 3}'})

    desk.settle()
    thread_id = page.url.partition("/inbox/threads/")[2].partition("?")[0]
    assert desk.app.get(thread_id).values["amount"] == 3


def test_input_that_cannot_be_taken_is_shown_again_with_why(desk: Desk):
    desk.browser.open("/inbox/agents")

    page = desk.browser.press("Start number", {"field.amount": "twelve", "field.topics": "tides"})

    assert page.status == 422
    assert "amount: 'twelve' is not a number" in page.text
    form = page.form_with("Start number")
    assert (form.values["field.amount"], form.values["field.topics"]) == ("twelve", "tides")
    assert not desk.app.list()


def test_same_form_sent_twice_starts_one_run(desk: Desk):
    form = desk.browser.open("/inbox/agents").form_with("Start number")

    first = desk.browser.send(form.action, {**form.values, "field.amount": "1"})
    second = desk.browser.send(form.action, {**form.values, "field.amount": "1"})

    assert first.url == second.url
    assert len(desk.app.list()) == 1


def test_run_belongs_to_whoever_starts_it_and_never_goes_to_a_thread_of_another(office: Office):
    office.maya.open("/inbox/agents")
    office.maya.press("Start number", {"thread": "plan"})
    office.mallory.open("/inbox/agents")

    page = office.mallory.press("Start number", {"thread": "plan"})

    assert page.status == 422
    assert "is taken" in page.text
    assert [thread.thread_id for thread in office.app.list(owner="acme")] == ["plan"]
    assert not office.app.list(owner="other")


# ── Facts ──────────────────────────────────────────────────────────────────────────────────────────────────────────

MAIL = '{"from": "Ada <ada@example.org>", "subject": "Re: hello"}'


def test_fact_is_tried_out_without_being_stored_or_waking_anybody(desk: Desk):
    desk.ask("reply", "quote")
    desk.browser.open("/inbox/deliveries")

    fits = desk.browser.press("Try it", {"kind": "email", "name": "sales", "payload": MAIL})
    misses = desk.browser.press("Try it", {"payload": MAIL.replace("Re:", "Fwd:")})

    assert "fits 1 of 1 condition" in fits.text
    assert "fits none of the 1 condition" in misses.text
    assert "subject" in misses.text
    assert not desk.app.deliveries()
    assert desk.app.get("quote").status == "waiting"


def test_fact_that_cannot_be_tried_out_is_shown_again_with_why(desk: Desk):
    desk.browser.open("/inbox/deliveries")

    page = desk.browser.press("Try it", {"name": "sales", "payload": "{oops"})

    assert page.status == 422
    assert "this is not JSON" in page.text
    assert page.form_with("Try it").values["payload"] == "{oops"


def test_id_of_anothers_wait_is_only_a_name_to_whoever_tries_a_fact_out(office: Office):
    wait_id = office.ask("pay", "secret", owner="acme")
    office.mallory.open("/inbox/deliveries")

    page = office.mallory.press("Try it", {"kind": "event", "name": wait_id, "payload": ""})

    assert "Nobody waits" in page.text
    assert "secret" not in page.text


def test_facts_that_came_are_listed_and_each_says_whom_it_woke_and_whom_not(desk: Desk):
    desk.ask("reply", "quote")
    desk.app.deliver("sales", {"from": "ada@example.org", "subject": "Out of office"}, kind="email")
    desk.app.deliver("sales", {"from": "ada@example.org", "subject": "Re: hello"}, kind="email")

    page = desk.browser.open("/inbox/deliveries")
    alone = desk.browser.open("/inbox/deliveries?only=unmatched")
    one = desk.browser.open(alone.links["sales"])

    assert "woke 1" in page.text
    assert "woke nobody" in page.text
    assert "Re: hello" not in alone.text
    assert "Out of office" in one.text


def test_fact_of_another_owner_is_not_there(office: Office):
    came = office.app.deliver("sales", {"from": "ada@example.org"}, kind="email", owner="acme")

    assert office.maya.open(f"/inbox/deliveries/{came.id}").status == 200
    assert office.mallory.open(f"/inbox/deliveries/{came.id}").status == 404
    assert "sales" not in office.mallory.open("/inbox/deliveries").links


# ── Schedules ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_schedule_is_shown_paused_let_go_on_and_deleted(desk: Desk):
    desk.app.schedule("digest", "number", "0 8 * * 1-5", {})
    page = desk.browser.open("/inbox/schedules")
    assert "digest" in page.text
    assert "starts number" in page.text

    assert "paused" in desk.browser.press("Pause").text
    assert desk.app.schedules()[0].is_paused
    desk.browser.press("Let it go on")
    assert not desk.app.schedules()[0].is_paused
    desk.browser.press("Delete")

    assert not desk.app.schedules()


def test_schedule_of_another_owner_is_neither_seen_nor_touched(office: Office):
    office.app.schedule("digest", "number", "0 8 * * *", {}, owner="acme")

    assert "starts number" not in office.mallory.open("/inbox/schedules").text
    assert office.mallory.send("/inbox/schedules/pause", {"name": "digest"}).status == 422
    office.mallory.send("/inbox/schedules/delete", {"name": "digest"})
    assert not office.app.schedules(owner="acme")[0].is_paused
