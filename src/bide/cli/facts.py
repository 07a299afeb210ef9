"""Facts from outside: events, webhooks and mails; and why they did or did not wake somebody."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bide.cli.desk import Desk
from bide.cli.options import Most, command

if TYPE_CHECKING:
    from rich.text import Text

    from bide.runtime.explaining import Explanation
    from bide.runtime.views import Delivery


class Kind(StrEnum):
    """What a fact may be."""

    EVENT = "event"
    WEBHOOK = "webhook"
    EMAIL = "email"


KINDS = [one.value for one in Kind]

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="The name of the event or webhook, or the mailbox.", show_default=False)
]
Payload = Annotated[str | None, typer.Argument(metavar="JSON", help="What came with it: JSON, @file, or - for stdin.")]
KindOption = Annotated[str, typer.Option("--kind", "-k", metavar="event|webhook|email", help="What it is.")]


@dataclass(frozen=True)
class Identity:
    """By what a fact is known."""

    id: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="Its own id: the same fact again changes nothing.")
    ] = None
    source: Annotated[str | None, typer.Option("--source", help="Where it came from. (default: kind and name)")] = None


@command
def deliver(
    desk: Desk,
    name: Name,
    identity: Identity,
    payload: Payload = None,
    kind: KindOption = Kind.EVENT.value,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only explain who would wake, and why not.")] = False,
) -> None:
    """Bring a fact: whoever waits for it goes on. One that nobody waits for stays, and is found later."""
    from bide.cli.arguments import one_of, read_json
    from bide.cli.attending import note_if_nobody_works

    one_of(kind, KINDS, "--kind")
    given = read_json(payload, "payload")
    if dry_run:
        _explain(desk, desk.app.explain(name, given, kind=kind, source=identity.source))
        desk.note("Nothing was delivered: this was a dry run.")
        return
    delivery = desk.app.deliver(name, given, kind=kind, source=identity.source, external_id=identity.id)
    desk.tell({"delivery": delivery}, _told(delivery))
    if delivery.wakes:
        note_if_nobody_works(desk)
    else:
        desk.note(f"Why: bide explain {delivery.id}")


def _told(delivery: Delivery) -> Text:
    from rich.text import Text

    from bide.cli import words
    from bide.cli.marks import NOTE, OK

    what = f"The {delivery.kind} {words.line(delivery.name)!r}"
    if not delivery.is_new:
        told = f"{what} came before, and woke {words.count(delivery.wakes, 'wait')}; nothing was changed."
    elif delivery.wakes:
        told = f"{what} woke {words.count(delivery.wakes, 'wait')}"
        told += f" ({words.line(', '.join(delivery.threads))})." if delivery.threads else "."
    else:
        told = f"{what} is stored. Nobody waits for it yet; whoever does later finds it."
    mark = (f"{OK} ", "green") if delivery.wakes else (f"{NOTE} ", "yellow")
    return Text.assemble(mark, told)


@command
def deliveries(
    desk: Desk,
    unmatched: Annotated[bool, typer.Option("--unmatched", help="Only those that woke nobody.")] = False,
    most: Most = 50,
) -> None:
    """List facts that came, newest first."""
    from bide.cli import words
    from bide.cli.tables import Column, listing, status

    found = desk.app.deliveries(unmatched=unmatched, most=most)
    columns = [
        *(Column("delivery"), Column("kind"), Column("name"), Column("status")),
        *(Column("came"), Column("payload", is_whole=False, from_width=100)),
    ]
    now = desk.now
    rows: list[list[str | Text]] = [
        [
            one.id,
            one.kind,
            words.line(one.name),
            status(one.status),
            words.ago(one.received_at, now),
            words.value(one.payload),
        ]
        for one in found
    ]
    desk.tell({"deliveries": found}, listing(desk.out, columns, rows) if found else "Nothing came.")


@command
def explain(
    desk: Desk,
    what: Annotated[
        str, typer.Argument(metavar="WAIT|DELIVERY|NAME", help="A wait, a delivery, or the name of a fact.")
    ],
    payload: Payload = None,
    kind: KindOption = Kind.EVENT.value,
) -> None:
    """Say why a fact did or did not wake somebody, or what a wait still needs."""
    from bide.cli.arguments import one_of, read_json
    from bide.store.survey import waits_beginning

    one_of(kind, KINDS, "--kind")
    given = read_json(payload, "payload")
    if desk.store.thread(what) is not None:
        waiting = desk.app.waits(thread_id=what)
        if len(waiting) == 1:
            what = waiting[0].id
    begun = waits_beginning(desk.store, what)
    _explain(desk, desk.app.explain(begun[0] if len(begun) == 1 else what, given, kind=kind))


def _explain(desk: Desk, explanation: Explanation) -> None:
    from rich.text import Text

    from bide.cli.finding import short
    from bide.cli.marks import FAILED, OK
    from bide.cli.words import safe

    shown: list[Any] = [Text(safe(explanation.summary), style="bold")]
    for verdict in explanation.verdicts:
        mark = (f"  {OK} ", "green") if verdict.fits else (f"  {FAILED} ", "red")
        where = f"thread {safe(verdict.thread_id)}, wait {short(verdict.wait_id)} ({safe(verdict.leaf)})"
        shown.append(Text.assemble(mark, where))
        shown += [Text(f"      {safe(reason)}") for reason in verdict.reasons]
    desk.tell({"explanation": explanation}, *shown)
