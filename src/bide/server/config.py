"""`bide.toml`: which graphs are served, from which store, and how. Every mistake in it is told where it was made.

    [app]        graphs = ["shop.py:refunds", …] or app = "shop.py:app"; store, schema
    [server]     host, port, public_url, worker, concurrency, and whatever else `Settings` and `Listening` have
    [auth]       mode, handler, and a table jwt             [cors], [limits]   as in settings.py
    [[hooks]]    webhooks that come in                      [[webhooks]]       webhooks that go out

Paths go by the folder of the file. `"env:NAME"` is a value of the environment.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from bide.errors import SettingsError, StoreError, did_you_mean
from bide.server.settings import (
    AuthSettings,
    CorsSettings,
    HookSettings,
    LimitSettings,
    Listening,
    Settings,
    WebhookSettings,
)
from bide.server.tables import Table

FILE = "bide.toml"
_SINGLE = {"auth": AuthSettings, "cors": CorsSettings, "limits": LimitSettings}
_SEVERAL = {"hooks": HookSettings, "webhooks": WebhookSettings}
_TABLES = ("app", "server", *_SINGLE, *_SEVERAL)
_PLAIN = tuple(field.name for field in fields(Settings) if field.name not in _TABLES)
_LISTENING = tuple(field.name for field in fields(Listening) if field.name != "insecure")
_HOOK = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_MOST_PORT = 65535


@dataclass(frozen=True)
class AppSettings:
    """What is served."""

    app: str | None = None
    graphs: tuple[str, ...] = ()
    store: str | None = None
    schema: str | None = None


@dataclass(frozen=True)
class Config:
    """A settings file, read and checked."""

    path: str
    app: AppSettings
    settings: Settings
    listening: Listening


def find_config(folder: str | os.PathLike[str] = ".") -> Path | None:
    """Return the settings file of a folder, if it has one."""
    path = Path(folder) / FILE
    return path if path.is_file() else None


def read_app(path: str | os.PathLike[str]) -> AppSettings:
    """Read from a settings file what is served, and from which store: all that a command without a server needs."""
    file = Path(path)
    table = Table(str(file), "table [app]", _written(file).get("app", {}))
    return _placed(table, table.make(AppSettings), file.resolve().parent)


def read_config(path: str | os.PathLike[str]) -> Config:
    """Read a settings file."""
    file = Path(path)
    written = _written(file)
    tables = {name: Table(str(file), f"table [{name}]", written.get(name, {})) for name in ("server", *_SINGLE)}
    said: dict[str, Any] = {name: tables[name].make(kind) for name, kind in _SINGLE.items()}
    for name, kind in _SEVERAL.items():
        rows = written.get(name, [])
        several = [Table(str(file), f"table [[{name}]] number {number}", row) for number, row in enumerate(rows, 1)]
        said[name] = tuple(table.make(kind) for table in several)
        _CHECKS[name](several, said[name])
    server = tables["server"]
    server.check_keys((*_LISTENING, *_PLAIN))
    listening = Listening(**server.read(Listening, _LISTENING))
    settings = Settings(**said, **server.read(Settings, _PLAIN))
    _check_server(server, listening, settings)
    _check_auth(tables["auth"], settings.auth)
    return Config(str(file), read_app(file), _placed_handler(settings, file.resolve().parent), listening)


def _written(file: Path) -> dict[str, Any]:
    try:
        written = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as problem:
        raise SettingsError(f"{file} cannot be read: {problem.strerror or problem}.") from problem
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise SettingsError(f"{file} is no TOML: {problem}.") from problem
    _check_tables(str(file), written)
    return written


def _check_tables(file: str, written: Mapping[str, Any]) -> None:
    """Refuse tables that nobody reads, and tables that are none."""
    for name, value in written.items():
        if name not in _TABLES:
            hint = did_you_mean(name, _TABLES)
            raise SettingsError(f"{file}: there is no table [{name}].{hint} There are {', '.join(_TABLES)}.")
        is_table = isinstance(value, list) and all(isinstance(one, dict) for one in value)
        if name in _SEVERAL and not is_table:
            raise SettingsError(f"{file}: {name!r} is a list of tables. Write [[{name}]] above each.")
        if name not in _SEVERAL and not isinstance(value, dict):
            raise SettingsError(f"{file}: {name!r} is a table. Write [{name}] above its keys.")


# ── What belongs together ──────────────────────────────────────────────────────────────────────────────────────────


def _check_server(table: Table, listening: Listening, settings: Settings) -> None:
    if listening.port > _MOST_PORT:
        raise table.wrong("port", f"{listening.port} is no port: there are {_MOST_PORT}, and 0 means any that is free.")
    if settings.concurrency < 1:
        raise table.wrong("concurrency", "a worker drives at least one run at a time. To drive none: worker = false.")
    if settings.heartbeat <= 0:
        raise table.wrong("heartbeat", "a quiet stream must give a sign of life now and then.")
    if settings.public_url is not None and not settings.public_url.startswith(("http://", "https://")):
        raise table.wrong("public_url", f"{settings.public_url!r} is no address: begin it with https://.")


def _check_auth(table: Table, auth: AuthSettings) -> None:
    if auth.mode == "jwt" and not auth.jwt:
        raise table.wrong("jwt", 'mode = "jwt" needs a table [auth.jwt] with jwks or secret.')
    if auth.mode == "custom" and auth.handler is None:
        raise table.wrong("handler", 'mode = "custom" needs a handler: handler = "auth.py:auth".')
    if auth.handler is not None and not isinstance(auth.handler, str):
        raise table.wrong("handler", f'{auth.handler!r} names nothing: write "auth.py:auth".')


def _check_hooks(tables: list[Table], hooks: tuple[HookSettings, ...]) -> None:
    names = Counter(hook.name for hook in hooks)
    for table, hook in zip(tables, hooks, strict=True):
        if not _HOOK.fullmatch(hook.name):
            raise table.wrong("name", f"{hook.name!r} cannot be a part of an address: use letters, digits and _ . -")
        if names[hook.name] > 1:
            raise table.wrong("name", f"two hooks are named {hook.name!r}.")
        if hook.scheme != "none" and not hook.secrets:
            raise table.wrong("secrets", f'scheme {hook.scheme!r} needs one: secrets = ["env:HOOK_SECRET"].')


def _check_webhooks(tables: list[Table], webhooks: tuple[WebhookSettings, ...]) -> None:
    for table, webhook in zip(tables, webhooks, strict=True):
        if not webhook.url.startswith(("http://", "https://")):
            raise table.wrong("url", f"{webhook.url!r} is no address: begin it with https://.")


_CHECKS: Mapping[str, Any] = {"hooks": _check_hooks, "webhooks": _check_webhooks}


# ── Paths ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _placed(table: Table, app: AppSettings, folder: Path) -> AppSettings:
    """Let paths go by the folder of the file, wherever somebody stands."""
    if app.app is not None and app.graphs:
        raise table.wrong("graphs", "an application has its own graphs. Give app or graphs.")
    if app.app is not None and app.store is not None:
        raise table.wrong("store", "an application has its own store. Give graphs, or leave store out.")
    return AppSettings(
        None if app.app is None else _place(app.app, folder),
        tuple(_place(one, folder) for one in app.graphs),
        None if app.store is None else _store(table, app.store, folder),
        app.schema,
    )


def _placed_handler(settings: Settings, folder: Path) -> Settings:
    if settings.auth.handler is None:
        return settings
    return replace(settings, auth=replace(settings.auth, handler=_place(settings.auth.handler, folder)))


def _place(place: str, folder: Path) -> str:
    """Return where a file is that is named as "shop.py:app"; modules are left as they are."""
    source, colon, name = place.rpartition(":") if ":" in place else (place, "", "")
    is_file = source.endswith(".py") or os.sep in source
    return f"{folder / source}{colon}{name}" if is_file else place


def _store(table: Table, url: str, folder: Path) -> str:
    from bide.store.opening import is_postgres, path_of

    if is_postgres(url):
        return url
    try:
        path = path_of(url)
    except StoreError as problem:
        raise table.wrong("store", str(problem)) from None
    return url if path == ":memory:" else f"sqlite:///{folder / path}"
