"""A store is opened by a URL, and by nothing that only resembles one: never by guessing, never in memory by mistake."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from pathlib import Path
from typing import Any, TypedDict

import psycopg
import pytest
from psycopg_pool import AsyncConnectionPool, ConnectionPool

from bide import Command, Encryption, InMemorySaver, MemorySaver, Store, interrupt
from bide.errors import EncryptionError, StoreError, StoreUnavailableError
from bide.store.memory import AsyncPostgresSaver, AsyncSqliteSaver, PostgresSaver, SqliteSaver
from bide.store.opening import open_database
from tests.threads import one_node, thread


class State(TypedDict):
    x: int


def asking(store: Store | str) -> Any:
    return one_node(State, lambda state: {"x": interrupt("?")}, checkpointer=store)


def check_kept_between(first: Store, second: Store) -> None:
    """What one store wrote, another that is opened later goes on with."""
    with first:
        asking(first).invoke({"x": 1}, thread("t"))
    with second:
        assert asking(second).invoke(Command(resume=5), thread("t"))["x"] == 5


@pytest.fixture
def url_of_server(postgres_url: str) -> str:
    """The database as a URL, in the place of a list of settings."""
    given = psycopg.conninfo.conninfo_to_dict(postgres_url)
    return f"postgresql://{given['user']}@/{given['dbname']}?host={given['host']}"


# ── URLs ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_file_by_relative_and_absolute_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    check_kept_between(Store.open("sqlite:///bide.db"), Store.open(f"sqlite:///{tmp_path}/bide.db"))


def test_server_by_url_and_by_settings(url_of_server, postgres_url):
    check_kept_between(Store.open(url_of_server, schema="bide"), Store.open(postgres_url, schema="bide"))


def test_other_spelling_of_the_scheme_is_understood(url_of_server):
    with Store.open(url_of_server.replace("postgresql://", "postgres://"), schema="bide") as store:
        assert store.threads() == []


def test_graph_is_compiled_with_the_url_of_a_server(url_of_server):
    graph = asking(url_of_server)

    assert graph.invoke({"x": 1}, thread("t"))["__interrupt__"]
    graph.checkpointer.close()


@pytest.mark.parametrize("url", [":memory:", "sqlite://", "sqlite:///:memory:"])
def test_memory_only_when_it_is_asked_for(url):
    with Store.open(url) as store:
        assert store.database.path == ":memory:"


@pytest.mark.parametrize(
    ("url", "hint"),
    [
        ("", "Use 'sqlite:///bide.db'"),
        ("memory", "Use 'sqlite:///bide.db'"),
        ("sqlite:///", "Use 'sqlite:///bide.db'"),
        ("bide.db", "Did you mean 'sqlite:///bide.db'?"),
        ("sqlit:///bide.db", "Did you mean 'sqlite'?"),
        ("postgre://u@h/d", "Did you mean 'postgres'?"),
        ("postgressql://u@h/d", "Did you mean 'postgresql'?"),
        ("postgresql+psycopg://u@h/d", "write 'postgresql://' in place of it"),
        ("postgresql+asyncpg://u@h/d", "write 'postgresql://' in place of it"),
        ("sqlite+aiosqlite:///bide.db", "write 'sqlite:///' in place of it"),
        ("mysql://u@h/d", "Use 'sqlite:///bide.db'"),
        ("redis://localhost", "Use 'sqlite:///bide.db'"),
    ],
)
def test_what_is_no_url_is_refused_with_what_was_probably_meant(url, hint):
    with pytest.raises(StoreUnavailableError) as raised:
        Store.open(url)

    assert "is no URL of a store" in str(raised.value)
    assert hint in str(raised.value)


def test_refusal_does_not_show_the_password():
    with pytest.raises(StoreUnavailableError) as raised:
        Store.open("postgre://me:s3cret@host/db")

    assert "s3cret" not in str(raised.value)
    assert "me:…@host" in str(raised.value)


@pytest.mark.parametrize("thing", [None, 5, object(), ["sqlite:///x"], b"sqlite:///x"])
def test_what_is_no_url_at_all_is_refused(thing):
    with pytest.raises(StoreUnavailableError, match="is no store, no URL of one, and no connection pool"):
        Store.open(thing)


@pytest.mark.parametrize("options", [{"schema": "bide"}, {"most_connections": 3}])
def test_options_of_a_server_are_refused_for_a_file(tmp_path, options):
    with pytest.raises(StoreUnavailableError, match="are for PostgreSQL"):
        Store.open(f"sqlite:///{tmp_path}/bide.db", **options)


def test_store_without_any_connection_is_refused(postgres_url):
    with pytest.raises(StoreUnavailableError, match="most_connections=0 is too few"):
        Store.open(postgres_url, most_connections=0)


def test_connections_of_a_pool_are_counted_by_the_pool(postgres_url):
    with (
        ConnectionPool(postgres_url, min_size=0, max_size=1) as pool,
        pytest.raises(StoreUnavailableError, match="max_size"),
    ):
        Store.open(pool, most_connections=3)


def test_driver_that_is_not_installed_is_named_with_its_extra(monkeypatch):
    for module in [name for name in sys.modules if name.startswith("bide.store.postgres")]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(StoreUnavailableError, match=r'pip install "bide\[postgres\]"'):
        open_database("postgresql://host/database")


def test_bide_is_imported_without_the_driver():
    loaded = "import sys, bide; bide.Store; print('psycopg' in sys.modules)"

    assert run(loaded) == "False"


def run(program: str) -> str:
    import subprocess

    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip()


async def test_pool_of_an_event_loop_is_refused_with_what_to_give():
    pool = AsyncConnectionPool("postgresql://host/database", open=False)

    with pytest.raises(StoreUnavailableError, match="belongs to an event loop"):
        Store.open(pool)


def test_single_connection_to_a_server_is_refused_with_what_to_give(postgres_url):
    with psycopg.connect(postgres_url) as connection, pytest.raises(StoreUnavailableError, match="ConnectionPool"):
        PostgresSaver(connection)


def test_connection_to_a_file_names_the_file(tmp_path):
    connection = sqlite3.connect(tmp_path / "bide.db")

    check_kept_between(Store.open(connection), Store.open(f"sqlite:///{tmp_path}/bide.db"))

    connection.close()


def test_connection_to_memory_is_refused_since_nobody_else_could_open_it():
    connection = sqlite3.connect(":memory:")

    with pytest.raises(StoreUnavailableError, match=r"Use MemorySaver\(\)"):
        Store.open(connection)

    connection.close()


# ── The names that LangGraph's users know ──────────────────────────────────────────────────────────────────────────


def test_memory_savers_are_one():
    assert InMemorySaver is MemorySaver


def test_sqlite_saver_with_and_without_a_block(tmp_path):
    path = str(tmp_path / "checkpoints.sqlite")
    with SqliteSaver.from_conn_string(path) as saver:
        saver.setup()
        asking(saver).invoke({"x": 1}, thread("t"))

    saver = SqliteSaver.from_conn_string(path)
    assert asking(saver).invoke(Command(resume=5), thread("t"))["x"] == 5
    saver.close()


def test_sqlite_saver_over_a_connection_and_a_path(tmp_path):
    connection = sqlite3.connect(tmp_path / "bide.db", check_same_thread=False)

    check_kept_between(SqliteSaver(connection), SqliteSaver(Path(tmp_path / "bide.db")))

    connection.close()


def test_postgres_saver_with_and_without_a_block(postgres_url):
    with PostgresSaver.from_conn_string(postgres_url, schema="bide") as saver:
        saver.setup()
        asking(saver).invoke({"x": 1}, thread("t"))

    saver = PostgresSaver.from_conn_string(postgres_url, schema="bide")
    assert asking(saver).invoke(Command(resume=5), thread("t"))["x"] == 5
    saver.close()


def test_postgres_saver_does_not_take_a_file():
    with pytest.raises(StoreUnavailableError, match="For a file use SqliteSaver"):
        PostgresSaver.from_conn_string("bide.db")


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://u:sekret@host/db",
        "postgres://u:sekret@host/db",
        "postgresql+psycopg://u:sekret@host/db",
        "mysql://u:sekret@host/db",
        "host=127.0.0.1 password=sekret",
    ],
)
def test_sqlite_saver_takes_no_url_of_a_server_for_a_path(tmp_path, monkeypatch, url):
    monkeypatch.chdir(tmp_path)

    with pytest.raises(StoreUnavailableError, match="For PostgreSQL use PostgresSaver") as told:
        SqliteSaver.from_conn_string(url)

    assert "sekret" not in str(told.value)
    assert list(tmp_path.iterdir()) == []


def test_savers_for_an_event_loop(tmp_path, postgres_url):
    async def live() -> list[int]:
        results = []
        async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "bide.db")) as saver:
            await saver.setup()
            await asking(saver).ainvoke({"x": 1}, thread("t"))
            results.append((await asking(saver).ainvoke(Command(resume=5), thread("t")))["x"])
        async with AsyncPostgresSaver.from_conn_string(postgres_url, schema="bide") as saver:
            await saver.setup()
            await asking(saver).ainvoke({"x": 1}, thread("t"))
            results.append((await asking(saver).ainvoke(Command(resume=6), thread("t")))["x"])
        return results

    assert asyncio.run(live()) == [5, 6]


# ── Passwords, and options that are none ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "url",
    [
        "hots=127.0.0.1 dbname=x password=sekret",
        "hots=127.0.0.1 password = 'sekret'",
        "postgresql://u:se/kret-sekret@127.0.0.1:5998/d",
        "postgresql://u:p@sekret@127.0.0.1:5999/d",
        "postgrs://u:sekret@127.0.0.1/d",
    ],
)
def test_no_message_shows_a_password_however_it_is_written(url: str):
    with pytest.raises(StoreUnavailableError) as told:
        Store.open(url)

    assert "sekret" not in str(told.value)


def test_password_that_must_be_escaped_is_told():
    with pytest.raises(StoreUnavailableError, match="'@' as %40"):
        Store.open("postgresql://u:p@ss@127.0.0.1:5999/d")


@pytest.mark.parametrize("url", ["sqlite://bide.db", "sqlite:bide.db", "sqlite:/bide.db"])
def test_too_few_slashes_are_told(url: str):
    with pytest.raises(StoreUnavailableError, match=r"Did you mean 'sqlite:///bide\.db'"):
        Store.open(url)


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"retension": 1}, "Did you mean 'retention'"),
        ({"encryption": "a key"}, r"give Encryption\("),
        ({"retention": {"keep_last": 3}}, r"give Retention\("),
        ({"largest_value": "1MB"}, "number of bytes"),
        ({"largest_value": -1}, "number of bytes"),
        ({"owner": 7}, "give a text"),
    ],
)
def test_option_that_is_none_is_told_before_anything_is_made(tmp_path: Path, options: dict[str, Any], advice: str):
    with pytest.raises(StoreError, match=advice) as told:
        Store.open(f"sqlite:///{tmp_path / 'bide.db'}", **options)

    assert "a key" not in str(told.value)
    assert list(tmp_path.iterdir()) == []


def test_encrypted_store_is_not_opened_without_its_keys(tmp_path: Path):
    url, keys = f"sqlite:///{tmp_path / 'bide.db'}", Encryption({"a": Encryption.generate_key()})
    with Store.open(url, encryption=keys) as store:
        one_node({"x": int}, lambda state: {}, checkpointer=store).invoke({"x": 1}, thread())

    with pytest.raises(EncryptionError, match="Open it with its keys"):
        Store.open(url)
