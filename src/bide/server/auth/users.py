"""Users as an application's handler describes them: a name, a dict or an object, all read in one way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bide.server.caller import READ, RESOLVE, RUN, SCOPES, Caller

_NAMED = ("identity", "display_name", "is_authenticated", "permissions")


class User(Mapping[str, Any]):
    """A user: what was said of it by its name, as an attribute and as an item."""

    __slots__ = ("_said", "_values")

    def __init__(self, said: Any) -> None:
        self._said = said
        if isinstance(said, str):
            values: dict[str, Any] = {"identity": said}
        elif isinstance(said, Mapping):
            values = {str(name): value for name, value in said.items()}
        else:
            values = {name: getattr(said, name) for name in _NAMED if hasattr(said, name)}
            values |= _listed(said)
        if not isinstance(values.get("identity"), str) or not values["identity"]:
            raise TypeError(f"an identity is missing: it returned a {type(said).__name__} without a text in `identity`")
        self._values = values

    @property
    def identity(self) -> str:
        """Who it is."""
        return str(self._values["identity"])

    @property
    def display_name(self) -> str:
        """What people call it."""
        return str(self._values.get("display_name") or self.identity)

    @property
    def is_authenticated(self) -> bool:
        """Whether it is more than a guest."""
        return bool(self._values.get("is_authenticated", True))

    @property
    def permissions(self) -> Sequence[str]:
        """What it may do, in the application's own words."""
        return list(self._values.get("permissions") or [])

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in self._values:
            return self._values[name]
        return getattr(self._said, name)

    def __getitem__(self, name: str) -> Any:
        return self._values[name] if name in self._values or name not in _NAMED else getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


def _listed(said: Any) -> dict[str, Any]:
    """Return the fields that an object shows, if it is one that does."""
    dump = getattr(said, "model_dump", None)
    if callable(dump):
        return dict(dump())
    return {name: value for name, value in getattr(said, "__dict__", {}).items() if not name.startswith("_")}


def caller_for(user: User, authorizer: Any = None) -> Caller:
    """Return who calls, for everything behind the door.

    Whose things it sees is said by `owner` or `tenant_id` of the user, where the handler says so. Otherwise everybody
    shares one owner, as in LangGraph, and the filters of the authorization handlers keep callers apart.
    """
    owner = next((user[name] for name in ("owner", "tenant_id") if isinstance(user.get(name), str)), "")
    ours = frozenset(user.permissions) & frozenset(SCOPES)
    return Caller(
        identity=user.identity,
        owner=owner,
        # Permissions in other words are for the application's own handlers. What only admins do must be said in ours.
        scopes=ours if ours else frozenset([READ, RUN, RESOLVE]),
        display_name=user.display_name,
        is_authenticated=user.is_authenticated,
        user=user,
        authorizer=authorizer,
    )
