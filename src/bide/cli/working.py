"""`bide worker`: drives runs until it is asked to stop."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bide.cli.desk import Desk
from bide.cli.options import GraphPlaces, command

if TYPE_CHECKING:
    from bide.runtime import Bide, Worker
    from bide.server.observe.tracing import Tracing


@dataclass(frozen=True)
class Pace:
    """How much a worker does at once, and how patient it is."""

    concurrency: Annotated[int, typer.Option("--concurrency", "-c", min=1, help="Drive so many runs at once.")] = 10
    poll: Annotated[float, typer.Option("--poll", min=0.01, help="Look for news every so many seconds.")] = 1.0
    grace: Annotated[float, typer.Option("--grace", min=0.0, help="When stopped: wait so many seconds for steps.")] = (
        30.0
    )


@command
def worker(
    desk: Desk,
    pace: Pace,
    places: GraphPlaces = None,
    queues: Annotated[
        list[str] | None, typer.Option("--queue", "-q", help="Serve this queue; may be repeated.")
    ] = None,
    until_idle: Annotated[
        bool, typer.Option("--until-idle", help="Stop when nothing is ready: for scripts and cron jobs.")
    ] = False,
    verbose: Annotated[
        int, typer.Option("--verbose", "-v", count=True, help="One line for each run that it drives.")
    ] = 0,
    tracing: Annotated[
        bool, typer.Option("--tracing", help="A span for each run that it drives; needs the extra otel.")
    ] = False,
) -> None:
    """Drive runs, and see to what is due. Ctrl-C or SIGTERM lets steps finish, gives runs back, and stops."""
    desk.given = tuple(places or ())
    desk.need_graphs("bide worker")
    app = desk.new_app
    served = tuple(queues or ("default",))
    if until_idle:
        _until_idle(desk, app, served)
        return
    found = app.worker(concurrency=pace.concurrency, queues=served, poll=pace.poll, grace=pace.grace)
    traced = _traced(found) if tracing else None
    _listen(desk, verbose)
    _introduce(desk, app, found, served)
    found.run()
    if traced is not None:
        traced.close()
    _part(desk, found)


def _traced(found: Worker) -> Tracing:
    """Let each drive be a span, linked to what made its thread ready."""
    from bide.server.observe.tracing import Tracing

    tracing = Tracing.opened()
    found.around = tracing.drives_of(found.store)
    return tracing


def _introduce(desk: Desk, app: Bide, found: Worker, queues: tuple[str, ...]) -> None:
    """Say calmly who works here, on what."""
    from bide.cli import words
    from bide.cli.tables import facts

    graphs = [one.name + (f" (version {one.version})" if one.version else "") for one in app.graphs]
    document = {
        "worker": {
            "worker_id": app.store.worker_id,
            "store": app.store.database.path,
            "graphs": [one.name for one in app.graphs],
            "queues": queues,
            "concurrency": found.concurrency,
        }
    }
    if desk.as_json:
        desk.tell_line(document)
        return
    desk.out.print("Bide worker", style="bold")
    told = [
        ("store", words.line(app.store.database.path)),
        ("graphs", words.line(", ".join(graphs)) or "none"),
        ("queues", words.line(", ".join(queues))),
        ("at once", words.count(found.concurrency, "run")),
        ("worker", app.store.worker_id),
    ]
    desk.tell(document, facts(told, indent=2), "Working. Ctrl-C stops after the steps that run now.")


def _part(desk: Desk, found: Worker) -> None:
    from bide.cli import words

    if desk.as_json:
        desk.tell_line({"stopped": {"driven": found.driven, "left": found.busy}})
        return
    left = f" {words.count(found.busy, 'run')} did not come to a step in time." if found.busy else ""
    desk.out.print(f"Stopped after {words.count(found.driven, 'run')}.{left}")


def _until_idle(desk: Desk, app: Bide, queues: tuple[str, ...]) -> None:
    """Do what is ready and due, here and now, one after the other."""
    from bide.cli import words

    outcomes: dict[str, int] = {}
    while True:
        tended = app.tend()
        driven = app.run_ready(most=10, queues=queues)
        for one in driven:
            outcomes[one.outcome] = outcomes.get(one.outcome, 0) + 1
        if not driven and not tended.is_something:
            break
    told = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items()) or "nothing was ready"
    desk.tell(
        {"driven": sum(outcomes.values()), "outcomes": outcomes},
        f"{words.count(sum(outcomes.values()), 'run')}: {told}.",
    )


class _Lines(logging.Handler):
    """Shows what the worker logs, one line each."""

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self._desk = desk

    def emit(self, record: logging.LogRecord) -> None:
        """Show a record."""
        from rich.text import Text

        from bide.cli.words import safe, stamp
        from bide.runtime.about import known_about
        from bide.runtime.views import moment

        try:
            at, text = moment(int(record.created * 1000)), safe(record.getMessage())
            if self._desk.as_json:
                told = {"at": at, "level": record.levelname.lower(), "message": text, **known_about()}
                self._desk.tell_line({"log": told})
                return
            style = "red" if record.levelno >= logging.WARNING else ""
            self._desk.out.print(Text.assemble((f"{stamp(at)[11:]}  ", "dim"), (text, style)), soft_wrap=True)
        except Exception:  # noqa: BLE001 — as logging asks for: a line that cannot be shown must not stop a worker
            self.handleError(record)


def _listen(desk: Desk, verbose: int) -> None:
    logger: Any = logging.getLogger("bide")
    for old in [one for one in logger.handlers if isinstance(one, _Lines)]:
        logger.removeHandler(old)
    logger.addHandler(_Lines(desk))
    logger.setLevel({0: logging.WARNING, 1: logging.INFO}.get(verbose, logging.DEBUG))
    logger.propagate = False
