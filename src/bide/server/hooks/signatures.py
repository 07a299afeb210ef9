"""Whether a webhook comes from whom it should. Pure: bytes, headers, secrets and the time in, a verdict out.

    standard   webhook-id, webhook-timestamp, webhook-signature: `v1,` HMAC-SHA256 or `v1a,` Ed25519
    github     X-Hub-Signature-256
    stripe     Stripe-Signature: t=…,v1=…
    slack      X-Slack-Request-Timestamp, X-Slack-Signature: v0=…
    none       nothing is checked

What is signed are the bytes of the body as they came: a body that was parsed and written again has another signature.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from bide.clock import Instant

MOST_SIGNATURES = 20
"""So many of one call are looked at: who changes keys sends two."""
_SECONDS = re.compile(r"[0-9]{1,12}")
_PUBLIC = "whpk_"


class Forged(Exception):
    """A call that is not believed; why is for the log, and never for the caller."""


class Call(NamedTuple):
    """A call as it came."""

    headers: Mapping[str, str]
    """By their names in lower case."""
    body: bytes

    def header(self, name: str) -> str:
        """Return a header that must be there."""
        found = self.headers.get(name)
        if not found:
            raise Forged(f"the header {name} is missing")
        return found


class Trust(NamedTuple):
    """What a call is measured by."""

    secrets: Sequence[str]
    """One is enough; there are several while one is being replaced."""
    tolerance: int
    """Seconds that its timestamp may be off, either way."""
    now: Instant


def verify(scheme: str, call: Call, trust: Trust) -> None:
    """Raise `Forged` unless the call was signed with one of the secrets, lately."""
    _SCHEMES[scheme](call, trust)


def check_secret(scheme: str, secret: str) -> str | None:
    """Say what is wrong with a secret, before the first call comes; None if nothing is."""
    if not secret:
        return "it is empty"
    if scheme != "standard":
        return None
    try:
        key = _standard_key(secret)
    except ValueError:
        return "it is not base64; a secret of Standard Webhooks looks like 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw'"
    if secret.startswith(_PUBLIC) and len(key) != 32:
        return "it is no public key of Ed25519, which has 32 bytes"
    return None


# ── The schemes ────────────────────────────────────────────────────────────────────────────────────────────────────


def _standard(call: Call, trust: Trust) -> None:
    name, sent = call.header("webhook-id"), call.header("webhook-timestamp")
    # Id, timestamp and body are signed joined by dots. With a dot in the id, the same bytes could be cut elsewhere: a
    # captured call would come back as another one.
    if "." in name:
        raise Forged("its webhook-id has a dot in it")
    _check_time(sent, trust)
    signed = b"%b.%b.%b" % (_bytes(name), _bytes(sent), call.body)
    given = [part.partition(",") for part in call.header("webhook-signature").split()[:MOST_SIGNATURES]]
    symmetric = [_bytes(text) for version, _, text in given if version == "v1"]
    keys = [_standard_key(secret) for secret in trust.secrets if not secret.startswith(_PUBLIC)]
    expected = [base64.b64encode(hmac.digest(key, signed, sha256)) for key in keys]
    if _is_any(expected, symmetric):
        return
    public = [_standard_key(secret) for secret in trust.secrets if secret.startswith(_PUBLIC)]
    asymmetric = [text for version, _, text in given if version == "v1a"]
    if not any(_is_of_key(key, text, signed) for key in public for text in asymmetric):
        raise Forged("no signature fits")


def _github(call: Call, trust: Trust) -> None:
    given = call.header("x-hub-signature-256")
    _expect(trust.secrets, call.body, [given], before="sha256=")


def _stripe(call: Call, trust: Trust) -> None:
    parts = [part.strip().partition("=") for part in call.header("stripe-signature").split(",")]
    sent = [value for name, _, value in parts if name == "t"]
    if len(sent) != 1:
        raise Forged("Stripe-Signature has no t=, or several")
    _check_time(sent[0], trust)
    given = [value for name, _, value in parts if name == "v1"][:MOST_SIGNATURES]
    _expect(trust.secrets, b"%b.%b" % (_bytes(sent[0]), call.body), given)


def _slack(call: Call, trust: Trust) -> None:
    sent = call.header("x-slack-request-timestamp")
    _check_time(sent, trust)
    given = call.header("x-slack-signature")
    _expect(trust.secrets, b"v0:%b:%b" % (_bytes(sent), call.body), [given], before="v0=")


def _anybody(call: Call, trust: Trust) -> None:
    """Believe everybody: it was asked for by name."""


_SCHEMES: Mapping[str, Callable[[Call, Trust], None]] = {
    "standard": _standard,
    "github": _github,
    "stripe": _stripe,
    "slack": _slack,
    "none": _anybody,
}
SIGNATURE_HEADERS = frozenset({"webhook-signature", "x-hub-signature-256", "stripe-signature", "x-slack-signature"})


# ── Their parts ────────────────────────────────────────────────────────────────────────────────────────────────────


def _expect(secrets: Iterable[str], signed: bytes, given: Iterable[str], *, before: str = "") -> None:
    expected = [_bytes(before + hmac.new(secret.encode(), signed, sha256).hexdigest()) for secret in secrets]
    if not _is_any(expected, [_bytes(text) for text in given]):
        raise Forged("no signature fits")


def _is_any(expected: Iterable[bytes], given: Sequence[bytes]) -> bool:
    """Whether one of these is one of those. All are compared, so that the time tells nothing about which."""
    fits = [hmac.compare_digest(ours, theirs) for ours in expected for theirs in given]
    return any(fits)


def _is_of_key(public: bytes, text: str, signed: bytes) -> bool:
    from cryptography.exceptions import InvalidSignature  # only those whose partners sign so need it
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(public).verify(base64.b64decode(text, validate=True), signed)
    except (InvalidSignature, binascii.Error):
        return False
    return True


def _check_time(sent: str, trust: Trust) -> None:
    if not _SECONDS.fullmatch(sent):
        raise Forged("its timestamp is no number of seconds")
    off = abs(trust.now - int(sent) * 1000) // 1000
    if off > trust.tolerance:
        raise Forged(f"its timestamp is off by {off} seconds, and {trust.tolerance} are allowed")


def _standard_key(secret: str) -> bytes:
    text = secret.removeprefix("whsec_").removeprefix(_PUBLIC)
    return base64.b64decode(text, validate=True)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")
