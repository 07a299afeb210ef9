"""What conditions look at in a mail."""

from __future__ import annotations

import re
from typing import Any

from bide.waits.given import bare_id

MOST_REFERENCES = 50
"""How many of the mails that a mail refers to count: the newest ones."""
LONGEST_ID = 1000
_LONGEST_LIST = 100_000
_ID = re.compile(r"<[^<>\s]+>|[^<>\s,]+")


def answered_ids(mail: dict[str, Any]) -> tuple[str, ...]:
    """Return the ids of the mails that this one answers: In-Reply-To, and the newest of References."""
    ids = [*_ids(mail.get("in_reply_to")), *_ids(mail.get("references"))[-MOST_REFERENCES:]]
    return tuple(dict.fromkeys(ids))


def _ids(header: object) -> list[str]:
    texts = header if isinstance(header, list | tuple) else [header]
    found = [one for text in texts if isinstance(text, str) and len(text) <= _LONGEST_LIST for one in _ID.findall(text)]
    bare = [bare_id(one) for one in found[-10 * MOST_REFERENCES :]]
    return [one for one in bare if 0 < len(one) <= LONGEST_ID]
