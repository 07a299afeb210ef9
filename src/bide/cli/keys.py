"""Keys of the server's API: whoever calls with one acts for its owner."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from bide.cli.desk import Desk
from bide.cli.exits import CliError, Exit
from bide.cli.options import command

if TYPE_CHECKING:
    from rich.console import RenderableType

    from bide.store.api_keys import ApiKeyRow


@dataclass(frozen=True)
class Kept:
    """Whose a key is, what it is good for, and until when."""

    owner: Annotated[str | None, typer.Option("--owner", help="Whose threads it opens. (default: the store's)")] = None
    scope: Annotated[
        list[str] | None,
        typer.Option("--scope", help="read, run, resolve or admin; may be repeated. (default: the first three)"),
    ] = None
    expires: Annotated[str | None, typer.Option("--expires", metavar="30d", help="It opens nothing after so long.")] = (
        None
    )


@command
def create(
    desk: Desk,
    kept: Kept,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who is going to use it.", show_default=False)],
) -> None:
    """Make a key, and show it: once, for the store keeps only a hash."""
    from bide.server.auth.keys import DEFAULT_SCOPES, create_key
    from bide.waits.durations import milliseconds

    store = desk.new_app.store
    until = None if kept.expires is None else store.clock.now() + milliseconds(kept.expires, "--expires")
    key, row = create_key(store, name, kept.owner, kept.scope or DEFAULT_SCOPES, until)
    desk.tell({"key": key, **_plain(row)}, key)
    desk.note(f"Key {row.key_id} of {name}. It is shown this once: keep it where passwords are kept.")


@command
def list_(desk: Desk) -> None:
    """List keys: whose they are, what they are good for, and whether they open anything."""
    show_all(desk)


def show_all(desk: Desk) -> None:
    """Show all keys, also those that were revoked."""
    found = _all(desk)
    desk.tell({"keys": [_plain(row) for row in found]}, _table(desk, found) if found else "There are no keys.")
    if not found:
        desk.note("Make one: bide keys create NAME")


@command
def revoke(
    desk: Desk, key_id: Annotated[str, typer.Argument(metavar="ID", help="As it is listed.", show_default=False)]
) -> None:
    """Let a key open nothing any more, from the next request on."""
    from bide.errors import did_you_mean
    from bide.server.auth.keys import revoke_key

    known = [row.key_id for row in _all(desk)]
    if key_id not in known:
        hint = did_you_mean(key_id, known)
        raise CliError(f"There is no key {key_id!r}.{hint}", Exit.NOT_FOUND, hints=("bide keys",))
    is_new = revoke_key(desk.store, key_id)
    told = f"Key {key_id} is revoked." if is_new else f"Key {key_id} was revoked before."
    desk.tell({"key_id": key_id, "is_new": is_new}, told)


def _all(desk: Desk) -> list[ApiKeyRow]:
    from bide.server.auth.keys import list_keys

    found: list[ApiKeyRow] = []
    while page := list_keys(desk.store, after=found[-1].key_id if found else ""):
        found += page
    return found


def _plain(row: ApiKeyRow) -> dict[str, object]:
    """Return what is known of a key, without its hash."""
    from bide.runtime.views import moment

    told: dict[str, object] = {"key_id": row.key_id, "name": row.name, "owner": row.owner, "scopes": list(row.scopes)}
    for name in ("created_at", "expires_at", "revoked_at", "used_at"):
        told[name] = moment(getattr(row, name))
    return told


def _table(desk: Desk, found: list[ApiKeyRow]) -> RenderableType:
    from bide.cli import words
    from bide.cli.tables import Column, listing
    from bide.runtime.views import moment

    now, instant = desk.now, desk.store.clock.now()
    columns = [Column("key"), Column("name"), Column("owner"), Column("good for"), Column("used"), Column("until")]
    rows = [
        [
            row.key_id,
            words.line(row.name),
            words.line(row.owner) or "–",
            " ".join(row.scopes) if row.is_good(instant) else "nothing any more",
            words.ago(moment(row.used_at), now),
            "revoked" if row.revoked_at is not None else words.until(moment(row.expires_at), now),
        ]
        for row in found
    ]
    return listing(desk.out, columns, rows)


@command
def by_default(desk: Desk, context: typer.Context) -> None:
    """Keys of the server's API: list them, or create, revoke one."""
    if context.invoked_subcommand is None:
        show_all(desk)


group = typer.Typer(invoke_without_command=True, callback=by_default)
group.command("list")(list_)
for _one in (create, revoke):
    group.command(_one.__name__)(_one)
