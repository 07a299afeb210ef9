"""Where a server may listen: what everybody may use is not shown to everybody."""

from __future__ import annotations

from ipaddress import ip_address

from bide.errors import SettingsError
from bide.server.settings import Settings


def is_loopback(host: str) -> bool:
    """Whether a name or address is reached from this machine alone."""
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name.partition("%")[0]).is_loopback
    except ValueError:
        return False


def check_binding(host: str, settings: Settings, *, insecure: bool = False) -> None:
    """Refuse to listen where others can come in while nobody is asked who they are."""
    if settings.auth.mode != "none" or is_loopback(host) or insecure:
        return
    raise SettingsError(
        f"The server would listen on {host!r}, where others can reach it, and asks nobody who they are: everybody "
        f'could read, start and approve everything. Turn authentication on ([auth] mode = "keys", and '
        f"`bide keys create`), listen on 127.0.0.1, or say --insecure if something in front of it keeps the door."
    )
