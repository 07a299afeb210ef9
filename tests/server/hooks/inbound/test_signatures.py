"""Who is believed: the signatures of four schemes, made by other code than ours, and everything that is not one."""

from __future__ import annotations

import base64
import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from standardwebhooks.webhooks import Webhook

from bide.server.hooks.signatures import Call, Forged, Trust, check_secret, verify
from tests.server.hooks.inbound.calling import BODY, KEY, NOW, SIGNERS, TIMED, secrets_of, standard

TOLERANCE = 300


def check(scheme: str, headers: dict[str, str], body: bytes = BODY, *, secrets: tuple[str, ...] = (), now: int = NOW):
    """Verify a call as the server does, whose headers have small letters."""
    call = Call({name.lower(): value for name, value in headers.items()}, body)
    verify(scheme, call, Trust(secrets or secrets_of(scheme)[:1], TOLERANCE, now * 1000))


@pytest.mark.parametrize("scheme", SIGNERS)
def test_what_the_sender_has_signed_is_believed(scheme):
    check(scheme, SIGNERS[scheme]())


# Published by the vendors themselves, so that both sides cannot be wrong in the same way.


def test_githubs_own_example_is_believed():
    digest = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"

    check(
        "github", {"X-Hub-Signature-256": f"sha256={digest}"}, b"Hello, World!", secrets=("It's a Secret to Everybody",)
    )


def test_slacks_own_example_is_believed():
    body = (
        b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name="
        b"foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks"
        b".slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121"
        b".803a0bc887a14d10d2c447fce8b6703c"
    )
    headers = {
        "X-Slack-Request-Timestamp": "1531420618",
        "X-Slack-Signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
    }

    check("slack", headers, body, secrets=("8f742231b10e8888abcd99yyyzzz85a5",), now=1531420618)


def test_the_standards_own_example_is_believed():
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }

    check(
        "standard",
        headers,
        b'{"test": 2432232314}',
        secrets=("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",),
        now=1614265330,
    )


@pytest.mark.parametrize("scheme", SIGNERS)
def test_a_signature_of_another_key_is_forged(scheme):
    with pytest.raises(Forged):
        check(scheme, SIGNERS[scheme](key=secrets_of(scheme)[1]))


@pytest.mark.parametrize("scheme", SIGNERS)
def test_both_keys_are_believed_while_one_is_being_replaced(scheme):
    old, new = secrets_of(scheme)

    for key in (old, new):
        check(scheme, SIGNERS[scheme](key=key), secrets=(new, old))
    with pytest.raises(Forged):
        check(scheme, SIGNERS[scheme](key=old), secrets=(new,))


@pytest.mark.parametrize("scheme", SIGNERS)
def test_a_changed_byte_of_the_body_is_noticed(scheme):
    headers = SIGNERS[scheme]()

    for place in range(len(BODY)):
        changed = bytearray(BODY)
        changed[place] ^= 1
        with pytest.raises(Forged):
            check(scheme, headers, bytes(changed))


@pytest.mark.parametrize("scheme", SIGNERS)
def test_a_body_that_was_read_and_written_again_is_not_what_was_signed(scheme):
    again = json.dumps(json.loads(BODY), separators=(",", ":")).encode()

    with pytest.raises(Forged):
        check(scheme, SIGNERS[scheme](), again)


@pytest.mark.parametrize("scheme", SIGNERS)
def test_a_header_that_is_missing_empty_or_nonsense_is_no_proof(scheme):
    good = SIGNERS[scheme]()
    proofs = [name for name in good if name not in ("X-GitHub-Delivery", "X-GitHub-Event")]

    for name in proofs:
        for value in ("", "x", "v1,", "t=,v1=", "sha256=", "ÿ" * 50, good[name][:-1], good[name] + "0"):
            with pytest.raises(Forged):
                check(scheme, {**good, name: value})
        with pytest.raises(Forged):
            check(scheme, {other: good[other] for other in good if other != name})


@pytest.mark.parametrize("scheme", TIMED)
@pytest.mark.parametrize("off", [TOLERANCE, -TOLERANCE])
def test_a_clock_may_be_off_by_the_tolerance_either_way_and_no_more(scheme, off):
    check(scheme, SIGNERS[scheme](at=NOW + off))

    with pytest.raises(Forged, match="off by 301 seconds"):
        check(scheme, SIGNERS[scheme](at=NOW + off + (1 if off > 0 else -1)))


@pytest.mark.parametrize("scheme", TIMED)
@pytest.mark.parametrize("odd", ["-1", "1e9", " 1767258000", "１７６７２５８０００", "0x69", "9" * 30, "1767258000.0"])
def test_a_timestamp_is_plain_digits(scheme, odd):
    headers = SIGNERS[scheme]()
    changed = {name: value.replace(str(NOW), odd) for name, value in headers.items()}

    with pytest.raises(Forged):
        check(scheme, changed)


def test_one_of_several_signatures_is_enough():
    ours, theirs = standard(), standard(key=secrets_of("standard")[1])
    both = f"v2,abc v1a,abc {theirs['webhook-signature']} {ours['webhook-signature']}"

    check("standard", {**ours, "webhook-signature": both})
    with pytest.raises(Forged):
        check("standard", {**ours, "webhook-signature": theirs["webhook-signature"]})


def test_an_id_with_a_dot_cannot_be_cut_elsewhere():
    # The sender signs the id "msg", its time, and a body that begins like a time.
    body = f"{NOW}.".encode() + BODY
    signed = standard(body, name="msg")

    # The same bytes, cut one dot later, are a call with another id; so no id may have a dot.
    moved = {**signed, "webhook-id": f"msg.{NOW}", "webhook-timestamp": str(NOW)}
    with pytest.raises(Forged, match="dot"):
        check("standard", moved, BODY)
    with pytest.raises(Forged, match="dot"):
        check("standard", standard(name="a.b"))


def test_a_public_key_is_enough_to_believe_whoever_signs_with_the_private_one():
    private = Ed25519PrivateKey.generate()
    public = "whpk_" + base64.b64encode(private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)).decode()
    signature = base64.b64encode(private.sign(f"msg_1.{NOW}.".encode() + BODY)).decode()
    headers = {"webhook-id": "msg_1", "webhook-timestamp": str(NOW), "webhook-signature": f"v1a,{signature}"}

    check("standard", headers, secrets=(KEY, public))

    with pytest.raises(Forged):
        check("standard", headers, BODY + b" ", secrets=(public,))
    with pytest.raises(Forged):
        check("standard", {**headers, "webhook-signature": f"v1,{signature}"}, secrets=(public,))
    # What is public is no key for HMAC: with it, anybody could sign.
    forged = Webhook("whsec_" + public.removeprefix("whpk_"))
    with pytest.raises(Forged):
        check("standard", standard(key=base64.b64encode(forged._whsecret).decode()), secrets=(public,))


def test_a_secret_that_cannot_be_one_is_refused_before_the_first_call():
    assert check_secret("standard", KEY) is None
    assert check_secret("github", "anything") is None
    assert "base64" in str(check_secret("standard", "not base64!"))
    assert "empty" in str(check_secret("stripe", ""))
    assert "32 bytes" in str(check_secret("standard", "whpk_" + base64.b64encode(b"short").decode()))
