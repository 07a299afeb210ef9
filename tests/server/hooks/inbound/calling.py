"""Calls as senders make them, signed by other code than ours: the standard library and `standardwebhooks`."""

from __future__ import annotations

import base64
import hmac
import json
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from standardwebhooks.webhooks import Webhook

from bide.server.settings import HookSettings

NOW = 1_767_258_000
"""The second in which the tests' clock stands: 2026-01-01 09:00 UTC."""
KEY = "whsec_" + base64.b64encode(b"a key of the sender, 32 bytes ..").decode()
NEXT_KEY = "whsec_" + base64.b64encode(b"the key that comes after it ....").decode()
SECRET, NEXT_SECRET = "it is a secret to everybody", "and this is the next one"
BODY = json.dumps({"id": "evt_1", "event_id": "Ev1", "order": 7, "note": "grüße"}, ensure_ascii=False).encode()

Headers = dict[str, str]


def standard(body: bytes = BODY, *, name: str = "msg_1", at: int = NOW, key: str = KEY) -> Headers:
    """Signed by the package of those who wrote the standard."""
    signed = Webhook(key).sign(name, datetime.fromtimestamp(at, UTC), body.decode())
    return {"webhook-id": name, "webhook-timestamp": str(at), "webhook-signature": signed}


def github(body: bytes = BODY, *, name: str = "guid-1", at: int = NOW, key: str = SECRET) -> Headers:
    digest = hmac.new(key.encode(), body, sha256).hexdigest()
    return {"X-GitHub-Delivery": name, "X-GitHub-Event": "push", "X-Hub-Signature-256": f"sha256={digest}"}


def stripe(body: bytes = BODY, *, name: str = "", at: int = NOW, key: str = SECRET) -> Headers:
    digest = hmac.new(key.encode(), f"{at}.".encode() + body, sha256).hexdigest()
    return {"Stripe-Signature": f"t={at},v0=6ffbb59b2300aae63f272406069a9788,v1={digest}"}


def slack(body: bytes = BODY, *, name: str = "", at: int = NOW, key: str = SECRET) -> Headers:
    digest = hmac.new(key.encode(), f"v0:{at}:".encode() + body, sha256).hexdigest()
    return {"X-Slack-Request-Timestamp": str(at), "X-Slack-Signature": f"v0={digest}"}


SIGNERS: dict[str, Callable[..., Headers]] = {"standard": standard, "github": github, "stripe": stripe, "slack": slack}
TIMED = ("standard", "stripe", "slack")
JSON = {"content-type": "application/json"}


def secrets_of(scheme: str) -> tuple[str, str]:
    """The secret of a scheme, and the one that comes after it."""
    return (KEY, NEXT_KEY) if scheme == "standard" else (SECRET, NEXT_SECRET)


def hook(scheme: Any, **more: Any) -> HookSettings:
    """A hook that is named as its scheme."""
    given: dict[str, Any] = {"secrets": () if scheme == "none" else secrets_of(scheme)[:1], **more}
    return HookSettings(given.pop("name", scheme), scheme, **given)
