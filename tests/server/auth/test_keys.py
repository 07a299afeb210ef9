"""API keys: what they open, for whom, for how long, and what is left of them in the database."""

from __future__ import annotations

import pytest

from bide import Encryption
from bide.errors import SettingsError
from bide.server.auth import keys
from bide.server.auth.keys import create_key, find_key, list_keys, revoke_key
from bide.server.caller import SCOPES
from bide.store import Store
from tests.server.auth.doors import ANSWERS, RUNS, WHO, FakeClock, serving
from tests.stores import KINDS, opened_store


@pytest.fixture(params=KINDS)
def any_store(request, tmp_path, clock):
    with opened_store(request, tmp_path, clock=clock) as opened:
        yield opened


def sent(key: str) -> dict[str, str]:
    return {"x-api-key": key}


def test_key_opens_the_door_for_its_owner_in_every_database(any_store: Store):
    key, row = create_key(any_store, "ada's laptop", "ada", ["read"])

    with serving(any_store) as client:
        by_header = client.get(WHO, headers=sent(key))
        by_bearer = client.get(WHO, headers={"Authorization": f"Bearer {key}"})

    assert by_header.json() == {"identity": f"key:{row.key_id}", "owner": "ada", "scopes": ["read"], "user": {}}
    assert by_bearer.json() == by_header.json()


@pytest.mark.seed("test_internal_auth.py::missing or wrong token is 403")
def test_without_a_key_nobody_comes_in_and_is_told_how(store: Store):
    """There it is 403. Here 401 is for who is not known, and 403 for who is known and may not."""
    with serving(store) as client:
        refused = client.get(WHO)

    assert refused.status_code == 401
    assert refused.headers["www-authenticate"].startswith("Bearer")
    assert "x-api-key" in refused.json()["detail"]


@pytest.mark.seed("test_internal_auth.py::missing or wrong token is 403")
@pytest.mark.parametrize(
    "change",
    [lambda key: key[:-1] + ("0" if key[-1] != "0" else "1"), str.upper, lambda key: key + "0", lambda key: "x"],
)
def test_key_that_is_a_little_off_opens_nothing(store: Store, change):
    key, _ = create_key(store, "one")

    with serving(store) as client:
        refused = client.get(WHO, headers=sent(change(key)))

    assert refused.status_code == 401


def test_revoked_key_opens_nothing_from_the_next_request_on(store: Store):
    key, row = create_key(store, "one")

    with serving(store) as client:
        before = client.get(WHO, headers=sent(key))
        assert revoke_key(store, row.key_id)
        after = client.get(WHO, headers=sent(key))

    assert (before.status_code, after.status_code) == (200, 401)
    assert not revoke_key(store, row.key_id)


def test_key_ends_at_the_instant_that_was_said(store: Store, clock: FakeClock):
    key, _ = create_key(store, "for an hour", expires=clock.now() + 3_600_000)

    clock.advance(3599)
    assert find_key(store, key) is not None
    clock.advance(1)

    assert find_key(store, key) is None


def test_only_a_hash_is_kept_of_a_key(any_store: Store):
    key, row = create_key(any_store, "one")

    kept = list_keys(any_store)

    secret = key.rpartition("_")[2]
    assert len(bytes.fromhex(secret)) == 32
    assert [one.key_id for one in kept] == [row.key_id]
    assert secret not in repr(kept)
    assert kept[0].hash == keys.hash_of(key)


def test_hashes_are_compared_in_constant_time_also_for_an_id_that_nobody_has(store: Store, monkeypatch):
    key, _ = create_key(store, "one")
    compared = []
    monkeypatch.setattr(keys.hmac, "compare_digest", lambda a, b: compared.append((a, b)) or a == b)

    assert find_key(store, key) is not None
    assert find_key(store, f"bide_{'0' * 16}_{'0' * 64}") is None

    assert [len(one) for pair in compared for one in pair] == [64, 64, 64, 64]


def test_last_use_is_noted_about_once_a_minute(store: Store, clock: FakeClock):
    key, row = create_key(store, "one")
    used = []

    with serving(store) as client:
        for seconds in (0, 30, 40):
            clock.advance(seconds)
            client.get(WHO, headers=sent(key))
            used.append(store.api_key(row.key_id).used_at - row.created_at)

    assert used == [0, 0, 70_000]


@pytest.mark.parametrize(
    ("scope", "allowed"),
    [("read", {WHO}), ("run", {RUNS}), ("resolve", {ANSWERS}), ("admin", {WHO, RUNS, ANSWERS, "/keys"})],
)
def test_key_is_good_for_its_scopes_alone(store: Store, scope, allowed):
    key, _ = create_key(store, "one", scopes=[scope])
    tried = {WHO: "GET", RUNS: "POST", ANSWERS: "POST", "/keys": "GET"}

    with serving(store) as client:
        found = {path: client.request(verb, path, headers=sent(key)).status_code for path, verb in tried.items()}

    assert found == {path: 200 if path in allowed else 403 for path in tried}


def test_address_that_nobody_has_thought_of_is_for_admins(store: Store):
    key, _ = create_key(store, "all but one", scopes=[scope for scope in SCOPES if scope != "admin"])

    with serving(store) as client:
        refused = client.get("/nowhere/in/the/table", headers=sent(key))

    assert refused.status_code == 403
    assert "'admin'" in refused.json()["detail"]


@pytest.mark.parametrize(
    ("name", "scopes", "past"), [("", ["read"], 0), ("n", [], 0), ("n", ["write"], 0), ("n", ["read"], 1)]
)
def test_key_that_cannot_be_meant_is_not_made(store: Store, clock: FakeClock, name, scopes, past):
    with pytest.raises(SettingsError):
        create_key(store, name, scopes=scopes, expires=clock.now() - past if past else None)

    assert list_keys(store) == []


def test_admin_makes_lists_and_revokes_keys_of_their_own_owner_alone(store: Store):
    admin, admins = create_key(store, "admin", "ada", ["admin"])
    _, other = create_key(store, "bob's", "bob")

    with serving(store, headers=sent(admin)) as client:
        made = client.post("/keys", json={"name": "new", "scopes": ["read"], "owner": "bob", "expires_in": 60}).json()
        listed = client.get("/keys").json()
        foreign = client.delete(f"/keys/{other.key_id}")
        revoked = client.delete(f"/keys/{made['key_id']}")
        refused = client.get(WHO, headers=sent(made["key"]))
        log = client.get("/audit").json()

    assert made["owner"] == "ada"
    assert {one["key_id"] for one in listed} == {made["key_id"], admins.key_id}
    assert "key" not in listed[0]
    assert (foreign.status_code, revoked.status_code, refused.status_code) == (404, 204, 401)
    assert store.api_key(other.key_id).revoked_at is None
    assert [(line["action"], line["outcome"]) for line in log] == [
        ("key.revoke", "accepted"),
        ("key.create", "accepted"),
    ]
    assert log[0]["actor"] == f"key:{admins.key_id}"


def test_keys_work_in_an_encrypted_store(tmp_path, clock):
    encryption = Encryption({"a": Encryption.generate_key()})
    with Store.open(f"sqlite:///{tmp_path / 'bide.db'}", encryption=encryption, clock=clock) as store:
        key, _ = create_key(store, "one", "ada")

        with serving(store) as client:
            found = client.get(WHO, headers=sent(key))

    assert found.json()["owner"] == "ada"
