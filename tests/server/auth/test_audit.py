"""The audit log: lines that are added, never changed, and seen by their owner alone."""

from __future__ import annotations

import pytest

from bide import Encryption
from bide.errors import CorruptDataError
from bide.runtime import Bide
from bide.server import Settings
from bide.server.auth.audit import audit
from bide.server.auth.keys import create_key
from bide.server.caller import Caller
from bide.server.context import Context
from bide.server.streams.hub import Hub
from bide.store import Store
from tests.server.auth.doors import FakeClock, serving
from tests.store.inspected import execute
from tests.stores import KINDS, opened_store


@pytest.fixture(params=KINDS)
def any_store(request, tmp_path, clock):
    with opened_store(request, tmp_path, clock=clock) as opened:
        yield opened


def test_lines_are_listed_newest_first_by_subject_and_by_thread(any_store: Store, clock: FakeClock):
    for number in range(5):
        any_store.audit_add(
            "ada", f"actor {number}", "wait.answer", f"w{number % 2}", outcome="accepted",
            thread_id="t" if number < 2 else None, details={"number": number, "via": ["http"]},
        )  # fmt: skip
        clock.advance(1)
    any_store.audit_add("bob", "bob", "wait.answer", "w0", outcome="refused", thread_id="t")

    everything = any_store.audit_entries("ada")
    of_subject = any_store.audit_entries("ada", subject="w0")
    of_thread = any_store.audit_entries("ada", thread_id="t")
    first = any_store.audit_entries("ada", most=2)
    rest = any_store.audit_entries("ada", before=first[-1].entry_id)

    assert [entry.details["number"] for entry in everything] == [4, 3, 2, 1, 0]
    assert [entry.details["number"] for entry in of_subject] == [4, 2, 0]
    assert [entry.details["number"] for entry in of_thread] == [1, 0]
    assert [*first, *rest] == list(everything)
    assert everything[0].details == {"number": 4, "via": ["http"]}
    assert (everything[0].actor, everything[0].outcome) == ("actor 4", "accepted")
    assert any_store.audit_entries("nobody") == []
    assert any_store.verify().is_sound


@pytest.mark.parametrize("column", ["actor", "action", "subject", "owner"])
def test_line_that_was_changed_behind_our_back_is_noticed(any_store: Store, column):
    any_store.audit_add("ada", "ada", "wait.answer", "w", outcome="accepted")

    execute(any_store, f"UPDATE audit SET {column} = 'ada2'")

    assert not any_store.verify().is_sound
    with pytest.raises(CorruptDataError):
        any_store.audit_entries("ada2" if column == "owner" else "ada")


def test_details_are_hidden_by_encryption_and_sealed_anew(tmp_path, clock):
    old, new = Encryption.generate_key(), Encryption.generate_key()
    url = f"sqlite:///{tmp_path / 'bide.db'}"
    with Store.open(url, clock=clock, encryption=Encryption({"old": old})) as store:
        store.audit_add("ada", "ada", "wait.answer", "w", outcome="accepted", details={"reason": "the secret one"})
    with Store.open(url, clock=clock, encryption=Encryption({"old": old, "new": new}, "new")) as store:
        assert store.reseal() == 1
    with Store.open(url, clock=clock, encryption=Encryption({"new": new})) as store:
        entries = store.audit_entries("ada")

    assert entries[0].details == {"reason": "the secret one"}
    assert b"the secret one" not in (tmp_path / "bide.db").read_bytes()


def test_helper_writes_who_called_for_whom(store: Store):
    app = Bide(store)
    context = Context(app, Settings(), Hub(store))
    caller = Caller(identity="key:1", owner="ada", display_name="Ada's phone")

    entry = audit(context, caller, "wait.answer", "w-1", "t-1", "late", via="link")

    assert store.audit_entries("ada", thread_id="t-1") == [entry]
    assert (entry.actor, entry.owner, entry.outcome) == ("key:1", "ada", "late")
    assert entry.details == {"name": "Ada's phone", "via": "link"}


def test_log_is_read_over_http_by_admins_of_the_owner(store: Store, clock: FakeClock):
    store.audit_add("ada", "link:7", "wait.answer", "w-1", outcome="accepted", thread_id="t-1")
    clock.advance(1)
    store.audit_add("bob", "key:2", "wait.answer", "w-2", outcome="accepted")
    admin, _ = create_key(store, "admin", "ada", ["admin"])
    reader, _ = create_key(store, "reader", "ada", ["read", "run", "resolve"])

    with serving(store, headers={"x-api-key": admin}) as client:
        found = client.get("/audit").json()
        by_subject = client.get("/audit", params={"subject": "w-2"}).json()
        by_thread = client.get("/audit", params={"thread_id": "t-1", "limit": 1}).json()
        nothing_before = client.get("/audit", params={"before": found[0]["entry_id"]}).json()
        both = client.get("/audit", params={"thread_id": "t-1", "subject": "w-1"}).status_code
        refused = client.get("/audit", headers={"x-api-key": reader}).status_code

    assert [(line["actor"], line["subject"], line["at"]) for line in found] == [
        ("link:7", "w-1", "2027-01-15T08:00:00+00:00")
    ]
    assert (by_subject, nothing_before, by_thread) == ([], [], found)
    assert (both, refused) == (422, 403)
