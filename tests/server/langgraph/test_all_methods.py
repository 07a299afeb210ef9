"""Every method of LangGraph's SDK is tried somewhere in this folder, with the sync and the async client."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

from langgraph_sdk import client as sdk

HERE = Path(__file__).parent
PARTS = {"assistants": "AssistantsClient", "threads": "ThreadsClient", "runs": "RunsClient", "store": "StoreClient"} | {
    "crons": "CronClient"
}
NOT_TRIED: dict[str, str] = {}
"""Methods that are left out, each with a reason. There are none."""
CLIENTS = ("client", "sdk", "sync")
"""How tests call a client: `client` and `sdk` are both kinds, one after the other; `sync` has async tests beside it."""


def methods_of(name: str) -> set[str]:
    members = vars(getattr(sdk, name)).items()
    return {member for member, value in members if not member.startswith("_") and inspect.isfunction(value)}


def methods() -> dict[str, set[str]]:
    return {part: methods_of(name) for part, name in PARTS.items()}


def tried() -> set[str]:
    """Return all `client.part.method` in the tests of this folder, as `part.method`."""
    found = set()
    for file in HERE.glob("test_*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            match node:
                case ast.Attribute(ast.Attribute(ast.Name(name), part), method) if name in CLIENTS:
                    found.add(f"{part}.{method}")
                case ast.Attribute(ast.Name("crons"), method):  # the part of a client, as a fixture
                    found.add(f"crons.{method}")
    return found


def test_both_clients_have_the_same_methods() -> None:
    for part, name in PARTS.items():
        assert methods_of(f"Sync{name}") == methods()[part], part


def test_every_method_is_tried() -> None:
    every = {f"{part}.{method}" for part, names in methods().items() for method in names}

    assert len(every) > 40
    assert sorted(every - tried() - NOT_TRIED.keys()) == []
    assert sorted(NOT_TRIED.keys() & tried()) == []
