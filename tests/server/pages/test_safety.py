"""What agents, customers and strangers write is shown, and never becomes a part of the page."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

from bide.messages import HumanMessage
from bide.server.pages.assets import asset
from tests.server.pages.desk import Desk
from tests.server.pages.plain_browser import Page

EVIL = (
    "</textarea></title><script>alert(1)</script><img src=x onerror=alert(2)>"
    """\" onmouseover="alert(3)' {{6*7*1000}} javascript:alert(4)"""
)
PAGES = (
    "/",
    "/inbox/threads",
    "/inbox/agents",
    "/inbox/schedules",
    "/inbox/deliveries",
    "/login",
    "/inbox/threads/none",
)


def refuse_foreign_parts(page: Page) -> None:
    """Nothing on a page runs but our own file, and nothing is loaded from elsewhere."""
    scripts = [tag.attributes for tag in page.tags if tag.name == "script"]
    assert all(set(one) == {"type", "src"} and (one["src"] or "").startswith("/static/inbox.js") for one in scripts)
    for tag in page.tags:
        assert tag.name not in ("style", "iframe", "object", "embed", "base")
        for name, value in tag.attributes.items():
            assert not name.startswith("on"), f"<{tag.name} {name}={value!r}>"
            assert name != "style", f"<{tag.name} style={value!r}>"
            if name in ("href", "src", "action", "formaction"):
                assert re.match(r"[/#](?!/)|$", value or ""), f"<{tag.name} {name}={value!r}>"
    assert "42000" not in page.text
    assert len([tag for tag in page.tags if tag.name == "img"]) <= 1


def test_hostile_words_in_questions_titles_and_names_are_only_words(desk: Desk):
    title = EVIL[:200]
    paid = desk.ask("pay", "a", title=title, assignees=[EVIL], tags=[EVIL])
    free = desk.ask("free", "b", question=EVIL, more={EVIL: [EVIL]}, action_requests=EVIL)
    desk.app.start("free", {"given": {"action_requests": [{"name": EVIL, "args": {EVIL: EVIL}, "description": EVIL}]}})
    desk.app.start("free", {"given": {"question": EVIL}}, thread_id=EVIL)
    desk.settle()

    addresses = ["/", "/inbox/threads", "/inbox/threads/a", f"/inbox/waits/{paid}", f"/inbox/waits/{free}"]
    pages = [desk.browser.open(address) for address in addresses]
    pages.append(desk.browser.open(pages[1].links[" ".join(EVIL.split())]))

    for page in pages:
        refuse_foreign_parts(page)
        assert "<script>alert(1)</script>" in page.text


def test_hostile_words_in_state_messages_errors_answers_and_facts_are_only_words(desk: Desk):
    desk.app.start("chat", {"messages": [HumanMessage(EVIL, name=EVIL)]}, thread_id="chat")
    wait_id = desk.ask("free", "answered")
    desk.app.wake(wait_id, {EVIL: EVIL}, by=EVIL, via=EVIL)
    desk.settle()
    fact = desk.app.deliver(EVIL[:100], {EVIL: EVIL}, kind="event", source=EVIL[:100])
    desk.app.schedule(EVIL, "number", "0 8 * * *", {})

    addresses = ("/inbox/threads/chat", "/inbox/threads/answered", f"/inbox/waits/{wait_id}", "/inbox/deliveries")
    for address in (*addresses, f"/inbox/deliveries/{fact.id}", "/inbox/schedules"):
        page = desk.browser.open(address)
        refuse_foreign_parts(page)
        assert "<script>alert(1)</script>" in page.text


def test_hostile_words_that_are_typed_come_back_as_words(desk: Desk):
    desk.ask("number")
    desk.browser.open("/")

    page = desk.browser.press("Send answer", {"field.value": EVIL})

    assert page.status == 422
    refuse_foreign_parts(page)
    assert page.form_with("Send answer").values["field.value"] == EVIL


@pytest.mark.parametrize(
    "query", ["said=<b>", "kind=<script>", "graph=%22%3E", "sort=x", "after=nonsense", "assignee=é"]
)
def test_words_in_an_address_are_neither_repeated_as_markup_nor_believed(desk: Desk, query: str):
    desk.ask("pay")

    page = desk.browser.open(f"/?{query}")

    assert page.status in (200, 422)
    refuse_foreign_parts(page)


@pytest.mark.parametrize("address", PAGES)
def test_every_page_forbids_scripts_frames_and_keeping(desk: Desk, address: str):
    answer = desk.client.get(address)

    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert 'name="color-scheme"' in answer.text


@pytest.mark.parametrize("name", ["bide.css", "inbox.js", "bide.svg", "picture.css"])
def test_files_of_the_pages_come_from_here_alone_and_may_be_kept(desk: Desk, name: str):
    answer = desk.client.get(f"/static/{name}")

    assert answer.status_code == 200
    assert "immutable" in answer.headers["cache-control"]
    assert not re.search(r"https?:(?!//www\.w3\.org/2000/svg)|@import|url\(|eval\(|innerHTML\s*=", answer.text)
    assert desk.client.get(f"/static/..%2f{name}").status_code == 404
    assert desk.client.get("/static/../look.py").status_code == 404


def test_every_form_carries_the_field_that_only_our_pages_know(desk: Desk):
    templates = files("bide.server.pages") / "templates"

    for template in templates.iterdir():
        if template.name.startswith("link"):
            continue  # whoever holds a link proves that by the link
        text = template.read_text(encoding="utf-8")
        for form in re.findall(r"<form[^>]*method=\"post\".*?</form>", text, re.DOTALL):
            assert "hidden(csrf" in form or 'name="csrf"' in form, f"{template.name}: {form[:80]}"


# ── Contrast ───────────────────────────────────────────────────────────────────────────────────────────────────────

TEXT = [("ink", "paper"), ("ink", "sheet"), ("ink", "sunk"), ("ink", "grey-bg"), ("soft", "paper"), ("soft", "sheet")]
TEXT += [("soft", "sunk"), ("soft", "grey-bg"), ("link", "paper"), ("link", "sheet"), ("on-accent", "accent")]
TEXT += [("on-accent", "accent-hover"), ("amber", "sheet"), ("red", "sheet"), ("red", "sunk")]
TEXT += [(tone, f"{tone}-bg") for tone in ("amber", "green", "red", "blue")]
SHAPES = [("line-strong", "sheet"), ("accent", "paper"), ("accent", "sheet"), ("red-line", "sheet")]
SHAPES += [(f"{tone}-line", "sunk") for tone in ("amber",)] + [("green-line", "sheet")]


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["day", "night"])
def test_colours_keep_the_contrast_that_accessibility_asks_for(theme: int):
    css = (asset("bide.css") or b"").decode()
    colours = dict(
        re.findall(r"--([\w-]+): (#[0-9a-f]{6})", re.findall(r":root \{(.*?)\n\s*\}", css, re.DOTALL)[theme])
    )

    too_faint = [pair for pair in TEXT if contrast(colours[pair[0]], colours[pair[1]]) < 4.5]
    too_faint += [pair for pair in SHAPES if contrast(colours[pair[0]], colours[pair[1]]) < 3]

    assert too_faint == []
