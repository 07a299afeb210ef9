"""Pages of strangers: what a browser does by itself must not be done for a page of somebody else.

Where a browser shows who it is without being asked, by a cookie or because nobody is asked at all, any page on the
internet could make it send a request here. Browsers say where a request comes from; programs do not, and need not.
"""

from __future__ import annotations

import hmac
from ipaddress import ip_address
from urllib.parse import SplitResult, parse_qs, urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import Scope

from bide.server.auth.access import is_safe
from bide.server.auth.binding import is_loopback
from bide.server.auth.refusal import Refused
from bide.server.settings import Settings

CSRF_HEADER, CSRF_FIELD = "x-csrf-token", "csrf"
MOST_FIELDS = 1000


def check_origin(scope: Scope, settings: Settings) -> None:
    """Refuse what a page of another origin has a browser do, unless that origin was named.

    A socket is not held back by CORS, and reads: it is checked as what changes something is.
    """
    if scope["type"] == "http" and is_safe(scope["method"]):
        return
    headers = Headers(scope=scope)
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if origin is None:
        is_strange = site not in (None, "none", "same-origin")
    else:
        own = {headers.get("host", "").lower(), _split(settings.public_url or "").netloc.lower()} - {""}
        is_strange = _split(origin).netloc.lower() not in own and origin not in settings.cors.origins
    if is_strange:
        raise Refused(
            403,
            f"This was sent by a page of another origin ({origin or site}). If that page is yours, name its origin in "
            f"[cors] origins.",
        )


def check_host(scope: Scope, settings: Settings) -> None:
    """Refuse a name that is not this server's: a page could let a name of its own lead here (DNS rebinding).

    Checked only where nobody is asked who they are. Addresses and names without a dot cannot be somebody's on the
    internet.
    """
    host = Headers(scope=scope).get("host", "").lower()
    name = _split(f"//{host}").hostname or host
    if "." not in name or is_loopback(name) or _is_address(name) or name == "host.docker.internal":
        return
    if name == (_split(settings.public_url or "").hostname or ""):
        return
    raise Refused(
        403,
        f"This server does not know itself by the name {name[:80]!r}, and asks nobody who they are. Turn "
        f"authentication on, or say in [server] public_url where people reach it.",
    )


async def check_csrf(request: Request, wanted: str) -> None:
    """Refuse what was not sent by one of our own pages: they say again what only they could read."""
    if is_safe(request.method):
        return
    said = request.headers.get(CSRF_HEADER, "")
    if not said and request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        said = _field(await request.body())
    if not hmac.compare_digest(said.encode(), wanted.encode()):
        raise Refused(403, f"The page has no valid {CSRF_HEADER}: load it again, and try once more. Nothing was done.")


def _field(body: bytes) -> str:
    try:
        found = parse_qs(body.decode("utf-8", "replace"), max_num_fields=MOST_FIELDS).get(CSRF_FIELD, [""])
    except ValueError:
        return ""
    return found[0] if len(found) == 1 else ""


def _split(url: str) -> SplitResult:
    """Take an address apart; one that cannot be read leads nowhere."""
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
