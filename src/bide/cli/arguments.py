"""What people type: JSON, text, @files, and a dash for stdin."""

from __future__ import annotations

import getpass
import json
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from bide.cli.exits import CliError, Exit
from bide.errors import did_you_mean

STDIN = "-"


def read_text(given: str) -> str:
    """Return what was typed, or what is in the file (`@order.json`) or on stdin (`-`) that it means."""
    if given == STDIN:
        return sys.stdin.read()
    if given.startswith("@@"):
        return given[1:]
    if not given.startswith("@"):
        return given
    try:
        return Path(given[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise CliError(f"The file {given[1:]!r} cannot be read: {problem}.", Exit.USAGE) from problem


def read_json(given: str | None, what: str) -> Any:
    """Read JSON; nothing is None."""
    if given is None:
        return None
    text = read_text(given)
    try:
        return json.loads(text, parse_constant=_refuse)
    except ValueError as problem:
        raise CliError(
            f"The {what} is no JSON: {problem}. It begins {text[:60]!r}. Texts need quotes inside the shell's own: "
            f"'\"like this\"'; objects look like '{{\"amount\": 5}}'.",
            Exit.USAGE,
        ) from problem


def read_loosely(given: str) -> list[Any]:
    """Read what a person typed: as JSON if it is some, and as the text that it is."""
    text = read_text(given)
    try:
        return [json.loads(text, parse_constant=_refuse), text]
    except ValueError:
        return [text]


def read_moment(given: str | None, option: str) -> datetime | None:
    """Read a moment; without a zone nobody could tell which one is meant."""
    if given is None:
        return None
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        raise CliError(f"{option} {given!r} is no moment. Write it like 2026-03-02T12:00+02:00.", Exit.USAGE) from None
    if moment.tzinfo is None:
        day = moment.isoformat(timespec="minutes" if moment.second == 0 else "seconds")
        raise CliError(
            f"{option} {given!r} does not say by which clock, and it is another moment in every zone. Add the zone: "
            f"{day}+02:00, or {day}Z for UTC.",
            Exit.USAGE,
        )
    return moment


def one_of(given: str | None, known: Sequence[str], option: str) -> str | None:
    """Refuse a name that is none of the known ones, and say which one was probably meant."""
    if given is None or given in known:
        return given
    raise CliError(
        f"{option} {given!r} is not known.{did_you_mean(given, known)} Known: {', '.join(known)}.", Exit.USAGE
    )


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number in JSON")


def who(by: str | None) -> str | None:
    """Return who does this: as was said, or the user at this machine."""
    if by is not None:
        return by
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container may run as a number without a name
        return None
