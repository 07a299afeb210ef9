"""Lists in the channel log: what their rows unpack to is bounded, and whatever was written can be read."""

from __future__ import annotations

import os
import tracemalloc
import zlib

import ormsgpack
import pytest

from bide.errors import CorruptDataError
from bide.store.lists import GROUPED, LARGEST_GROUP, OPAQUE, SPLICED, WHOLE, Logged, read_rows, write_list

SPAN = ((1, 100),)


def logged(elements: list[bytes]) -> tuple[dict[int, bytes], Logged]:
    """Let a list grow by one element after the other; return the rows in the log."""
    log: dict[int, bytes] = {}
    before = None
    for seq in range(1, len(elements) + 1):
        rows, before = write_list("said", before, elements[:seq], 1, seq)
        for row in rows:
            for gone in [known for known in log if row.until is not None and row.seq <= known <= row.until]:
                del log[gone]
            log[row.seq] = row.body
    assert before is not None
    return log, before


@pytest.mark.parametrize("size", [10, 20_000, 100_000], ids=["small", "larger", "large"])
def test_a_list_of_large_elements_comes_back(size):
    elements = [os.urandom(size) for _ in range(150)]

    log, where = logged(elements)

    found = read_rows(where.spans, [row for row in sorted(log.items()) if row[0] >= where.spans[0][0]])
    assert isinstance(found, Logged)
    assert found.elements == elements


def test_no_row_grows_far_beyond_what_it_was_written_for():
    log, _ = logged([os.urandom(100_000) for _ in range(150)])

    changes = [body for body in log.values() if body[1] != WHOLE]
    assert max(map(len, changes)) < 2 * LARGEST_GROUP


@pytest.mark.parametrize(
    "unpacked",
    [
        b"\xdd" + (60_000_000).to_bytes(4) + b"\x90" * 60_000_000,
        b"\x91" * 30_000_000,
        bytes(200_000_000),
    ],
    ids=["many lists", "deep lists", "zeros"],
)
def test_a_group_that_unpacks_to_gigabytes_is_refused_before_it_does(unpacked):
    bomb = ormsgpack.packb([GROUPED, zlib.compress(unpacked, 9)])
    del unpacked

    tracemalloc.start()
    try:
        with pytest.raises(CorruptDataError):
            read_rows(SPAN, [(1, bomb)])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 16 * LARGEST_GROUP


@pytest.mark.parametrize(
    "held",
    [
        [OPAQUE, 2**40],
        [OPAQUE, "x"],
        [OPAQUE, [1]],
        [WHOLE, 2**40],
        [WHOLE, "x"],
        [WHOLE, [1]],
        [SPLICED, [[0, 1, []]]],
        [GROUPED, b"x"],
        [9, []],
    ],
    ids=str,
)
def test_a_row_that_holds_something_else_is_refused(held):
    with pytest.raises(CorruptDataError, match="do not fit together"):
        read_rows(SPAN, [(1, ormsgpack.packb(held))])
