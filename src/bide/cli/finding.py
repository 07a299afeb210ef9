"""Finding what somebody means: a wait by its id, by how the id begins, or by the thread that waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bide.cli.exits import CliError, Exit

if TYPE_CHECKING:
    from bide.cli.desk import Desk
    from bide.runtime.views import Wait

SHORT = 8
"""So much of a wait's id is shown to people; so much is enough to name it."""


def short(wait_id: str) -> str:
    """Return as much of an id as people need."""
    return wait_id[:SHORT]


def find_thread(desk: Desk, given: str) -> str:
    """Return the id of the thread that is meant: the whole of it, or how it begins; hints know it from then on."""
    desk.known["thread"] = _thread(desk, given)
    return desk.known["thread"]


def _thread(desk: Desk, given: str) -> str:
    from bide.store.survey import threads_beginning

    if desk.store.thread(given) is not None:
        return given
    found = threads_beginning(desk.store, given, 3) if len(given) >= 4 else []
    if len(found) == 1:
        return found[0]
    if found:
        raise CliError(f"Several threads begin with {given!r}: {', '.join(found)}, …. Write more of it.", Exit.USAGE)
    raise CliError(
        f"There is no thread {given!r} in {desk.store.database.path!r}.", Exit.NOT_FOUND, hints=("bide threads",)
    )


def find_wait(desk: Desk, given: str) -> Wait:
    """Return the wait that is meant; hints know it from then on."""
    found = _meant(desk, given)
    desk.known |= {"wait": short(found.id), "thread": found.thread_id}
    return found


def _meant(desk: Desk, given: str) -> Wait:
    from bide.store.survey import waits_beginning

    if desk.store.wait(given) is not None:
        return desk.app.wait(given)
    if desk.store.thread(given) is not None:
        return _of_thread(desk, given)
    found = waits_beginning(desk.store, given.lower())
    if len(found) == 1:
        return desk.app.wait(found[0])
    if found:
        raise CliError(f"Several waits begin with {given!r}. Write more of it: {', '.join(found)}.", Exit.USAGE)
    raise CliError(
        f"There is neither a wait nor a thread {given!r} in {desk.store.database.path!r}.",
        Exit.NOT_FOUND,
        hints=("bide waits",),
    )


def _of_thread(desk: Desk, thread_id: str) -> Wait:
    waiting = desk.app.waits(thread_id=thread_id)
    if len(waiting) == 1:
        return waiting[0]
    if not waiting:
        raise CliError(
            f"Thread {thread_id!r} does not wait for anything. Nothing was written.",
            Exit.CONFLICT,
            hints=(f"bide show {thread_id}",),
        )
    listed = "\n".join(f"    {short(wait.id)}  {wait.node}: {wait.waiting_for}" for wait in waiting)
    raise CliError(
        f"Thread {thread_id!r} has several open questions. Nothing was written. Say which one:\n{listed}",
        Exit.USAGE,
        hints=(f"bide answer {short(waiting[0].id)} VALUE",),
    )
