"""What a store may be told, whichever database it is in; a mistake is found before anything is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from bide.clock import Clock
from bide.errors import StoreError, did_you_mean
from bide.store.seal import Seal
from bide.store.workers import LONGEST_LEASE, SHORTEST_LEASE

if TYPE_CHECKING:
    from bide.store.retention import Retention


class StoreOptions(TypedDict, total=False):
    """What a store may be told, whichever database it is in."""

    clock: Clock | None
    encryption: Seal | None
    owner: str
    largest_value: int
    retention: Retention | None
    lease: float


def check_options(options: Any) -> None:
    """Refuse an option that nobody knows, or that is not what it should be."""
    for name, value in options.items():
        if name not in StoreOptions.__annotations__:
            hint = did_you_mean(name, StoreOptions.__annotations__)
            raise StoreError(
                f"A store has no option {name!r}.{hint} There are {', '.join(StoreOptions.__annotations__)}; for "
                f"PostgreSQL also schema and most_connections."
            )
        wanted = _MISTAKES.get(name)
        if wanted is not None and value is not None and not wanted[0](value):
            raise StoreError(f"{name}={_shown(name, value)} is not what it should be: {wanted[1]}.")


def _shown(name: str, value: Any) -> str:
    return "…" if name == "encryption" else repr(value)


_MISTAKES: dict[str, tuple[Any, str]] = {
    "encryption": (lambda given: hasattr(given, "fingerprint"), "give Encryption({'an-id': key}), not the key itself"),
    "retention": (lambda given: hasattr(given, "seconds_between"), "give Retention(keep_last=50, ttl='30d')"),
    "owner": (lambda given: isinstance(given, str), "give a text"),
    "largest_value": (
        lambda given: isinstance(given, int) and not isinstance(given, bool) and given > 0,
        "give a number of bytes, as 64 * 1024 * 1024",
    ),
    "lease": (
        lambda given: (
            isinstance(given, int | float) and not isinstance(given, bool) and SHORTEST_LEASE <= given <= LONGEST_LEASE
        ),
        f"give seconds, from {SHORTEST_LEASE} to {LONGEST_LEASE:.0f}, as 30",
    ),
}
