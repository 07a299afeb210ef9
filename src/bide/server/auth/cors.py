"""Pages of other origins: none may call, unless they are named."""

from __future__ import annotations

from typing import Any

from bide.errors import SettingsError
from bide.server.settings import CorsSettings

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
HEADERS = (
    "authorization",
    "content-type",
    "idempotency-key",
    "if-match",
    "last-event-id",
    "prefer",
    "x-api-key",
    "x-auth-scheme",
    "x-csrf-token",
    "x-request-id",
)
EXPOSED = ("content-location", "location", "x-pagination-total", "x-pagination-next", "x-request-id", "retry-after")
"""Without these a browser's client cannot reconnect, page or wait: they are hidden from scripts by default."""


def cors_options(settings: CorsSettings) -> dict[str, Any]:
    """Return what Starlette's middleware is to be told, or refuse settings that would open the door to everybody."""
    if settings.credentials and "*" in settings.origins:
        raise SettingsError(
            "CORS with credentials for every origin ('*') would let any page on the internet act for whoever is logged "
            "in. Name the origins, as in origins = ['https://chat.example.org'], or leave credentials out."
        )
    for origin in settings.origins:
        if origin != "*" and ("://" not in origin or origin.rstrip("/").count("/") != 2 or "*" in origin):
            raise SettingsError(
                f"{origin!r} is no origin: write scheme, host and port without a path, as browsers do: "
                f"'https://chat.example.org' or 'http://localhost:3000'."
            )
    return {
        "allow_origins": [origin.rstrip("/") for origin in settings.origins],
        "allow_methods": METHODS,
        "allow_headers": HEADERS,
        "allow_credentials": settings.credentials,
        "allow_private_network": settings.private_network,
        "expose_headers": EXPOSED,
    }
