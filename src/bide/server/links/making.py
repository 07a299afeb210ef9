"""Links made, for whoever asks with a key: who is to decide what, and until when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from bide.clock import uuid7
from bide.runtime.open_waits import is_open
from bide.runtime.reading import wait_of
from bide.server.context import Context
from bide.server.links.offers import ANY, offer_of
from bide.server.links.tokens import PURPOSE, question_digest, token_of
from bide.server.problems import Problem, not_found
from bide.store.queue_rows import WaitView
from bide.store.secret_keys import SecretKeys
from bide.store.signed_links import LinkRow, put_link
from bide.waits.durations import Duration, milliseconds
from bide.waits.texts import is_line

DEFAULT = "7d"
"""How long a link is good for, if nobody says."""
LONGEST = 366 * 24 * 3600 * 1000
LONGEST_RECIPIENT = 320
"""As long as a mail address may be."""


@dataclass(frozen=True, slots=True)
class MadeLink:
    """A link, and its address: it is told once, and is a secret of the recipient."""

    link: LinkRow
    url: str


def make_link(
    server: Context,
    wait_id: str,
    actions: Sequence[str] = (ANY,),
    recipient: str = "",
    expires: Duration = DEFAULT,
    *,
    leaf: str = "",
    base: str | None = None,
) -> MadeLink:
    """Make a link by which `recipient` may decide about an open wait, with one of `actions`, once.

    `expires` is how long from now it is good for. `leaf` names the part of a wait that needs several decisions. The
    address begins with the server's `public_url`, or else with `base`. Whose wait it is was checked before.
    """
    store = server.app.store
    row = store.wait(wait_id)
    if row is None:
        raise not_found("wait", wait_id)
    if not is_open(row):
        raise Problem(409, f"Wait {wait_id} is {row.status.value}: there is nothing left to decide.")
    chosen = _checked_actions(server, row, actions, leaf)
    if not is_line(recipient, LONGEST_RECIPIENT):
        raise Problem(422, f"A recipient is one line of at most {LONGEST_RECIPIENT} characters.")
    length = milliseconds(expires, "expires")
    if not 1000 <= length <= LONGEST:
        raise Problem(422, "A link is good for at least a second and at most 366 days: expires='7d'.")
    now = store.clock.now()
    link = LinkRow(uuid7(now), wait_id, row.owner, recipient, chosen, leaf, question_digest(row), now, now + length)
    address = f"{_base(server, base)}/w/{token_of(link, SecretKeys(store, PURPOSE).current())}"
    put_link(store, link)
    return MadeLink(link, address)


def _checked_actions(server: Context, row: WaitView, actions: Sequence[str], leaf: str) -> tuple[str, ...]:
    offer = offer_of(row, wait_of(server.app.graphs, row), leaf)
    chosen = tuple(dict.fromkeys(actions))
    unknown = [one for one in chosen if one != ANY and one not in offer.options]
    if not chosen or unknown:
        wrong = f"{unknown[0]!r} cannot be decided here" if unknown else "a link must be good for something"
        raise Problem(422, f"Wait {row.wait_id}: {wrong}. There is: {', '.join(offer.options)}, or {ANY!r} for all.")
    return (ANY,) if ANY in chosen else chosen


def _base(server: Context, base: str | None) -> str:
    found = (server.settings.public_url or base or "").rstrip("/")
    if urlsplit(found).scheme not in ("http", "https"):
        raise Problem(
            422, "Nobody has said where this server is reached: set its public_url, as 'https://bide.example'."
        )
    return found
