"""`bide version`: what is installed here."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Any

import typer

from bide.cli.desk import Desk
from bide.cli.options import command

PACKAGES = ("ormsgpack", "cronsim", "psycopg", "cryptography", "langchain-core", "typer", "rich")


@command
def version_(desk: Desk) -> None:
    """Which Bide this is, with which Python, SQLite and extras."""
    from bide.cli.tables import facts

    found = versions()
    shown = [(name, str(text or "not installed")) for name, text in found["packages"].items()]
    told = [("python", found["python"]), ("sqlite", found["sqlite"]), ("platform", found["platform"]), *shown]
    desk.tell(found, f"bide {found['bide']}", facts(told, indent=2))


def versions() -> dict[str, Any]:
    """Return what is installed."""
    import platform
    import sqlite3

    import bide

    return {
        "bide": bide.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "sqlite": sqlite3.sqlite_version,
        "packages": {name: _of(name) for name in PACKAGES},
    }


def _of(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def show_version(is_asked: bool) -> None:
    """Answer `bide --version`."""
    if is_asked:
        import bide

        typer.echo(f"bide {bide.__version__}")
        raise typer.Exit
