"""Assistants in the store: one owner's, with every version that they had, whichever the database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from bide import Encryption, Store
from bide.store.assistants import Assistants, Wording
from tests.stores import KINDS, opened_store


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with opened_store(request, tmp_path, encryption=Encryption({"key": Encryption.generate_key()})) as opened:
        yield opened


def test_many_are_listed_oldest_first_across_pages(store: Store) -> None:
    kept = Assistants(store)
    names = [f"a{number:03}" for number in range(205)]
    for name in names:
        kept.make("", name, Wording("even" if int(name[1:]) % 2 == 0 else "odd", name))
    kept.make("ada", "hers", Wording("even"))

    assert sorted(row.assistant_id for row in kept.all("")) == names
    assert len(list(kept.all("", "even"))) == 103
    assert [row.assistant_id for row in kept.all("ada")] == ["hers"]
    assert [row.created_at for row in kept.all("")] == sorted(row.created_at for row in kept.all(""))


def test_two_who_change_it_at_once_make_two_versions(store: Store) -> None:
    kept = Assistants(store)
    kept.make("", "a", Wording("g"))

    changes = [Thread(target=kept.change, args=("", "a"), kwargs={"metadata": {str(n): n}}) for n in range(8)]
    for change in changes:
        change.start()
    for change in changes:
        change.join()

    found = kept.get("", "a")
    assert found is not None
    assert (found.version, found.wording.metadata) == (9, {str(n): n for n in range(8)})
    assert [row.version for row in kept.versions("", "a")] == list(range(9, 0, -1))


def test_what_was_said_is_sealed_and_damage_is_found(store: Store) -> None:
    kept = Assistants(store)
    kept.make("", "a", Wording("g", "a secret name", config={"configurable": {"secret": "word"}}))
    rows = store.database.read(
        lambda tx: tx.all("page_assistant_versions", {"assistant_id": "", "version": 0, "most": 9})
    )
    assert b"secret" not in rows[0][3]
    assert store.verify().is_sound

    moved = {"assistant_id": "b", "version": 1, "now": 0, "body": rows[0][3]}
    store.database.write("damage", lambda tx: tx.run("insert_assistant_version", moved))

    assert not store.verify().is_sound
