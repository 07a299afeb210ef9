"""The token of a link: `{link id}.{end}.{key id}.{signature}`. Pure.

The signature is over all that the link is good for, a digest of the question included. So neither the token nor the
row of the link can be changed, and a question that is asked anew, in other words, voids the links to the old one.
"""

from __future__ import annotations

import base64
import hmac
import json
import re
from hashlib import sha256
from typing import NamedTuple

from bide.store.queue_rows import WaitView
from bide.store.secret_keys import SecretKey
from bide.store.signed_links import LinkRow

PURPOSE = "links"
"""Under which the keys that sign are kept."""
_TOKEN = re.compile(r"([0-9a-f-]{36})\.([0-9]{1,16})\.([0-9]{1,9})\.([A-Za-z0-9_-]{43})")


class Token(NamedTuple):
    """The parts of a token; nothing of it is believed yet."""

    link_id: str
    expires_at: str
    kid: str
    signature: str


def token_of(link: LinkRow, key: SecretKey) -> str:
    """Return the token of a link."""
    return ".".join((link.link_id, str(link.expires_at), key.kid, _signature(link, key.key)))


def read_token(text: str) -> Token | None:
    """Take a token apart; None when it is none."""
    found = _TOKEN.fullmatch(text)
    return None if found is None else Token(*found.groups())


def is_genuine(token: Token, link: LinkRow, key: bytes) -> bool:
    """Whether this token was made for this link with this key. Texts are compared, so it has one form only."""
    given = f"{token.expires_at}.{token.signature}"
    expected = f"{link.expires_at}.{_signature(link, key)}"
    return hmac.compare_digest(given.encode(), expected.encode())


def question_digest(row: WaitView) -> str:
    """Return a digest of what a wait asks; who is asked, and until when, may change without it."""
    asked = [row.question.hex(), row.needs.condition, row.needs.title, row.needs.schema]
    return sha256(json.dumps(asked, sort_keys=True, default=repr).encode()).hexdigest()


def _signature(link: LinkRow, key: bytes) -> str:
    # Written as JSON, so that no two links have the same text, whatever is in their parts.
    signed = json.dumps(
        [
            "bide link 1",
            link.link_id,
            link.wait_id,
            link.owner,
            link.recipient,
            list(link.actions),
            link.leaf,
            link.question,
            link.expires_at,
        ]
    )
    return base64.urlsafe_b64encode(hmac.digest(key, signed.encode(), sha256)).rstrip(b"=").decode()
