"""`bide doctor`: is everything as it should be, and if not, what to do?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bide.cli.desk import Desk
from bide.cli.exits import Exit
from bide.cli.options import command

if TYPE_CHECKING:
    from rich.console import RenderableType

    from bide.cli.diagnosis import Check
    from bide.store.findings import Verification


@command
def doctor(
    desk: Desk,
    deep: Annotated[
        bool, typer.Option("--deep", help="Open every stored value, too: slower, and more thorough.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Fail on warnings, too.")] = False,
) -> None:
    """Look at configuration, store, settings and invariants, and for what is stuck. Nothing is changed."""
    from bide.cli.version import versions

    found = versions()
    verified = _verified(desk, deep=deep)
    checks = [*_checks(desk), *_invariants(verified)]
    failed = [one for one in checks if one.verdict == "failed"]
    warned = [one for one in checks if one.verdict == "warning"]
    is_well = not failed and not (strict and warned)
    document = {"is_well": is_well, "versions": found, "stats": _stats(desk), "checks": checks}
    desk.tell(document, f"bide {found['bide']}, Python {found['python']}\n", *_lines(checks), *_sum(failed, warned))
    if not is_well:
        raise typer.Exit(int(Exit.FAILED))


def _stats(desk: Desk) -> dict[str, Any]:
    from bide.runtime.views import moment

    stats = desk.store.stats()
    return {**stats.as_dict(), "oldest_open_wait": moment(stats.oldest_open_wait)}


def _checks(desk: Desk) -> Iterator[Check]:
    from bide.cli import diagnosis as look

    yield from look.check_application(desk)
    yield from look.check_store(desk.store)
    yield from look.check_file(desk.store)
    yield from look.check_clock(desk.store)
    yield from look.check_workers(desk)
    yield from look.check_stuck(desk)


def _verified(desk: Desk, *, deep: bool) -> Verification:
    from bide.cli.progress import progress

    count = desk.store.stats().threads
    with progress(desk, "checking threads") as tick:
        return desk.store.verify(deep=deep, most=100, progress=lambda done, _: tick(done, count))


def _invariants(verified: Verification) -> Iterator[Check]:
    from bide.cli import words
    from bide.cli.diagnosis import Check

    for problem in verified.problems:
        where = f"thread {problem.thread_id}: " if problem.thread_id is not None else ""
        yield Check("invariants", "failed", words.line(f"{problem.invariant}, {where}{problem.what}"), problem.advice)
    if verified.untold:
        yield Check("invariants", "failed", f"… and {verified.untold} more")
    if verified.is_sound:
        rows = sum(verified.checked.values())
        threads = words.count(verified.checked.get("threads", 0), "thread")
        yield Check("invariants", "ok", f"they hold in {words.count(rows, 'row')} of {threads}")


def _lines(checks: list[Check]) -> list[RenderableType]:
    from rich.text import Text

    from bide.cli.diagnosis import MARKS
    from bide.cli.marks import NEXT
    from bide.cli.tables import aligned
    from bide.cli.words import safe

    rows: list[list[str | Text]] = []
    for one in checks:
        rows.append([Text(*MARKS[one.verdict]), Text(f"{one.about:<12}", style="dim"), safe(one.what)])
        if one.advice:
            rows.append(["", "", Text(f"{NEXT} {safe(one.advice)}", style="bold")])
    return [aligned(rows)]


def _sum(failed: list[Check], warned: list[Check]) -> list[Any]:
    from rich.text import Text

    from bide.cli import words

    if failed:
        return [Text(f"\n{words.count(len(failed), 'problem')}.", style="bold red")]
    if warned:
        return [Text(f"\n{words.count(len(warned), 'warning')}.", style="bold yellow")]
    return [Text("\nAll is well.", style="bold green")]
