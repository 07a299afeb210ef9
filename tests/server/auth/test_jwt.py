"""JSON Web Tokens: whose signature counts, for which service, for how long; and the ways to forge one."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from bide.errors import SettingsError
from bide.server import Settings
from bide.server.auth import jwks as jwks_module
from bide.server.auth.tokens import Tokens
from bide.server.settings import AuthSettings
from bide.store import Store
from tests.server.auth.doors import RUNS, WHO, FakeClock, serving

SECRET = "a shared secret of more than thirty-two bytes"
ISSUER, AUDIENCE = "https://issuer.example", "bide"
RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC_KEY = ec.generate_private_key(ec.SECP256R1())


def claims(clock: FakeClock, **more: Any) -> dict[str, Any]:
    now = clock.now() // 1000
    said = {"sub": "ada", "iss": ISSUER, "aud": AUDIENCE, "exp": now + 600, "iat": now, **more}
    return {name: value for name, value in said.items() if value is not None}


def shared(**more: Any) -> Settings:
    return with_jwt(secret=SECRET, **more)


def with_jwt(**said: Any) -> Settings:
    return Settings(auth=AuthSettings("jwt", jwt={"issuer": ISSUER, "audience": AUDIENCE, **said}))


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def jwk(key: Any, kid: str, **more: Any) -> dict[str, Any]:
    algorithm = jwt.algorithms.RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else jwt.algorithms.ECAlgorithm
    return {**json.loads(algorithm.to_jwk(key.public_key())), "kid": kid, "use": "sig", **more}


def status(store: Store, settings: Settings, token: str) -> int:
    with serving(store, settings) as client:
        return client.get(WHO, headers=bearer(token)).status_code


def test_token_says_who_calls_for_whom_and_with_which_scopes(store: Store, clock: FakeClock):
    said = claims(clock, tenant="acme", scope="openid bide:read run", name="Ada L.")
    token = jwt.encode(said, SECRET, "HS256")

    with serving(store, shared(owner_claim="tenant")) as client:
        found = client.get(WHO, headers=bearer(token)).json()
        refused = client.get("/keys", headers=bearer(token))

    assert (found["identity"], found["owner"], found["scopes"]) == ("ada", "acme", ["read", "run"])
    assert refused.status_code == 403


def test_token_without_scopes_may_do_all_but_what_admins_do(store: Store, clock: FakeClock):
    token = jwt.encode(claims(clock), SECRET, "HS256")

    with serving(store, shared()) as client:
        found = client.get(WHO, headers=bearer(token)).json()

    assert (found["owner"], found["scopes"]) == ("ada", ["read", "resolve", "run"])


def test_token_whose_scopes_are_all_somebody_elses_may_do_nothing(store: Store, clock: FakeClock):
    token = jwt.encode(claims(clock, scope="openid profile"), SECRET, "HS256")

    with serving(store, shared()) as client:
        assert client.post(RUNS, headers=bearer(token)).status_code == 403


@pytest.mark.parametrize(
    "wrong",
    [
        {"exp": None},
        {"exp": 1},
        {"exp": "soon"},
        {"exp": True},
        {"nbf": 4_000_000_000},
        {"iat": 4_000_000_000},
        {"iss": "https://elsewhere.example"},
        {"iss": None},
        {"aud": "another service"},
        {"aud": None},
        {"sub": None},
        {"sub": ""},
    ],
    ids=str,
)
def test_token_with_a_wrong_claim_is_refused(store: Store, clock: FakeClock, wrong):
    token = (
        jwt.encode({**claims(clock, **wrong)}, SECRET, "HS256", headers={"typ": "JWT"})
        if wrong != {"exp": True}
        else (jwt.encode({**claims(clock), "exp": True}, SECRET, "HS256"))
    )

    assert status(store, shared(), token) == 401


def test_token_ends_when_it_says_so_by_the_stores_clock(store: Store, clock: FakeClock):
    token = jwt.encode(claims(clock), SECRET, "HS256")

    with serving(store, shared(leeway=0)) as client:
        clock.advance(599)
        before = client.get(WHO, headers=bearer(token)).status_code
        clock.advance(1)
        after = client.get(WHO, headers=bearer(token))

    assert (before, after.status_code) == (200, 401)
    assert 'error="invalid_token"' in after.headers["www-authenticate"]


def test_token_signed_with_another_secret_is_refused(store: Store, clock: FakeClock):
    assert status(store, shared(), jwt.encode(claims(clock), SECRET + "x", "HS256")) == 401


def test_token_whose_claims_were_changed_is_refused(store: Store, clock: FakeClock):
    head, _, signature = jwt.encode(claims(clock), SECRET, "HS256").split(".")
    forged = urlsafe_b64encode(json.dumps(claims(clock, sub="eve")).encode()).decode().rstrip("=")

    assert status(store, shared(), f"{head}.{forged}.{signature}") == 401


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "nOnE"])
def test_token_without_a_signature_is_refused(store: Store, clock: FakeClock, algorithm):
    head = urlsafe_b64encode(json.dumps({"alg": algorithm, "typ": "JWT"}).encode()).decode().rstrip("=")
    body = urlsafe_b64encode(json.dumps(claims(clock)).encode()).decode().rstrip("=")

    assert status(store, shared(), f"{head}.{body}.") == 401


def test_public_key_is_not_taken_for_a_shared_secret(store: Store, clock: FakeClock, tmp_path):
    """The classic: whoever knows the public key signs with it as if it were the secret of HS256."""
    pem = RSA_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    head = urlsafe_b64encode(json.dumps({"alg": "HS256", "typ": "JWT", "kid": "one"}).encode()).decode().rstrip("=")
    body = urlsafe_b64encode(json.dumps(claims(clock)).encode()).decode().rstrip("=")
    signature = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(f"{head}.{body}".encode(), pem)
    forged = f"{head}.{body}.{urlsafe_b64encode(signature).decode().rstrip('=')}"
    (tmp_path / "keys.json").write_text(json.dumps({"keys": [jwk(RSA_KEY, "one")]}))

    by_pem = status(store, with_jwt(key=pem.decode()), forged)
    by_set = status(store, with_jwt(jwks=str(tmp_path / "keys.json")), forged)

    assert (by_pem, by_set) == (401, 401)


def test_keys_of_a_file_check_tokens_of_both_kinds(store: Store, clock: FakeClock, tmp_path):
    (tmp_path / "keys.json").write_text(json.dumps({"keys": [jwk(RSA_KEY, "one"), jwk(EC_KEY, "two")]}))
    settings = with_jwt(jwks=str(tmp_path / "keys.json"))
    tokens = {
        "good RSA": jwt.encode(claims(clock), RSA_KEY, "RS256", headers={"kid": "one"}),
        "good EC": jwt.encode(claims(clock), EC_KEY, "ES256", headers={"kid": "two"}),
        "another's key": jwt.encode(claims(clock), OTHER_KEY, "RS256", headers={"kid": "one"}),
        "no such id": jwt.encode(claims(clock), RSA_KEY, "RS256", headers={"kid": "three"}),
        "not pinned": jwt.encode(claims(clock), RSA_KEY, "RS512", headers={"kid": "one"}),
        "kinds mixed up": jwt.encode(claims(clock), EC_KEY, "ES256", headers={"kid": "one"}),
    }

    found = {name: status(store, settings, token) for name, token in tokens.items()}

    assert found == {name: 200 if name.startswith("good") else 401 for name in tokens}


def test_key_that_encrypts_or_is_pinned_otherwise_checks_nothing(store: Store, clock: FakeClock, tmp_path):
    keys = [jwk(RSA_KEY, "enc", use="enc"), jwk(RSA_KEY, "other", alg="RS384"), jwk(EC_KEY, "fine")]
    (tmp_path / "keys.json").write_text(json.dumps({"keys": keys}))
    settings = with_jwt(jwks=str(tmp_path / "keys.json"))

    found = [
        status(store, settings, jwt.encode(claims(clock), RSA_KEY, "RS256", headers={"kid": kid}))
        for kid in ("enc", "other")
    ]

    assert found == [401, 401]


class Issuer:
    """Somebody who publishes keys, on a port of this machine, and counts who asks."""

    def __init__(self) -> None:
        self.keys: list[dict[str, Any]] = []
        self.asked = 0
        self.status = 200

    def __enter__(self) -> Issuer:
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                issuer.asked += 1
                self.send_response(issuer.status)
                if issuer.status == 302:
                    self.send_header("Location", "/elsewhere")
                self.end_headers()
                self.wfile.write(json.dumps({"keys": issuer.keys}).encode())

            def log_message(self, *_: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/keys"
        self.thread = Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    with Issuer() as running:
        yield running


def test_keys_of_a_url_are_kept_and_a_new_one_is_found_when_it_is_used(store: Store, clock: FakeClock, issuer: Issuer):
    issuer.keys = [jwk(RSA_KEY, "old")]
    old = jwt.encode(claims(clock, exp=clock.now() // 1000 + 9999), RSA_KEY, "RS256", headers={"kid": "old"})
    new = jwt.encode(claims(clock, exp=clock.now() // 1000 + 9999), OTHER_KEY, "RS256", headers={"kid": "new"})

    with serving(store, with_jwt(jwks=issuer.url)) as client:
        first = [client.get(WHO, headers=bearer(old)).status_code for _ in range(3)]
        asked = issuer.asked
        issuer.keys = [jwk(RSA_KEY, "old"), jwk(OTHER_KEY, "new")]
        clock.advance(11)
        rotated = client.get(WHO, headers=bearer(new)).status_code
        issuer.keys = [jwk(OTHER_KEY, "new")]
        clock.advance(301)
        withdrawn = client.get(WHO, headers=bearer(old)).status_code

    assert (first, asked, rotated, withdrawn) == ([200, 200, 200], 1, 200, 401)


def test_whoever_invents_ids_of_keys_does_not_make_us_ask_each_time(store: Store, clock: FakeClock, issuer: Issuer):
    issuer.keys = [jwk(RSA_KEY, "one")]
    invented = [jwt.encode(claims(clock), OTHER_KEY, "RS256", headers={"kid": f"k{n}"}) for n in range(10)]

    with serving(store, with_jwt(jwks=issuer.url)) as client:
        found = {client.get(WHO, headers=bearer(token)).status_code for token in invented}

    assert (found, issuer.asked) == ({401}, 1)


def test_known_keys_count_for_an_hour_while_their_issuer_is_away(
    store: Store, clock: FakeClock, issuer: Issuer, caplog
):
    issuer.keys = [jwk(RSA_KEY, "one")]
    token = jwt.encode(claims(clock, exp=clock.now() // 1000 + 9999), RSA_KEY, "RS256", headers={"kid": "one"})

    with serving(store, with_jwt(jwks=issuer.url)) as client:
        found = [client.get(WHO, headers=bearer(token)).status_code]
        issuer.status = 500
        for seconds in (jwks_module.FRESH // 1000, jwks_module.STALE // 1000):
            clock.advance(seconds)
            found.append(client.get(WHO, headers=bearer(token)).status_code)

    assert found == [200, 200, 503]
    assert "cannot be read" in caplog.text


def test_keys_are_not_read_from_where_a_redirect_leads(store: Store, clock: FakeClock, issuer: Issuer):
    issuer.keys, issuer.status = [jwk(RSA_KEY, "one")], 302

    found = status(
        store, with_jwt(jwks=issuer.url), jwt.encode(claims(clock), RSA_KEY, "RS256", headers={"kid": "one"})
    )

    assert (found, issuer.asked) == (503, 1)


@pytest.mark.parametrize("text", ["", ".", "..", "a.b", "a.b.c", "a.b.c.d", "\x00", "e30.e30.e30", "🗝" * 9])
def test_garbage_is_refused(store: Store, text):
    with pytest.raises(Exception, match="refused"):
        Tokens(shared().auth.jwt, store.clock).caller(text)


@pytest.mark.parametrize(
    "said",
    [
        {},
        {"secret": SECRET, "issuer": ""},
        {"secret": SECRET, "audience": None},
        {"secret": "short"},
        {"secret": SECRET, "jwks": "keys.json"},
        {"secret": SECRET, "algorithms": ["none"]},
        {"secret": SECRET, "algorithms": ["RS256"]},
        {"jwks": "keys.json", "algorithms": ["HS256", "RS256"]},
        {"jwks": "http://issuer.example/keys"},
        {"jwks": "ftp://issuer.example/keys"},
        {"secret": SECRET, "default_scopes": ["admin"]},
        {"secret": SECRET, "default_scopes": ["write"]},
        {"secret": SECRET, "isuer": "x"},
    ],
    ids=str,
)
def test_settings_that_would_leave_the_door_ajar_are_refused_at_the_start(store: Store, said):
    with pytest.raises(SettingsError), serving(store, with_jwt(**said)):
        pass
