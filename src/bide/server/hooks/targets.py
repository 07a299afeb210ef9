"""Where webhooks may go: what a URL leads to is checked, and then exactly that is connected to.

Whoever may name a URL could otherwise let the server knock at doors of its own network. So a name is resolved once,
every address that it has must be one of the public internet, and the connection goes to the checked address itself: a
name that answers something else a moment later helps nobody. Redirects are not followed.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import SplitResult, quote, urlsplit

from bide.server.problems import Problem
from bide.server.settings import Settings

Address = IPv4Address | IPv6Address
Resolve = Callable[[str, int], Sequence[str]]
"""Gives all addresses of a name; raises OSError if it has none."""

LONGEST = 2048
DEFAULT_PORTS = {"http": 80, "https": 443}

# All that IANA has set apart, and one address at which machines of a cloud are told their secrets.
_NOT_PUBLIC = tuple(
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "168.63.129.16/32",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
# Of IPv6 only what is given to the public. Within it: Teredo and other protocols' own, 6to4, and for documentation.
# Addresses that hold an IPv4 address (mapped, compatible, NAT64) are outside of it.
_PUBLIC = IPv6Network("2000::/3")
_BUT_NOT = tuple(IPv6Network(network) for network in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"))

_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_OF_URLS = "/?&=%:;,+@!$'()*~-._"
"""What stands in a path or a query as it is."""
_NAMES_OF_NETWORKS = ("localhost", "local", "internal", "home.arpa")


class TargetError(ValueError):
    """A URL that no webhook is sent to; says why."""


@dataclass(frozen=True, slots=True)
class Target:
    """A URL taken apart."""

    scheme: str
    host: str
    """A name in ASCII, or an address."""
    port: int
    path: str

    @property
    def authority(self) -> str:
        """What stands in the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


def resolve(host: str, port: int) -> Sequence[str]:
    """Ask the machine's resolver."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def check_target(url: object, settings: Settings, resolve: Resolve = resolve) -> None:
    """Refuse a URL that a client wants to be called at, with 422; a name that has no address now may have one later."""
    try:
        target = read_target(url, settings)
        addresses_of(target, settings, resolve)
    except TargetError as problem:
        raise Problem(422, str(problem)) from None
    except OSError:
        return


# ── Taking a URL apart ─────────────────────────────────────────────────────────────────────────────────────────────


def read_target(url: object, settings: Settings) -> Target:
    """Take a URL apart, and refuse what could be read in two ways."""
    if not isinstance(url, str) or not 0 < len(url) <= LONGEST:
        raise TargetError(f"A webhook needs a URL of at most {LONGEST} characters.")
    if any(ord(character) <= 32 or ord(character) == 127 or character == "\\" for character in url):
        raise TargetError("The URL of a webhook must not hold blanks, control characters or backslashes.")
    if "#" in url:
        raise TargetError("The URL of a webhook must not hold a '#': what stands behind it is never sent.")
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as problem:
        raise TargetError(f"The URL of a webhook cannot be read: {problem}.") from None
    _check_scheme(parts, settings)
    if parts.username is not None or parts.password is not None:
        raise TargetError("The URL of a webhook must not hold a user or a password. Put a token into its path.")
    host = _host(parts.hostname or "")
    port = DEFAULT_PORTS[parts.scheme] if port is None else port
    _check_port(port, settings)
    _check_name(host, settings)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(parts.scheme, host, port, quote(path, safe=_OF_URLS))


def _check_scheme(parts: SplitResult, settings: Settings) -> None:
    if parts.scheme not in DEFAULT_PORTS:
        raise TargetError(f"A webhook is called by https, not by {parts.scheme or 'a URL without a scheme'!r}.")
    if parts.scheme == "http" and not settings.allow_private_targets:
        raise TargetError("A webhook is called by https: by http, others could read it on the way.")


def _host(given: str) -> str:
    """Return a host as it is connected to: an address in its one spelling, or a name in ASCII."""
    if ":" in given:
        if "%" in given:
            raise TargetError("The URL of a webhook names an address with a zone, which is of one machine only.")
        return str(_address(given))
    try:
        # Full-width digits and dots, and letters of any script, become what a resolver would make of them.
        name = given.encode("idna").decode("ascii").lower().removesuffix(".")
    except UnicodeError:
        raise TargetError(f"{given[:80]!r} is no host.") from None
    labels = name.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return str(_address(name))
    if len(name) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise TargetError(f"{given[:80]!r} is no host.")
    return name


def _address(text: str) -> Address:
    try:
        return ip_address(text)
    except ValueError:
        # 127.1, 0x7f000001, 017700000001: each program reads these in its own way.
        raise TargetError(f"{text[:80]!r} is no address. Write it in full, as 192.0.2.1 or [2001:db8::1].") from None


def _check_port(port: int, settings: Settings) -> None:
    ports = settings.webhook_ports
    if settings.allow_private_targets or (ports is None and port) or (ports is not None and port in ports):
        return
    allowed = "any" if ports is None else ", ".join(map(str, ports))
    raise TargetError(f"A webhook may not go to port {port} (allowed: {allowed}). The setting is webhook_ports.")


def _check_name(host: str, settings: Settings) -> None:
    is_inner = any(host == name or host.endswith(f".{name}") for name in _NAMES_OF_NETWORKS)
    if is_inner and not settings.allow_private_targets:
        raise _refusal(host)


# ── Where it leads ─────────────────────────────────────────────────────────────────────────────────────────────────


def addresses_of(target: Target, settings: Settings, resolve: Resolve = resolve) -> list[str]:
    """Return the addresses of a target, each of them checked; if one of them is not public, there are none."""
    try:
        given: Sequence[str] = [str(ip_address(target.host))]
    except ValueError:
        given = resolve(target.host, target.port)
    if not given:
        raise OSError(f"{target.host!r} has no address.")
    if not settings.allow_private_targets and not all(is_public(address) for address in given):
        raise _refusal(target.host)
    return list(given)


def is_public(address: str) -> bool:
    """Whether an address is one of the public internet."""
    try:
        found = ip_address(address)
    except ValueError:
        return False  # with a zone: of one machine only
    if isinstance(found, IPv4Address):
        return not any(found in network for network in _NOT_PUBLIC)
    return found in _PUBLIC and not any(found in network for network in _BUT_NOT)


def _refusal(host: str) -> TargetError:
    # Not what it leads to: a client must not learn from us what is in our network.
    return TargetError(
        f"A webhook may not go to {host!r}: it leads into a loopback, private or reserved IP range. Give an address "
        f"of the public internet, or let the server allow_private_targets."
    )
