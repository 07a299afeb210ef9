"""Somebody decides in a browser: pages stay true by themselves, through restarts too, and nothing typed is lost."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.server.browser.conftest import Site

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.fixture(autouse=True)
def patience() -> None:
    """How long a page may take: a machine may be busy."""
    expect.set_options(timeout=30_000)


def card(page: Page, wait_id: str):
    return page.locator(f"#wait-{wait_id}")


def is_same_document(page: Page) -> bool:
    """Whether the page was not loaded again since it was marked."""
    return bool(page.evaluate("window.marked === true"))


@pytest.mark.requirement("Z0-29")
@pytest.mark.parametrize(("button", "answer"), [("Approve", "approve"), ("Reject", "reject")])
def test_decision_takes_one_click_and_its_card_goes_without_a_reload(site: Site, page: Page, button: str, answer: str):
    wait_id = site.ask("pay", "refund-7")
    page.goto("/")
    page.evaluate("window.marked = true")

    card(page, wait_id).get_by_role("button", name=button).click()

    expect(page.get_by_text("Answered. The thread goes on.")).to_be_visible()
    expect(card(page, wait_id)).to_have_count(0)
    expect(page.locator("#waiting")).to_have_text("0")
    assert is_same_document(page)
    assert site.answer_of("refund-7") == answer


def test_enter_in_a_comment_decides_nothing_and_the_comment_goes_with_the_decision(site: Site, page: Page):
    wait_id = site.ask("pay", "refund-7")
    page.goto("/")
    comment = card(page, wait_id).get_by_label("Comment (optional)")

    comment.press_sequentially("too dear")
    comment.press("Enter")
    comment.press_sequentially("try in May")
    assert site.app.wait(wait_id).status == "open"
    card(page, wait_id).get_by_role("button", name="Reject").click()

    expect(page.get_by_text("Answered. The thread goes on.")).to_be_visible()
    assert site.answer_of("refund-7") == "reject"
    assert site.app.wait(wait_id).answer.comment == "too dear\ntry in May"


def test_double_click_decides_once_and_not_about_what_has_moved_there(site: Site, page: Page):
    wait_id = site.ask("vote", "post")
    others = [site.ask("pay", f"refund-{number}") for number in range(3)]
    page.goto("/?sort=age")

    card(page, wait_id).get_by_role("button", name="Approve").first.dblclick()
    expect(page.get_by_text("Counted. Others are still asked.")).to_be_visible()
    card(page, others[0]).get_by_role("button", name="Approve").dblclick()
    expect(card(page, others[0])).to_have_count(0)

    assert site.answer_of("refund-0") == "approve"
    assert list(site.app.wait(wait_id).satisfied) == [0]
    assert [site.app.wait(other).status for other in others[1:]] == ["open", "open"]


def test_proposed_arguments_are_edited_and_approved(site: Site, page: Page):
    wait_id = site.ask("act", "ticket")
    page.goto("/")

    card(page, wait_id).get_by_text("Edit", exact=True).click()
    card(page, wait_id).get_by_label("Amount").fill("99.5")
    card(page, wait_id).get_by_role("button", name="Approve with changes").click()

    expect(page.get_by_text("Answered. The thread goes on.")).to_be_visible()
    (decision,) = site.answer_of("ticket")["decisions"]  # type: ignore[index]
    assert decision["edited_action"]["args"] == {
        "order": "A-17",
        "amount": 99.5,
        "is_urgent": False,
        "lines": ["a", "b"],
    }


def test_answer_that_does_not_fit_is_told_beside_its_field_and_stays_there(site: Site, page: Page):
    wait_id = site.ask("number", "many")
    page.goto("/")
    field = card(page, wait_id).get_by_label("Answer")

    field.fill("a few")
    card(page, wait_id).get_by_role("button", name="Send answer").click()

    expect(page.get_by_text("'a few' is not a number")).to_be_visible()
    expect(field).to_have_value("a few")
    expect(field).to_be_focused()
    # Something else happens meanwhile, and the page is drawn anew around it.
    site.ask("pay", "other")
    expect(page.locator("#waiting")).to_have_text("2")
    expect(field).to_have_value("a few")
    field.fill("3")
    card(page, wait_id).get_by_role("button", name="Send answer").click()
    expect(page.get_by_text("Answered. The thread goes on.")).to_be_visible()
    assert site.answer_of("many") == 3


@pytest.mark.requirement("Z0-30")
def test_wait_is_cancelled_and_so_is_a_thread(site: Site, page: Page):
    first, second = site.ask("pay", "a"), site.ask("pay", "b")
    page.goto("/")

    card(page, first).get_by_text("Cancel", exact=True).click()
    card(page, first).get_by_role("button", name="Cancel wait").click()
    expect(page.get_by_text("The question was withdrawn.")).to_be_visible()
    card(page, second).get_by_text("Cancel", exact=True).click()
    card(page, second).get_by_role("button", name="Cancel thread").click()
    expect(page.get_by_text("The thread was cancelled.")).to_be_visible()

    expect(page.get_by_text("Nobody waits for anything")).to_be_visible()
    list(site.app.follow("a"))
    assert [site.app.get(name).status for name in ("a", "b")] == ["failed", "cancelled"]


def test_what_happens_elsewhere_appears_and_what_is_being_typed_stays(site: Site, page: Page):
    wait_id = site.ask("number", "first")
    page.goto("/")
    page.evaluate("window.marked = true")
    field = card(page, wait_id).get_by_label("Answer")
    field.press_sequentially("12")

    second = site.ask("pay", "second")
    expect(card(page, second)).to_be_visible()
    expect(page.locator("#waiting")).to_have_text("2")
    expect(field).to_be_focused()
    field.press_sequentially("3")
    expect(field).to_have_value("123")

    site.app.wake(second, "approve", by="maya")
    expect(card(page, second)).to_have_count(0)
    expect(field).to_have_value("123")
    site.app.wake(wait_id, 5, by="maya")
    expect(page.get_by_text("This was settled meanwhile.")).to_be_visible()
    expect(field).to_have_value("123")
    assert is_same_document(page)


def test_who_comes_second_sees_who_was_first(site: Site, context: BrowserContext, page: Page):
    wait_id = site.ask("pay", "refund-7")
    context.route("**/inbox/live", lambda route: route.abort())  # this page hears of nothing
    page.goto("/")
    site.app.wake(wait_id, "reject", by="Maya", via="inbox")

    card(page, wait_id).get_by_role("button", name="Approve").click()

    expect(
        page.get_by_text(re.compile(r"Maya rejected (just now|\d+ s ago). Your answer was not recorded."))
    ).to_be_visible()
    assert site.answer_of("refund-7") == "reject"


@pytest.mark.requirement("Z1-26")
def test_page_that_is_refreshed_in_the_middle_of_a_pause_goes_on_where_it_was(site: Site, page: Page):
    wait_id = site.ask("order", "order-9")
    page.goto("/inbox/threads/order-9")
    expect(page.locator("h1 .pill")).to_have_text("waiting")
    expect(page.locator("#picture .bide-paused")).to_be_visible()

    page.reload()
    expect(page.locator("#live")).to_have_text("live")
    expect(page.locator("h1 .pill")).to_have_text("waiting")
    site.app.wake(wait_id, 7, by="maya")

    expect(page.locator("h1 .pill")).to_have_text("done")
    expect(page.locator("#state")).to_contain_text("ordered 7 teapots")
    expect(page.locator("#timeline")).to_contain_text("by maya")
    expect(page.locator("#picture .bide-paused")).to_have_count(0)


@pytest.mark.requirement("Z1-26")
def test_page_outlives_the_death_of_its_server_and_sees_the_thread_go_on(site: Site, page: Page):
    wait_id = site.ask("order", "order-9")
    page.goto("/inbox/threads/order-9")
    page.evaluate("window.marked = true")
    expect(page.locator("#live")).to_have_text("live")

    site.kill()
    expect(page.locator("#live")).to_have_text("reconnecting…")
    site.app.wake(wait_id, 7, by="maya")  # another process over the same database
    expect(page.locator("h1 .pill")).to_have_text("waiting")
    site.start()

    expect(page.locator("#live")).to_have_text("live")
    expect(page.locator("h1 .pill")).to_have_text("done")
    expect(page.locator("#state")).to_contain_text("ordered 7 teapots")
    assert is_same_document(page)


def test_answer_that_was_acknowledged_outlives_the_death_of_the_server(site: Site, page: Page):
    wait_id = site.ask("number", "many")
    page.goto("/")
    card(page, wait_id).get_by_label("Answer").fill("41")
    card(page, wait_id).get_by_role("button", name="Send answer").click()
    expect(page.get_by_text("Answered. The thread goes on.")).to_be_visible()

    site.kill()
    site.start()

    assert site.answer_of("many") == 41


def test_answer_that_could_not_be_sent_is_kept_and_counts_once_when_it_is_sent_again(site: Site, page: Page):
    wait_id = site.ask("number", "many")
    page.goto("/")
    expect(page.locator("#live")).to_have_text("live")
    card(page, wait_id).get_by_label("Answer").fill("41")
    site.kill()

    card(page, wait_id).get_by_role("button", name="Send answer").click()
    expect(page.get_by_text("The server could not be reached.")).to_be_visible()
    site.start()
    expect(page.locator("#live")).to_have_text("live")
    expect(card(page, wait_id).get_by_label("Answer")).to_have_value("41")
    card(page, wait_id).get_by_role("button", name="Send answer").click()

    expect(page.get_by_text("Answered. The thread goes on.")).to_be_visible()
    assert site.answer_of("many") == 41


def test_keys_move_between_cards_approve_reply_and_cancel(site: Site, page: Page):
    first, second, third = site.ask("pay", "a"), site.ask("free", "b"), site.ask("free", "c")
    page.goto("/?sort=age")

    page.keyboard.press("j")
    expect(card(page, first)).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(card(page, third)).to_be_focused()
    page.keyboard.press("k")
    expect(card(page, second)).to_be_focused()
    page.keyboard.press("r")
    page.keyboard.type("a word with jkx in it")
    expect(card(page, second).get_by_label("Your words")).to_have_value("a word with jkx in it")
    page.keyboard.press("Escape")
    card(page, third).focus()
    page.keyboard.press("x")
    expect(card(page, third).get_by_role("button", name="Cancel wait")).to_be_focused()
    card(page, first).focus()
    page.keyboard.press("a")

    expect(page.get_by_text("Answered. The thread goes on.")).to_be_visible()
    assert site.answer_of("a") == "approve"


def test_everything_works_without_javascript(site: Site, chromium: Browser):
    wait_id = site.ask("act", "ticket")
    with chromium.new_context(base_url=site.url, java_script_enabled=False) as context:
        page = context.new_page()
        page.goto("/")
        card(page, wait_id).locator("summary", has_text="Reject").click()
        card(page, wait_id).get_by_label("What the agent should know").first.fill("too much")
        card(page, wait_id).get_by_role("button", name="Reject").click()
        expect(page.get_by_text("Answered. The thread goes on.")).to_be_visible()

    assert site.answer_of("ticket") == {"decisions": [{"type": "reject", "message": "too much"}]}


PAGES = (
    "/",
    "/inbox/threads",
    "/inbox/threads/offer-1",
    "/inbox/agents",
    "/inbox/schedules",
    "/inbox/deliveries",
    "/login",
)


@pytest.mark.parametrize("width", [360, 1200])
def test_every_page_fits_its_screen_and_its_own_policy(site: Site, chromium: Browser, width: int):
    wait_id = site.ask("offer", "offer-1")
    site.ask("vote", "a-name-that-is-so-long-that-no-telephone-shows-it-in-one-line")
    complaints: list[str] = []
    with chromium.new_context(base_url=site.url, viewport={"width": width, "height": 780}) as context:
        page = context.new_page()
        page.on("console", lambda said: complaints.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        for address in (*PAGES, f"/inbox/waits/{wait_id}"):
            page.goto(address)
            for fold in page.locator("summary").all():
                fold.click()
            assert page.evaluate("document.documentElement.scrollWidth") <= width, address

    assert complaints == []


def test_those_who_want_no_motion_see_none(site: Site, chromium: Browser):
    site.ask("pay", "t")
    seen = []
    for motion in ("no-preference", "reduce"):
        with chromium.new_context(base_url=site.url, reduced_motion=motion) as context:
            page = context.new_page()
            page.goto("/inbox/threads/t")
            seen.append(page.locator("#picture .bide-paused").evaluate("it => getComputedStyle(it).animationName"))

    assert seen == ["glow", "none"]
