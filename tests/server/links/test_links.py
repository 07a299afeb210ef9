"""Approval links: looking changes nothing, deciding happens once, and a link is good for no more than it says."""

from __future__ import annotations

import logging
import threading

import httpx
import pytest

from bide.clock import uuid7
from bide.server import Settings, create_app
from bide.server.links.tokens import PURPOSE
from bide.server.settings import LimitSettings
from bide.store.secret_keys import SecretKeys
from tests.server.links.deciding import BROWSER, SETTINGS
from tests.server.running import running_server

JSON = {"accept": "application/json"}


# ── Looking ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_opening_a_link_changes_nothing_however_often(world):
    path = world.link(world.ask(), actions=["approve", "reject"], recipient="Maya")
    before = world.snapshot()

    for _ in range(3):
        assert world.open(path).status == 200
        assert world.client.get(path, headers=JSON).status_code == 200
        assert world.client.head(path).status_code == 200
        assert world.client.options(path).status_code == 204

    assert world.snapshot() == before
    assert world.answer() is None


def test_the_page_shows_what_is_asked_and_a_button_for_each_action(small):
    path = small.link(small.ask(), actions=["approve", "reject"], recipient="Maya")

    page = small.open(path)

    assert page.buttons == ["approve", "reject"]
    assert "Pay 120 €?" in page.text
    assert "Maya" in page.text
    assert "in 2 days" in page.text


def test_the_page_keeps_its_address_a_secret(small):
    path = small.link(small.ask())
    pages = [small.open(path), small.send(path, action="approve"), small.open("/w/nonsense")]

    for headers in [page.headers for page in pages]:
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert headers["x-robots-tag"] == "noindex, nofollow"
        assert headers["x-frame-options"] == "DENY"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert "script-src" not in headers["content-security-policy"]


def test_the_stylesheet_of_the_page_is_served(small):
    page = small.open(small.link(small.ask()))
    address = page.text.partition('rel="stylesheet" href="..')[2].partition('"')[0]

    answer = small.client.get(address)

    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/css; charset=utf-8")


def test_what_a_graph_asks_is_shown_as_text_and_never_as_markup(small):
    page = small.open(small.link(small.ask("plain")))

    assert "<script>" not in page.text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page.text


def test_what_else_a_thread_waits_for_is_not_told_to_whoever_has_a_link(small):
    path = small.link(small.ask("pay_or_mail"))

    page, told = small.open(path), small.client.get(path, headers=JSON)

    assert "Close it by hand?" in page.text
    assert "secret@example.org" not in page.text + told.text
    assert small.send(path, action="approve").status == 200
    assert small.answer() == "approve"


def test_a_program_is_told_what_can_be_decided(small):
    path = small.link(small.ask("pay_with_form"), recipient="bot")

    told = small.client.get(path, headers=JSON).json()

    assert (told["status"], told["title"], told["actions"]) == ("open", "Pay it?", ["approve", "reject"])
    assert told["schema"]["required"] == ["amount", "account"]


# ── Deciding ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_form_decides_and_the_thread_goes_on(world):
    wait_id = world.ask()
    path = world.link(wait_id, actions=["approve"], recipient="Maya")

    page = world.send(path, action="approve", comment="go ahead")

    assert page.status == 200
    assert "Thank you" in page.text
    assert world.answer() == "approve"
    wait = world.app.wait(wait_id)
    assert (wait.answered_by, wait.answered_via) == ("Maya", "link")
    (comment,) = [event for event in world.app.follow("t") if event.kind == "wait.commented"]
    assert (comment.data["by"], comment.data["text"]) == ("Maya", "go ahead")


def test_a_program_decides_with_json(world):
    wait_id = world.ask()
    path = world.link(wait_id, recipient="bot")

    told = world.client.post(path, json={"action": "reject", "comment": "too dear"})

    assert (told.status_code, told.json()["status"]) == (200, "resumed")
    assert world.answer() == "reject"
    assert world.app.wait(wait_id).answer.comment == "too dear"


def test_a_link_to_approve_cannot_reject(world):
    path = world.link(world.ask(), actions=["approve"])

    page = world.send(path, action="reject")
    told = world.client.post(path, json={"action": "reject"})
    value = world.client.post(path, json={"value": "reject"})
    other = world.client.post(path, json={"value": {"type": "ignore"}})

    assert [page.status, told.status_code, value.status_code, other.status_code] == [403, 403, 403, 403]
    assert "only good for: approve" in page.text
    assert world.open(path).buttons == ["approve"]
    assert world.answer() is None
    assert world.send(path, action="approve").status == 200


def test_whoever_is_second_is_told_who_won_and_when(world):
    wait_id = world.ask()
    first, second = world.link(wait_id, recipient="Maya"), world.link(wait_id, recipient="Ben")
    world.send(first, action="approve")
    world.clock.advance("3m")

    page = world.send(second, action="reject")
    told = world.client.post(second, json={"action": "reject"})
    shown = world.open(second)

    assert (page.status, told.status_code, shown.status) == (409, 409, 200)
    assert "Maya approved 3 min ago." in page.text
    assert "Maya approved 3 min ago." in shown.text
    assert shown.buttons == []
    assert (told.json()["status"], told.json()["by"], told.json()["action"]) == ("already_answered", "Maya", "approve")
    assert world.answer() == "approve"


def test_the_same_link_says_the_same_again_without_harm_and_something_else_in_vain(world):
    path = world.link(world.ask(), recipient="Maya")
    world.send(path, action="approve")

    again, other = world.send(path, action="approve"), world.send(path, action="reject")

    assert (again.status, other.status) == (200, 409)
    assert "Maya approved" in again.text
    assert "Maya approved" in other.text
    assert world.answer() == "approve"


def test_an_answer_from_elsewhere_wins_as_well(small):
    wait_id = small.ask()
    path = small.link(wait_id)
    small.app.wake(wait_id, "reject", by="Ada")
    small.settle()

    page = small.send(path, action="approve")

    assert page.status == 409
    assert "Ada rejected just now." in page.text


@pytest.mark.parametrize("same_link", [True, False])
def test_of_many_who_decide_at_the_same_moment_one_wins(world, same_link):
    wait_id = world.ask()
    paths = [world.link(wait_id, recipient=f"person {number}") for number in range(10)]
    api = create_app(world.app, Settings(**SETTINGS))
    told = []

    with running_server(api) as address:
        barrier = threading.Barrier(len(paths))

        def decide(number):
            with httpx.Client() as client:
                barrier.wait()
                path = paths[0] if same_link else paths[number]
                told.append(client.post(f"{address}{path}", json={"action": ["approve", "reject"][number % 2]}))

        threads = [threading.Thread(target=decide, args=(number,)) for number in range(len(paths))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    won = [answer for answer in told if answer.json()["status"] == "resumed"]
    assert len(won) == 1
    assert {answer.status_code for answer in told} <= {200, 409}
    assert {answer.json()["status"] for answer in told} == {"resumed", "already_answered"}
    assert [event.kind for event in world.store.events("t")].count("wait.answered") == 1


def test_every_decision_is_in_the_audit_log_and_no_token_is(small):
    wait_id = small.ask()
    path = small.link(wait_id, recipient="Maya", actions=["approve"])
    small.send(path, action="reject")
    small.send(path, action="approve", comment="fine")
    small.send(path, action="approve")

    entries = small.store.audit_entries("", subject=wait_id)

    told = [(entry.actor, entry.action, entry.outcome) for entry in reversed(entries)]
    assert told == [
        ("anonymous", "link.make", "accepted"),
        ("Maya", "wait.answer", "refused: not allowed"),
        ("Maya", "wait.answer", "resumed"),
        ("Maya", "wait.answer", "again"),
    ]
    assert entries[1].details["comment"] == "fine"
    assert path.removeprefix("/w/") not in repr(entries)


# ── What a link is good for ────────────────────────────────────────────────────────────────────────────────────────


def test_an_expired_link_decides_nothing(world):
    path = world.link(world.ask(), expires="1h")
    world.clock.advance("59m")
    assert world.open(path).buttons == ["approve", "reject"]
    world.clock.advance("1m")

    shown, sent = world.open(path), world.send(path, action="approve")
    told = world.client.post(path, json={"action": "approve"})

    assert (shown.status, sent.status, told.status_code) == (410, 410, 410)
    assert "was good until Thu 01 Jan 2026, 10:00:00 UTC" in sent.text
    assert told.json()["status"] == "expired"
    assert world.answer() is None


def test_a_link_ends_with_the_deadline_of_its_wait(small):
    path = small.link(small.ask(), expires="30d")
    small.clock.advance("2d")

    page = small.send(path, action="approve")

    assert page.status == 410
    assert "ran out" in page.text


def test_a_revoked_link_decides_nothing(world):
    wait_id = world.ask()
    path, other = world.link(wait_id), world.link(wait_id)
    revoked, _ = world.client.get(f"/waits/{wait_id}/links").json()

    answer = world.client.delete(f"/links/{revoked['link_id']}")

    assert answer.status_code == 204
    assert world.client.delete(f"/links/{revoked['link_id']}").status_code == 204
    assert world.send(path, action="approve").status == 410
    assert "withdrawn" in world.open(path).text
    assert world.send(other, action="approve").status == 200


def test_a_token_that_was_changed_anywhere_is_not_one_of_ours(world):
    path = world.link(world.ask())
    token = path.removeprefix("/w/")
    before = world.snapshot()

    for place, letter in enumerate(token):
        for changed in ("1" if letter == "0" else "0", "."):
            forged = token[:place] + changed + token[place + 1 :]
            if forged != token:
                assert world.client.post(f"/w/{forged}", json={"action": "approve"}).status_code == 404, forged
    for forged in (token[:-1], token + "A", token + "=", token.upper(), token.replace(".", "%2E", 1) + ".x"):
        assert world.client.post(f"/w/{forged}", json={"action": "approve"}).status_code == 404

    assert world.snapshot() == before
    assert world.answer() is None


def test_a_row_that_was_changed_in_the_database_does_not_fit_its_token(small):
    path = small.link(small.ask(), actions=["approve"])

    small.change("UPDATE links SET actions = '[\"*\"]'")

    assert small.send(path, action="approve").status == 404


def test_a_question_that_was_changed_voids_the_links_to_the_old_one(world):
    wait_id = world.ask(text="Pay 120 €?")
    path = world.link(wait_id)
    world.edit(wait_id, "Pay 120 000 €?")

    shown, sent = world.open(path), world.send(path, action="approve")

    assert (shown.status, sent.status) == (410, 410)
    assert "has changed since" in sent.text
    assert world.answer() is None
    assert world.send(world.link(wait_id), action="approve").status == 200


def test_who_is_asked_and_until_when_may_change_without_voiding_a_link(world):
    wait_id = world.ask()
    path = world.link(wait_id)
    world.app.reassign(wait_id, ["ben"])
    world.app.extend(wait_id, "9d")

    assert world.send(path, action="approve").status == 200


def test_a_used_link_does_not_decide_when_the_same_is_asked_again(small):
    wait_id = small.ask()
    path = small.link(wait_id)
    small.send(path, action="approve")
    # As when a node refuses its answer and asks once more, under the same id.
    small.change("UPDATE waits SET status = 'open', answered_at = NULL, answered_by = NULL, answer = NULL")
    small.change("UPDATE conditions SET is_open = 1, wake = NULL")

    page = small.send(path, action="approve")

    assert page.status == 410
    assert "decides only once" in page.text


def test_a_link_goes_with_its_thread(world):
    wait_id = world.ask()
    path = world.link(wait_id, recipient="maya@example.org")

    world.store.delete_thread("t")

    assert world.send(path, action="approve").status == 404
    assert world.rows("links") == []


# ── Keys ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_links_outlive_the_key_that_signed_them_until_it_is_dropped(world):
    wait_id = world.ask()
    old = world.link(wait_id)
    keys = SecretKeys(world.store, PURPOSE)

    keys.rotate()
    new = world.link(wait_id)
    assert (world.open(old).status, world.open(new).status) == (200, 200)
    assert old.split(".")[2] != new.split(".")[2]

    keys.rotate(drop_others=True)
    assert (world.open(old).status, world.open(new).status) == (404, 404)


def test_servers_that_start_together_share_one_key(world):
    made = []
    barrier = threading.Barrier(8)

    def make():
        barrier.wait()
        made.append(SecretKeys(world.store, PURPOSE).current())

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(set(made)) == 1
    assert SecretKeys(world.store, "others").current().key != made[0].key


# ── Making ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_link_is_told_with_its_address_once(small):
    wait_id = small.ask()

    made = small.client.post(f"/waits/{wait_id}/links", json={"actions": ["approve"], "recipient": "Maya"}).json()
    (listed,) = small.client.get(f"/waits/{wait_id}/links").json()

    assert made["url"].startswith("https://bide.example/w/")
    assert {**listed, "url": made["url"]} == made
    assert (listed["actions"], listed["recipient"], listed["is_open"]) == (["approve"], "Maya", True)
    assert listed["expires_at"].startswith("2026-01-08T09:00:00")


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"actions": ["pay"]}, 422),
        ({"actions": []}, 422),
        ({"expires": "never"}, 422),
        ({"expires": 0}, 422),
        ({"expires": "400d"}, 422),
        ({"recipient": "two\nlines"}, 422),
        ({"owner": "me"}, 422),
        ({"leaf": "nobody"}, 404),
    ],
)
def test_a_link_that_cannot_be_meant_is_refused(small, asked, status):
    answer = small.client.post(f"/waits/{small.ask()}/links", json=asked)

    assert answer.status_code == status
    assert answer.json()["detail"]


def test_there_is_no_link_to_what_is_decided_or_not_there(small):
    wait_id = small.ask()
    small.app.wake(wait_id, "approve")

    assert small.client.post(f"/waits/{wait_id}/links", json={}).status_code == 409
    assert small.client.post("/waits/nowhere/links", json={}).status_code == 404
    assert small.client.get("/waits/nowhere/links").status_code == 404
    assert small.client.delete(f"/links/{uuid7(0)}").status_code == 404


def test_what_a_used_link_has_decided_cannot_be_withdrawn(small):
    wait_id = small.ask()
    small.send(small.link(wait_id), action="approve")
    (used,) = small.client.get(f"/waits/{wait_id}/links").json()

    assert used["used_at"] is not None
    assert small.client.delete(f"/links/{used['link_id']}").status_code == 409


# ── Answers of all kinds ───────────────────────────────────────────────────────────────────────────────────────────


def test_a_form_is_filled_in_and_checked_before_it_counts(world):
    path = world.link(world.ask("pay_with_form"))
    shown = world.open(path)
    typed = {"field.amount": "120", "field.note": "", "field.account": '"main"'}

    missing = world.send(path, action="approve", **{**typed, "field.amount": ""})
    nonsense = world.send(path, action="approve", **{**typed, "field.amount": "many"})
    small = world.send(path, action="approve", **{**typed, "field.amount": "0"})
    assert (missing.status, nonsense.status, small.status) == (422, 422, 422)
    assert 'value="many"' in nonsense.text
    assert world.answer() is None
    done = world.send(path, action="approve", **typed)

    assert "Amount in €" in shown.text
    assert "Printed on the receipt" in shown.text
    assert done.status == 200
    assert world.answer() == {"decision": "approve", "form": {"amount": 120, "account": "main"}}


def test_whoever_rejects_need_not_fill_in_anything(small):
    path = small.link(small.ask("pay_with_form"))

    assert small.send(path, action="reject", **{"field.amount": "", "field.account": ""}).status == 200
    assert small.answer() == {"decision": "reject"}


def test_a_program_fills_in_a_form(small):
    path = small.link(small.ask("pay_with_form"))

    refused = small.client.post(path, json={"action": "approve", "form": {"amount": 0, "account": "main"}})
    taken = small.client.post(path, json={"action": "approve", "form": {"amount": 5, "account": "main"}})

    assert (refused.status_code, taken.status_code) == (422, 200)
    assert small.answer() == {"decision": "approve", "form": {"amount": 5, "account": "main"}}


def test_each_of_several_who_must_sign_has_a_link_of_their_own(world):
    wait_id = world.ask("two_sign")
    assert world.client.post(f"/waits/{wait_id}/links", json={}).status_code == 422
    ada, bob = (world.link(wait_id, leaf=name, recipient=name.title()) for name in ("ada", "bob"))
    assert "Ada, sign?" in world.open(ada).text

    first = world.send(ada, action="approve")
    again = world.send(ada, action="reject")
    second = world.send(bob, action="reject")

    assert (first.status, again.status, second.status) == (202, 409, 200)
    assert "Others are still needed" in first.text
    assert "Ada approved just now." in again.text
    assert world.answer() == {"ada": "approve", "bob": "reject"}


@pytest.mark.parametrize(
    ("graph", "typed", "answer"),
    [
        ("how_many", {"value": "12"}, 12),
        ("is_it", {"action": "no"}, False),
        ("plain", {"value": "Wait.\r\nThen go on.", "action": "answer"}, "Wait.\nThen go on."),
        ("proposal", {"action": "approve"}, {"decisions": [{"type": "approve"}]}),
        ("proposal", {"action": "reject", "comment": "no"}, {"decisions": [{"type": "reject", "message": "no"}]}),
    ],
)
def test_questions_of_all_kinds_can_be_answered_from_a_page(small, graph, typed, answer):
    path = small.link(small.ask(graph))
    small.open(path)

    page = small.send(path, **typed)

    assert page.status == 200
    assert small.answer() == answer


def test_a_thread_that_stops_before_a_node_goes_on(small):
    small.app.start("pay", {}, thread_id="t", interrupt_before=["pay"])
    small.settle()
    (wait,) = small.app.waits(thread_id="t")
    path = small.link(wait.id)

    assert small.open(path).buttons == ["continue"]
    assert small.send(path, action="continue").status == 200
    small.settle()
    assert small.app.waits(thread_id="t")[0].kind == "approval"


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"content-type": "application/json"}, b"{", 400),
        ({"content-type": "application/json"}, b"[]", 422),
        ({"content-type": "application/json"}, b"{}", 422),
        ({"content-type": "application/json"}, b'{"action": "dance"}', 422),
        ({"content-type": "application/json"}, b'{"action": ["approve"]}', 422),
        ({"content-type": "application/json"}, b'{"value": "dance"}', 422),
        ({"content-type": "text/plain"}, b"approve", 415),
        ({"content-type": "multipart/form-data; boundary=x"}, b"--x--", 415),
        ({}, b"", 415),
        ({"content-type": "application/x-www-form-urlencoded"}, b"", 422),
        ({"content-type": "application/x-www-form-urlencoded"}, b"comment=" + b"x" * 4001 + b"&action=approve", 422),
        ({"content-type": "application/json"}, b'{"action": "approve", "comment": "%b"}' % (b"x" * 2_000_000), 413),
    ],
)
def test_what_is_no_decision_decides_nothing(small, headers, body, status):
    path = small.link(small.ask())

    answer = small.client.post(path, content=body, headers=headers)

    assert answer.status_code == status
    assert small.answer() is None


# ── Secrecy ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_no_token_is_ever_written_to_a_log(small, caplog, monkeypatch):
    wait_id = small.ask()
    path = small.link(wait_id)
    token = path.removeprefix("/w/")
    client = httpx.Client()

    def broken(_):
        raise RuntimeError("broken on purpose")

    with caplog.at_level(logging.DEBUG), running_server(create_app(small.app, Settings(**SETTINGS))) as address:
        client.get(f"{address}{path}")
        client.post(f"{address}/w/{token}x", json={"action": "approve"})
        monkeypatch.setattr(small.store, "wait_and_parts", broken)
        assert client.get(f"{address}{path}").status_code == 500
        monkeypatch.undo()
        client.post(f"{address}{path}", json={"action": "approve"})

    client.close()
    ours = [record for record in caplog.records if not record.name.startswith(("httpx", "httpcore"))]
    assert any("broken on purpose" in str(record.exc_info) for record in ours)
    shown = [logging.Formatter().format(record) for record in ours]
    assert not [line for line in shown if token in line or token[:36] in line]


def test_knocking_at_links_is_limited_by_address(small):
    limits = LimitSettings(public_rate=1, public_burst=3)
    api = create_app(small.app, Settings(**{**SETTINGS, "limits": limits}))

    with running_server(api) as address, httpx.Client() as client:
        codes = [client.get(f"{address}/w/guess", headers=BROWSER).status_code for _ in range(5)]

    assert codes == [404, 404, 404, 429, 429]
