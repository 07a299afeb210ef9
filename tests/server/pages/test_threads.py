"""Threads on their pages: what happened in one order, where they are, and what can be done about them."""

from __future__ import annotations

import pytest

from bide.messages import HumanMessage
from tests.server.pages.desk import Desk, Office


@pytest.mark.requirement("Z0-29")
def test_list_of_threads_says_who_is_paused_what_for_and_since_when(desk: Desk):
    desk.ask("pay", "refund-7")
    desk.clock.advance("2h")
    desk.app.start("broken", {}, thread_id="printer")
    desk.settle()

    page = desk.browser.open("/inbox/threads")

    assert "refund-7 waiting" in page.text
    assert "Waiting for a decision: approve or reject · Pay 120 EUR?" in page.text
    assert "paused 2 hours ago" in page.text
    assert page.links["Resume"].startswith("/inbox/waits/")
    assert "printer failed RuntimeError: the printer is on <b>fire</b>" in page.text
    assert "refund-7" not in desk.browser.open("/inbox/threads?status=failed").text
    assert "printer" not in desk.browser.open("/inbox/threads?graph=pay").text


def test_paused_thread_is_cancelled_from_the_list(desk: Desk):
    desk.ask("pay", "refund-7")
    desk.browser.open("/inbox/threads")

    page = desk.browser.press("Cancel")

    assert "The thread was cancelled." in page.text
    assert desk.app.get("refund-7").status == "cancelled"


@pytest.mark.requirement("Z1-10")
def test_messages_and_tool_calls_stand_in_one_order_with_pauses_and_steps(desk: Desk):
    desk.app.start("chat", {"messages": [HumanMessage("Money back!")]}, thread_id="t")
    desk.settle()
    desk.clock.advance("3h")
    desk.browser.open("/inbox/threads/t")
    desk.browser.press("Approve")
    desk.settle()

    page = desk.browser.open("/inbox/threads/t")

    told = page.text[page.text.index("Timeline") : page.text.index("Conversation")]
    newest_first = ["Done", "Agent Done.", "Answered", "3 hours passed", "Paused", "I would refund it.", "Money back!"]
    places = [told.index(words) for words in newest_first]
    assert places == sorted(places)
    assert 'refund({ "order": "A-17" })' in told
    assert "by anonymous · through inbox" in told


def test_conversation_of_a_state_is_shown_as_one(desk: Desk):
    desk.app.start("chat", {"messages": [HumanMessage("Money back!")]}, thread_id="t")
    desk.settle()

    page = desk.browser.open("/inbox/threads/t")

    said = page.text[page.text.index("Conversation") :]
    assert said.index("Human") < said.index("Money back!") < said.index("Agent") < said.index("I would refund it.")


def test_page_of_a_thread_shows_where_it_is_its_state_and_its_waits(desk: Desk):
    desk.ask("pay", "refund-7")

    page = desk.browser.open("/inbox/threads/refund-7")

    drawn = page.html[page.html.index("Where it is") :]
    assert "bide-paused" in drawn
    assert "pay (paused)" in drawn
    assert "<style" not in page.html
    assert "Its life, by the clock" in page.text
    assert '"timeout"' not in page.text
    assert page.form_with("Approve")


def test_wait_without_a_title_is_called_after_its_node_where_its_thread_is_named(desk: Desk):
    wait_id = desk.ask("mail", "order-17")

    inbox, thread = desk.browser.open("/"), desk.browser.open("/inbox/threads/order-17")
    wait = desk.browser.open(f"/inbox/waits/{wait_id}")

    assert f'<h2><a href="/inbox/waits/{wait_id}">order-17</a></h2>' in inbox.html
    assert f'<h2><a href="/inbox/waits/{wait_id}">mail</a></h2>' in thread.html
    assert "<h1>mail</h1>" in wait.html


def test_bars_are_as_long_as_the_time_that_was_waited(desk: Desk):
    desk.ask("pay", "t")
    desk.clock.advance("30h")
    desk.browser.open("/inbox/threads/t")
    desk.browser.press("Approve")
    desk.settle()
    desk.clock.advance("5h")

    page = desk.browser.open("/inbox/threads/t")

    waited = [tag.attributes for tag in page.tags if tag.name == "rect" and tag.attributes.get("class") == "is-good"]
    assert [(one["x"], one["width"]) for one in waited] == [("0", "1000")]
    assert "answered by anonymous after 30 hours" in page.text


def test_history_of_answers_says_who_when_and_through_what(desk: Desk):
    desk.ask("pay", "t")
    desk.browser.open("/")
    desk.browser.press("Reject")
    desk.clock.advance("3m")

    page = desk.browser.open("/inbox/threads/t")

    assert "Pay 120 EUR? answered reject by anonymous through inbox 3 min ago" in page.text


def test_thread_that_failed_is_retried_from_its_page(desk: Desk):
    desk.app.start("broken", {}, thread_id="t")
    desk.settle()
    page = desk.browser.open("/inbox/threads/t")
    assert "the printer is on <b>fire</b>" in page.text

    page = desk.browser.press("Retry")

    assert "only what did not finish runs again" in page.text
    assert desk.app.get("t").status == "ready"
    assert len(desk.app.runs("t")) == 2


def test_action_that_is_no_longer_possible_is_told_and_changes_nothing(desk: Desk):
    desk.ask("pay", "t")

    refused = desk.browser.send("/inbox/threads/t/retry", {})
    nothing = desk.browser.send("/inbox/threads/t/release", {})

    assert refused.status == 409
    assert "It was over already, and nothing was changed." in nothing.text
    assert desk.browser.send("/inbox/threads/t/explode", {}).status == 404
    assert desk.app.get("t").status == "waiting"


def test_worker_and_the_thread_that_it_works_for_link_to_each_other(desk: Desk):
    desk.app.start("parent", {}, thread_id="boss")
    desk.settle()
    (worker,) = desk.app.children("boss")

    page = desk.browser.open("/inbox/threads/boss")
    below = desk.browser.open(page.links[worker])

    assert below.status == 200
    assert "boss" in below.links
    assert "Waiting for an e-mail" in below.text


def test_thread_of_a_graph_that_is_not_known_here_is_shown_as_far_as_possible(desk: Desk):
    desk.ask("pay", "t")
    del desk.app.graphs._known["pay"]

    page = desk.browser.open("/inbox/threads/t")

    assert page.status == 200
    assert "does not know the graph pay" in page.text
    assert "Where it is" not in page.text


def test_pages_of_another_owner_are_not_there(office: Office):
    office.ask("pay", "theirs", owner="acme")

    assert office.mallory.open("/inbox/threads/theirs").status == 404
    assert office.maya.open("/inbox/threads/theirs").status == 200
    assert office.mallory.open("/inbox/threads?after=theirs").status == 404
