"""`bide.toml`: whatever it says is checked, and every mistake in it is told with its file, its table and its key."""

from __future__ import annotations

from pathlib import Path

import pytest

from bide.errors import SettingsError
from bide.server.config import find_config, read_app, read_config
from bide.server.settings import HookSettings, Listening, Settings, WebhookSettings

WHOLE = """
[app]
graphs = ["shop.py:refunds", "agents.mail:quotes"]
store = "sqlite:///data/shop.db"

[server]
host = "0.0.0.0"
port = 8080
public_url = "https://bide.example.org"
worker = false
concurrency = 4
heartbeat = 3
json_logs = true
log_level = "warning"
trusted_proxies = ["10.0.0.0/8"]

[auth]
mode = "jwt"
[auth.jwt]
secret = "env:JWT_SECRET"
audience = "bide"

[cors]
origins = ["https://app.example.org"]
credentials = true

[limits]
rate = 5

[[hooks]]
name = "github"
scheme = "github"
secrets = ["env:OLD_SECRET", "env:NEW_SECRET"]

[[hooks]]
name = "open"
scheme = "none"

[[webhooks]]
url = "https://example.org/told"
events = ["run.finished"]
secret = "env:NEW_SECRET"
"""


@pytest.fixture(autouse=True)
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JWT", "OLD", "NEW"):
        monkeypatch.setenv(f"{name}_SECRET", name.lower())


def written(folder: Path, text: str) -> Path:
    path = folder / "bide.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_whole_file_becomes_settings(tmp_path: Path) -> None:
    config = read_config(written(tmp_path, WHOLE))

    assert config.app.graphs == (f"{tmp_path}/shop.py:refunds", "agents.mail:quotes")
    assert config.app.store == f"sqlite:///{tmp_path}/data/shop.db"
    assert config.listening == Listening("0.0.0.0", 8080, log_level="warning", trusted_proxies=("10.0.0.0/8",))
    settings = config.settings
    assert (settings.worker, settings.concurrency, settings.heartbeat, settings.json_logs) == (False, 4, 3.0, True)
    assert settings.auth.mode == "jwt"
    assert settings.auth.jwt == {"secret": "jwt", "audience": "bide"}
    assert settings.cors.origins == ("https://app.example.org",)
    assert settings.limits.rate == 5.0
    assert settings.hooks == (
        HookSettings("github", "github", ("old", "new")),
        HookSettings("open", "none"),
    )
    assert settings.webhooks == (WebhookSettings("https://example.org/told", ("run.finished",), "new"),)


def test_empty_file_says_nothing(tmp_path: Path) -> None:
    config = read_config(written(tmp_path, ""))

    assert (config.settings, config.listening) == (Settings(), Listening())
    assert (config.app.app, config.app.graphs, config.app.store) == (None, (), None)


@pytest.mark.parametrize(
    ("url", "placed"),
    [
        ("sqlite:////srv/x.db", "sqlite:////srv/x.db"),
        (":memory:", ":memory:"),
        ("postgresql://host/name", "postgresql://host/name"),
    ],
)
def test_store_that_lies_elsewhere_is_left_where_it_is(tmp_path: Path, url: str, placed: str) -> None:
    config = read_config(written(tmp_path, f'[app]\nstore = "{url}"\n'))

    assert config.app.store == placed


def test_application_and_handler_are_found_beside_the_file(tmp_path: Path) -> None:
    text = '[app]\napp = "shop.py:app"\n[auth]\nmode = "custom"\nhandler = "doors/auth.py:auth"\n'

    config = read_config(written(tmp_path, text))

    assert config.app.app == f"{tmp_path}/shop.py:app"
    assert config.settings.auth.handler == f"{tmp_path}/doors/auth.py:auth"


def test_command_that_is_no_server_needs_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JWT_SECRET")

    app = read_app(written(tmp_path, WHOLE))

    assert app.graphs[1] == "agents.mail:quotes"


def test_folder_without_a_file_has_none(tmp_path: Path) -> None:
    assert find_config(tmp_path) is None

    path = written(tmp_path, "")

    assert find_config(tmp_path) == path


MISTAKES = {
    "[sever]\nport = 1\n": "there is no table [sever]. Did you mean 'server'?",
    "server = 5\n": "Write [server] above its keys",
    '[hooks]\nname = "x"\n': "Write [[hooks]] above each",
    "[server]\nprot = 1\n": "table [server], key 'prot': there is no such key here. Did you mean 'port'?",
    '[server]\nport = "80"\n': "table [server], key 'port': '80' is not a whole number",
    "[server]\nport = true\n": "key 'port': True is not a whole number",
    "[server]\nport = 70000\n": "key 'port': 70000 is no port",
    "[server]\nport = -1\n": "key 'port': -1 is less than nothing",
    '[server]\nworker = "yes"\n': "key 'worker': 'yes' is not true or false",
    "[server]\nconcurrency = 0\n": "key 'concurrency': a worker drives at least one run",
    "[server]\nheartbeat = 0\n": "key 'heartbeat'",
    '[server]\nlog_level = "infos"\n': "'infos' is none of 'debug', 'info', 'warning', 'error'. Did you mean 'info'?",
    '[server]\npublic_url = "bide.example.org"\n': "key 'public_url': 'bide.example.org' is no address",
    "[server]\ninsecure = true\n": "key 'insecure': there is no such key",
    '[app]\ngraphs = "shop.py:x"\n': "table [app], key 'graphs': give a list in brackets",
    '[app]\napp = "a.py:a"\ngraphs = ["b.py:b"]\n': "key 'graphs': an application has its own graphs",
    '[app]\napp = "a.py:a"\nstore = ":memory:"\n': "key 'store': an application has its own store",
    '[app]\nstore = "shop.db"\n': "table [app], key 'store': 'shop.db' is no URL of a store",
    '[app]\nstore = " "\n': "key 'store': an empty text says nothing",
    '[auth]\nmode = "key"\n': "table [auth], key 'mode': 'key' is none of",
    '[auth]\nmode = "jwt"\n': "table [auth], key 'jwt': mode = \"jwt\" needs a table [auth.jwt]",
    '[auth]\nmode = "custom"\n': "key 'handler': mode = \"custom\" needs a handler",
    '[auth]\nmode = "custom"\nhandler = 5\n': "key 'handler': 5 names nothing",
    "[auth]\njwt = 5\n": "key 'jwt': give a table of its own",
    '[auth]\nmode = "jwt"\n[auth.jwt]\nsecret = "env:NOT_THERE"\n': "key 'jwt.secret': it is to be read from the "
    "environment, and 'NOT_THERE' is not set there",
    '[[hooks]]\nscheme = "none"\n': "table [[hooks]] number 1, key 'name': this key is missing",
    '[[hooks]]\nname = "a/b"\nscheme = "none"\n': "key 'name': 'a/b' cannot be a part of an address",
    '[[hooks]]\nname = "a"\n': "key 'secrets': scheme 'standard' needs one",
    '[[hooks]]\nname = "a"\nscheme = "none"\n[[hooks]]\nname = "a"\nscheme = "none"\n': "two hooks are named 'a'",
    '[[webhooks]]\nurl = "ftp://x"\n': "table [[webhooks]] number 1, key 'url': 'ftp://x' is no address",
    '[[webhooks]]\nurl = "https://x"\nevents = ["run.over"]\n': "key 'events': 'run.over' is none of",
    "[server\n": "is no TOML:",
}


@pytest.mark.parametrize("text", MISTAKES, ids=range(len(MISTAKES)))
def test_mistake_is_told_where_it_was_made(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text)

    with pytest.raises(SettingsError) as caught:
        read_config(path)

    assert str(caught.value).startswith(str(path))
    assert MISTAKES[text] in str(caught.value)


def test_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"bide\.toml cannot be read: No such file"):
        read_config(tmp_path / "bide.toml")
