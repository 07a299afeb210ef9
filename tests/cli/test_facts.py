"""Facts at the terminal: deliveries, and why they did or did not wake somebody."""

from __future__ import annotations

import json

import pytest

from tests.cli.terminal import Terminal


def test_event_wakes_who_waits_for_it(terminal: Terminal):
    terminal.start("payments", "p1", {"amount": 9})

    seen = terminal.see("deliver", "paid", '{"amount": 9}')
    terminal.work()

    assert seen == "✓ The event 'paid' woke 1 wait (p1).\n"
    assert terminal.ask("show", "p1")["thread"]["values"] == {"amount": 9, "note": "9"}


def test_event_that_nobody_waits_for_stays_and_is_found_later(terminal: Terminal):
    terminal.see("migrate")
    result = terminal.type("deliver", "paid", '{"amount": 9}')
    terminal.start("payments", "p1", {"amount": 9})
    terminal.work()

    assert "is stored. Nobody waits for it yet" in result.stdout
    assert "Why: bide explain" in result.stderr
    assert terminal.ask("show", "p1")["thread"]["status"] == "done"


def test_same_fact_again_changes_nothing(terminal: Terminal):
    terminal.start("payments", "p1", {"amount": 9})

    first = terminal.ask("deliver", "paid", '{"amount": 9}', "--id", "bank-1")
    again = terminal.type("deliver", "paid", '{"amount": 9}', "--id", "bank-1")

    assert first["delivery"]["is_new"] is True
    assert first["delivery"]["threads"] == ["p1"]
    assert again.stdout == "✓ The event 'paid' came before, and woke 1 wait; nothing was changed.\n"


def test_dry_run_explains_who_would_not_wake_and_delivers_nothing(terminal: Terminal):
    terminal.start("payments", "p1", {"amount": 9})

    result = terminal.type("deliver", "paid", '{"amount": 8}', "--dry-run")

    assert result.exit_code == 0
    assert "The event 'paid' fits none of the 1 condition(s)" in result.stdout
    assert f"✗ thread p1, wait {terminal.wait_of('p1')[:8]} (event)" in result.stdout
    assert "payload.amount is 8, not 9" in result.stdout
    assert "Nothing was delivered" in result.stderr
    assert terminal.ask("deliveries") == {"deliveries": []}


def test_dry_run_tells_who_would_wake(terminal: Terminal):
    terminal.start("payments", "p1", {"amount": 9})

    explanation = terminal.ask("deliver", "paid", '{"amount": 9}', "--dry-run")["explanation"]

    assert [(one["thread_id"], one["fits"]) for one in explanation["verdicts"]] == [("p1", True)]


@pytest.mark.parametrize("typed", ["-", "@payment.json"])
def test_payload_comes_from_a_pipe_or_a_file(terminal: Terminal, typed: str):
    (terminal.folder / "payment.json").write_text('{"amount": 9}', encoding="utf-8")
    terminal.start("payments", "p1", {"amount": 9})

    delivery = terminal.ask("deliver", "paid", typed, stdin='{"amount": 9}')["delivery"]

    assert delivery["status"] == "matched"


@pytest.mark.parametrize(
    ("kind", "payload"), [("webhook", {"order": 1}), ("email", {"from": "ann@example.org", "subject": "Hello"})]
)
def test_webhooks_and_mails_are_facts_like_events(terminal: Terminal, kind: str, payload: dict[str, object]):
    terminal.see("migrate")

    delivery = terminal.ask("deliver", "support", json.dumps(payload), "--kind", kind)["delivery"]

    assert (delivery["kind"], delivery["status"], delivery["payload"]) == (kind, "unmatched", payload)


def test_mail_that_is_none_is_not_valid(terminal: Terminal):
    terminal.see("migrate")

    code, said = terminal.fail("deliver", "support", '"hello"', "--kind", "email")

    assert code == 5
    assert "A mail is a dict" in said


def test_deliveries_are_listed_newest_first(terminal: Terminal):
    terminal.start("payments", "p1", {"amount": 9})
    terminal.see("deliver", "paid", '{"amount": 9}')
    terminal.pass_time(minutes=5)
    lost = terminal.ask("deliver", "paid", '{"amount": 7}')["delivery"]["id"]

    lines = terminal.see("deliveries").splitlines()
    only_lost = terminal.ask("deliveries", "--unmatched")["deliveries"]

    assert lines[0].split() == ["DELIVERY", "KIND", "NAME", "STATUS", "CAME", "PAYLOAD"]
    assert lines[1].split(maxsplit=5) == [lost, "event", "paid", "unmatched", "just", 'now   {"amount": 7}']
    assert "matched     5m ago" in lines[2]
    assert [one["id"] for one in only_lost] == [lost]


def test_explain_tells_what_a_wait_needs(terminal: Terminal):
    terminal.start("payments", "p1", {"amount": 9})
    terminal.see("deliver", "paid", '{"amount": 7}')

    by_thread, by_id = terminal.see("explain", "p1"), terminal.see("explain", terminal.wait_of("p1")[:8])

    assert "of thread p1 needs the event 'paid'" in by_thread
    assert by_thread == by_id


def test_explain_tells_why_a_delivery_woke_nobody(terminal: Terminal):
    terminal.start("payments", "p1", {"amount": 9})
    delivery = terminal.ask("deliver", "bought", '{"amount": 9}')["delivery"]["id"]

    seen = terminal.see("explain", delivery)

    assert "The event 'bought' fits none of the 1 condition(s)" in seen
    assert "the event is 'bought', not 'paid'" in seen
