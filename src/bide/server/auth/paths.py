"""The path of a request as routes see it, and the address that it came from."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv6Address, ip_address
from typing import Any

from starlette.types import Scope


def path_of(scope: Scope) -> str:
    """Return the path, without where the server is mounted."""
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    if root and path.startswith(root) and path[len(root) : len(root) + 1] in ("", "/"):
        return path[len(root) :] or "/"
    return path


def routes_of(served: Any) -> Iterator[Any]:
    """Give every route of an application or a router, also of routers inside it."""
    for route in getattr(served, "routes", ()):
        # Newer releases of FastAPI keep an included router whole, older ones copy its routes.
        inner = getattr(route, "original_router", None)
        if inner is None:
            yield route
        else:
            yield from routes_of(inner)


def address_of(scope: Scope) -> str:
    """Return where a request comes from: of IPv6 the network, since one customer has 2⁶⁴ addresses."""
    client = scope.get("client")
    if not client:
        return ""  # a Unix socket: all who come through it are one
    try:
        address = ip_address(client[0])
    except ValueError:
        return str(client[0])
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(IPv6Address(int(address) >> 64 << 64))
    return str(address)
