"""`bide serve`: the API, the inbox, a worker and the clock, in one process."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bide.cli.desk import Desk
from bide.cli.exits import CliError, Exit
from bide.cli.options import GraphPlaces, command

if TYPE_CHECKING:
    from bide.runtime import Bide
    from bide.server.config import Config
    from bide.server.settings import Listening, Settings


class Auth(StrEnum):
    """Who may call."""

    NONE = "none"
    KEYS = "keys"
    JWT = "jwt"
    CUSTOM = "custom"


class Level(StrEnum):
    """How much is logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True)
class Door:
    """Where the server listens, and to whom."""

    host: Annotated[str | None, typer.Option("--host", help="Listen at this address. (default: 127.0.0.1)")] = None
    port: Annotated[
        int | None, typer.Option("--port", "-p", min=0, max=65535, help="At this port; 0 is any. (default: 2024)")
    ] = None
    auth: Annotated[Auth | None, typer.Option("--auth", help="Who may call. (default: none, on this machine)")] = None
    cors_origin: Annotated[
        list[str] | None, typer.Option("--cors-origin", help="Let pages of this origin call; may be repeated.")
    ] = None
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Let other machines in without authentication. Know why.")
    ] = False


@dataclass(frozen=True)
class Work:
    """What else the process does."""

    no_worker: Annotated[bool, typer.Option("--no-worker", help="Drive no runs here: bide worker does, elsewhere.")] = (
        False
    )
    concurrency: Annotated[
        int | None, typer.Option("--concurrency", "-c", min=1, help="Drive so many runs at once. (default: 10)")
    ] = None
    grace: Annotated[
        float | None, typer.Option("--grace", min=0.0, help="When stopped: wait so many seconds. (default: 20)")
    ] = None


@dataclass(frozen=True)
class Logs:
    """What it writes to stderr."""

    json_logs: Annotated[bool, typer.Option("--json-logs", help="One JSON document for each line.")] = False
    log_level: Annotated[Level | None, typer.Option("--log-level", help="(default: info)")] = None


@command
def serve(
    desk: Desk,
    door: Door,
    work: Work,
    logs: Logs,
    places: GraphPlaces = None,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="A bide.toml. (default: that of this folder)")
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Look whether it could begin, and begin nothing.")] = False,
) -> None:
    """Serve graphs over HTTP, with an inbox for people at /. Ctrl-C or SIGTERM ends it cleanly."""
    _need_packages()
    found = _config(config)
    desk.given = tuple(places or ())
    if found is not None:
        desk.settled = found.app if not (desk.given or desk.place.app or desk.place.store) else type(found.app)()
    settings, listening = _said(found, door, work, logs)
    desk.need_graphs("bide serve")
    app = desk.new_app
    from bide.server.auth.binding import check_binding
    from bide.server.observe.logs import write_logs

    check_binding(listening.host, settings, insecure=listening.insecure)
    if check:
        _check(desk, app, settings, listening)
        return
    write_logs(listening.log_level, as_json=settings.json_logs)
    from bide.server.process import serve as run

    run(app, settings, listening, on_ready=lambda url: _introduce(desk, app, settings, url))
    _part(desk)


def _need_packages() -> None:
    """Say which extra is missing, before anything is loaded."""
    from importlib.util import find_spec

    missing = next(
        (name for name in ("fastapi", "uvicorn", "jinja2", "prometheus_client") if not find_spec(name)), None
    )
    if missing is not None:
        raise CliError(
            f'The server needs packages that are not installed ({missing} is missing): pip install "bide[server]"',
            Exit.FAILED,
        )


def _config(given: Path | None) -> Config | None:
    from bide.server.config import find_config, read_config

    path = given or find_config()
    return None if path is None else read_config(path)


def _said(found: Config | None, door: Door, work: Work, logs: Logs) -> tuple[Settings, Listening]:
    """Put together what the file and the command line say; what was typed counts."""
    from bide.server.settings import Listening, Settings

    settings = Settings() if found is None else found.settings
    listening = Listening() if found is None else found.listening
    typed: dict[str, Any] = {"host": door.host, "port": door.port, "grace": work.grace, "log_level": logs.log_level}
    typed = {name: str(value) if isinstance(value, StrEnum) else value for name, value in typed.items()}
    listening = replace(listening, **{name: value for name, value in typed.items() if value is not None})
    if door.insecure:
        listening = replace(listening, insecure=True)
    if door.auth is not None:
        settings = replace(settings, auth=replace(settings.auth, mode=str(door.auth)))  # type: ignore[arg-type]
    if door.cors_origin:
        settings = replace(settings, cors=replace(settings.cors, origins=tuple(door.cors_origin)))
    return replace(
        settings,
        worker=settings.worker and not work.no_worker,
        concurrency=work.concurrency or settings.concurrency,
        json_logs=settings.json_logs or logs.json_logs,
    ), listening


# ── What is told ───────────────────────────────────────────────────────────────────────────────────────────────────

_DOORS = {
    "none": "none: whoever is on this machine",
    "keys": "API keys (bide keys create NAME)",
    "jwt": "JSON Web Tokens",
    "custom": "your own handler",
}


def _document(app: Bide, settings: Settings, url: str) -> dict[str, Any]:
    return {
        "url": url,
        "store": app.store.database.path,
        "graphs": [one.name for one in app.graphs],
        "auth": settings.auth.mode,
        "worker": settings.worker,
        "concurrency": settings.concurrency,
    }


def _check(desk: Desk, app: Bide, settings: Settings, listening: Listening) -> None:
    """Put the whole server together, and let it go."""
    from bide.server.app import create_app

    create_app(app, settings)
    url = f"http://{listening.host}:{listening.port}"
    graphs = ", ".join(one.name for one in app.graphs)
    told = f"It could begin: {graphs} at {url}, store {app.store.database.path}."
    desk.tell({"check": _document(app, settings, url)}, told)


def _introduce(desk: Desk, app: Bide, settings: Settings, url: str) -> None:
    """Say where it is, what it serves, and what to type next."""
    from rich.text import Text

    from bide.cli import words
    from bide.cli.marks import NEXT
    from bide.cli.tables import aligned, facts

    if desk.as_json:
        desk.tell_line({"serving": _document(app, settings, url)})
        return
    graphs = [one.name for one in app.graphs]
    worker = (
        f"here, {words.count(settings.concurrency, 'run')} at once" if settings.worker else "elsewhere: bide worker"
    )
    told = [
        ("inbox", f"{settings.public_url or url}/"),
        ("API", f"{url}/docs"),
        ("store", words.line(app.store.database.path)),
        ("graphs", words.line(", ".join(graphs))),
        ("auth", _DOORS[settings.auth.mode]),
        ("worker", worker),
    ]
    key = "" if settings.auth.mode == "none" else " -H 'x-api-key: …'"
    begin = f"""curl {url}/runs/wait{key} --json '{{"assistant_id": "{graphs[0]}", "input": {{}}}}'"""
    nexts = [begin, f"curl {url}/waits{key}", f"curl {url}/ready"]
    desk.out.print("Bide serves", style="bold")
    desk.tell(None, facts(told, indent=2))
    desk.tell(None, aligned([[Text(NEXT, style="dim"), Text(words.safe(one))] for one in nexts], indent=2))
    desk.tell(None, "Ctrl-C stops after what is under way.")
    desk.out.file.flush()


def _part(desk: Desk) -> None:
    if desk.as_json:
        desk.tell_line({"stopped": True})
    else:
        desk.out.print("Stopped.")
