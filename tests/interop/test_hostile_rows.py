"""Rows are data: whatever somebody writes into the tables, reading gives a typed error, and nothing runs."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import ormsgpack
import pytest

from bide.errors import CodecError, CorruptDataError
from bide.interop.langgraph import BideSaver
from bide.interop.langgraph.rows import Rows, WriteRow
from bide.store.frames import Frame, pack_frame
from tests.codec.test_hostile_bytes import what_happens
from tests.interop.graphs import CONFIG, asking, chat, say

PICKLE = b"cos\nsystem\n(S'true'\ntR."
"""Runs a program, for whoever unpickles it."""


def tagged(tag: str, body: bytes) -> bytes:
    return bytes([len(tag)]) + tag.encode() + body


CALL = ormsgpack.packb(ormsgpack.Ext(0, ormsgpack.packb(["os", "system", "true"])))
DEEP = b"\x91" * 100_000 + b"\xc0"
PACKED = {
    "a pickle": tagged("pickle", PICKLE),
    "a pickle as ours": b"\0\x01" + PICKLE,
    "a call as msgpack": tagged("msgpack", CALL),
    "a call as ours": b"\0\x01" + CALL,
    "a constructor of LangChain": tagged(
        "json", b'{"lc": 2, "type": "constructor", "id": ["os", "system"], "args": ["true"]}'
    ),
    "a class by name": b"\0\x01" + ormsgpack.packb(ormsgpack.Ext(4, ormsgpack.packb(["os.system", 1, {}]))),
    "a packet without its parts": b"\0\x01"
    + ormsgpack.packb(ormsgpack.Ext(4, ormsgpack.packb(["langgraph.Send", 1, {}]))),
    "deep nesting": b"\0\x01" + DEEP,
    "another version": b"\0\x07\xc0",
    "a tag that never ends": b"\xff\xff",
    "no text": b"\x02\xff\xfe\xc0",
    "nothing": b"",
    "a cut": b"\0\x01\x93\x01",
}


@pytest.fixture
def saver() -> Any:
    with BideSaver(":memory:") as opened:
        yield opened


def write(saver: BideSaver, work: Any) -> None:
    """Write rows as somebody would who has the keys to the database."""
    saver.store.database.write("attack", lambda tx: work(Rows(tx, saver.store.bodies, 1)))


@pytest.mark.parametrize("packed", PACKED.values(), ids=PACKED)
def test_a_hostile_write_is_a_typed_error(saver: BideSaver, packed: bytes) -> None:
    graph = asking().compile(checkpointer=saver)
    graph.invoke({"log": []}, CONFIG)  # type: ignore[call-overload]
    here = graph.get_state(CONFIG).config["configurable"]["checkpoint_id"]  # type: ignore[arg-type]
    write(saver, lambda rows: rows.write_write("t", "", WriteRow(here, "task", 7, "log", "", packed)))

    with what_happens() as happened, pytest.raises(CodecError):
        saver.get_tuple(CONFIG)  # type: ignore[arg-type]

    assert happened == []


@pytest.mark.parametrize("packed", PACKED.values(), ids=PACKED)
def test_a_hostile_value_is_a_typed_error(saver: BideSaver, packed: bytes) -> None:
    frame = Frame(1, None, {"log": packed}, {}, [{"log": 1}, b"\0\x01\x80", "life"])
    write(saver, lambda rows: rows.write_checkpoint(KEY, b"\0\x01\x80", pack_frame(frame)))

    with what_happens() as happened, pytest.raises(CodecError):
        saver.get_tuple(CONFIG)  # type: ignore[arg-type]

    assert happened == []


KEY = {"thread_id": "t", "ns": "", "checkpoint_id": "1", "parent_id": None, "run_id": None, "seq": 1}
FRAMES = {
    "no frame": b"hello",
    "a bare number": ormsgpack.packb(7),
    "another layout": ormsgpack.packb([99, 1, None, {}, {}, []]),
    "no rest": ormsgpack.packb([2, 1, None, {}, {}, None]),
    "a rest of other types": ormsgpack.packb([2, 1, None, {}, {}, [1, 2, 3]]),
    "spans that are none": ormsgpack.packb([2, 1, None, {}, {"log": 5}, [{}, b"", ""]]),
    "rows that are gone": ormsgpack.packb([2, 1, None, {}, {"log": [[1, 5]]}, [{"log": 1}, b"\0\x01\x80", ""]]),
    "a checkpoint that is a list": ormsgpack.packb([2, 1, None, {}, {}, [{}, b"\0\x01\x90", ""]]),
    "nothing": b"",
}


@pytest.mark.parametrize("body", FRAMES.values(), ids=FRAMES)
def test_a_hostile_checkpoint_is_a_typed_error(saver: BideSaver, body: bytes) -> None:
    write(saver, lambda rows: rows.write_checkpoint(KEY, b"\0\x01\x80", body))

    with what_happens() as happened, pytest.raises(CorruptDataError, match="'t' cannot be read"):
        saver.get_tuple(CONFIG)  # type: ignore[arg-type]

    assert happened == []


def test_one_flipped_byte_is_noticed_and_the_last_good_checkpoint_named(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with BideSaver(f"sqlite:///{path}") as saver:
        graph = chat().compile(checkpointer=saver)
        graph.invoke(say("hello"), CONFIG)  # type: ignore[call-overload]
        newest, good, *_ = [state.config["configurable"]["checkpoint_id"] for state in graph.get_state_history(CONFIG)]  # type: ignore[arg-type]
    database = sqlite3.connect(path)
    body = database.execute("SELECT body FROM saver_checkpoints WHERE checkpoint_id = ?", [newest]).fetchone()[0]
    flipped = body[:40] + bytes([body[40] ^ 1]) + body[41:]
    database.execute("UPDATE saver_checkpoints SET body = ? WHERE checkpoint_id = ?", [flipped, newest])
    database.commit()
    database.close()

    with BideSaver(f"sqlite:///{path}") as saver:
        with pytest.raises(CorruptDataError, match=f"checksum.*last good checkpoint before it is '{good}'") as raised:
            saver.get_tuple(CONFIG)  # type: ignore[arg-type]
        found = saver.get_tuple({"configurable": {"thread_id": "t", "checkpoint_id": raised.value.last_good}})

    assert found is not None
    assert found.config["configurable"]["checkpoint_id"] == good


def test_a_body_that_was_moved_to_another_row_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "app.db"
    with BideSaver(f"sqlite:///{path}") as saver:
        graph = chat().compile(checkpointer=saver)
        for name in ("t", "other"):
            graph.invoke(say(f"I am {name}"), {"configurable": {"thread_id": name}})
    database = sqlite3.connect(path)
    database.execute("UPDATE saver_checkpoints SET thread_id = 'swap' WHERE thread_id = 't'")
    database.execute("UPDATE saver_checkpoints SET thread_id = 't' WHERE thread_id = 'other'")
    database.commit()
    database.close()

    with BideSaver(f"sqlite:///{path}") as saver, pytest.raises(CorruptDataError, match="copied here from another row"):
        saver.get_tuple(CONFIG)  # type: ignore[arg-type]


@pytest.mark.parametrize("column", ["metadata", "body"])
@pytest.mark.parametrize("found", ["a text", 7, 1.5, b""])
def test_what_is_no_bytes_at_all_is_a_typed_error(tmp_path: Path, column: str, found: Any) -> None:
    path = tmp_path / "app.db"
    with BideSaver(f"sqlite:///{path}") as saver:
        chat().compile(checkpointer=saver).invoke(say("hello"), CONFIG)
    database = sqlite3.connect(path)
    database.execute(f"UPDATE saver_checkpoints SET {column} = ?", [found])
    database.commit()
    database.close()

    with BideSaver(f"sqlite:///{path}") as saver, pytest.raises(CorruptDataError, match="No older checkpoint"):
        saver.get_tuple(CONFIG)  # type: ignore[arg-type]
