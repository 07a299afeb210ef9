"""The OpenAPI document: valid by the book, and such that a client can be generated from it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest

from bide import Bide, MemorySaver
from bide.server import create_app
from tests.server.household import graphs

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    with MemorySaver() as store:
        return create_app(Bide(store, graphs())).openapi()


def operations(document: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for path, ways in document["paths"].items():
        for method, operation in ways.items():
            assert method in METHODS
            yield f"{method.upper()} {path}", operation


def inside(value: Any) -> Iterator[dict[str, Any]]:
    """Give every object in a document."""
    if isinstance(value, dict):
        yield value
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from inside(one)


def test_it_says_which_version_it_is(document: dict[str, Any]) -> None:
    assert re.fullmatch(r"3\.1\.\d+", document["openapi"])
    assert document["info"]["title"] == "Bide"


def test_every_operation_has_a_name_of_its_own_a_summary_a_tag_and_an_answer(document: dict[str, Any]) -> None:
    found = list(operations(document))

    assert len(found) > 90
    assert [one for one, count in Counter(op["operationId"] for _, op in found).items() if count > 1] == []
    assert [label for label, op in found if not op.get("summary") or not op.get("tags")] == []
    assert [label for label, op in found if not any(code.startswith("2") for code in op["responses"])] == []


def test_paths_are_told_apart_by_more_than_the_names_of_their_parameters(document: dict[str, Any]) -> None:
    shapes = Counter(re.sub(r"{[^}]*}", "{}", path) for path in document["paths"])

    assert [path for path, count in shapes.items() if count > 1] == []


def test_every_parameter_of_a_path_is_described_and_needed(document: dict[str, Any]) -> None:
    for label, operation in operations(document):
        described = [one for one in operation.get("parameters", []) if one["in"] == "path"]
        assert sorted(one["name"] for one in described) == sorted(re.findall(r"{(\w+)", label)), label
        assert all(one["required"] for one in described), label


def test_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    wanted = {one["$ref"] for one in inside(document) if isinstance(one.get("$ref"), str)}

    assert wanted
    for place in wanted:
        found: Any = document
        for step in place.removeprefix("#/").split("/"):
            found = found[step]
        assert found


def test_every_schema_is_one(document: dict[str, Any]) -> None:
    for name, schema in document["components"]["schemas"].items():
        jsonschema_rs.meta.validate(schema)
        assert re.fullmatch(r"[A-Za-z0-9._-]+", name)


def test_refusals_that_any_request_may_meet_are_described(document: dict[str, Any]) -> None:
    open_doors = ("/health", "/ready", "/ok", "/hooks/{name}", "/w/{token}")
    for label, operation in operations(document):
        if not label.endswith(open_doors):
            assert {"401", "403", "422", "429", "503"} <= operation["responses"].keys(), label
