"""The page about the API: made here, of the description that clients read, and loaded from nowhere else."""

from __future__ import annotations

from tests.server.pages.desk import Desk, Office


def test_page_about_the_api_tells_every_route_and_what_it_takes(desk: Desk):
    described = desk.client.get("/openapi.json").json()["paths"]

    page = desk.browser.open("/docs")

    for path, methods in described.items():
        for method in methods:
            assert f"{method.upper()} {path}" in page.text
    assert "list of string · body, needed" in page.text
    assert "age, deadline" in page.text


def test_page_about_the_api_loads_nothing_from_anywhere_else(desk: Desk):
    told = desk.client.get("/docs")

    page = desk.browser.open("/docs")

    loaded = [tag.attributes.get("src") or tag.attributes.get("href") or "" for tag in page.tags if tag.name != "a"]
    assert [address for address in loaded if "//" in address] == []
    assert "default-src 'none'" in told.headers["content-security-policy"]
    assert desk.client.get("/redoc").status_code == 404


def test_page_about_the_api_is_for_those_who_may_look(office: Office):
    assert office.maya.open("/docs").status == 200
    assert office.client.get("/docs", headers={"accept": "application/json"}).status_code == 401
