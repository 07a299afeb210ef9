"""Lists that grow are written as they change, and read back as they were at every checkpoint."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bide.errors import CorruptDataError
from bide.store.frames import Spans
from bide.store.lists import MOST_LOOSE, MOST_SPANS, ROW_COST, Logged, edits_between, pack_value, read_rows, write_list

ELEMENTS = st.lists(st.sampled_from([b"a", b"bb", b"ccc", b"d" * 40]), max_size=12)


class Log:
    """The channel log of one key, in a dict."""

    def __init__(self) -> None:
        self.rows: dict[int, bytes] = {}
        self.written = 0

    def write(self, before: Logged | None, elements: list[bytes], start: int, seq: int) -> Logged:
        rows, logged = write_list("key", before, elements, start, seq)
        for row in rows:
            for gone in range(row.seq, (row.until or row.seq) + 1):
                self.rows.pop(gone, None)
            self.rows[row.seq] = row.body
            self.written += len(row.body)
        return logged

    def read(self, spans: Spans) -> Logged:
        rows = [(seq, self.rows[seq]) for first, last in spans for seq in range(first, last + 1) if seq in self.rows]
        found = read_rows(spans, rows)
        assert isinstance(found, Logged)
        return found


@given(ELEMENTS, ELEMENTS)
def test_edits_make_one_list_of_the_other(before, after):
    result = list(before)
    for position, gone, come in reversed(edits_between(before, after)):
        result[position : position + gone] = come

    assert result == after


def test_only_what_was_added_replaced_or_taken_out_is_written():
    old = [b"%d" % number for number in range(100)]

    assert edits_between(old, [*old, b"new"]) == [(100, 0, [b"new"])]
    assert edits_between(old, [*old[:7], b"other", *old[8:], b"new"]) == [(7, 1, [b"other"]), (100, 0, [b"new"])]
    assert edits_between(old, [*old[:7], *old[8:], b"new"]) == [(7, 1, []), (100, 0, [b"new"])]
    assert edits_between(old, old) == []


@given(st.lists(ELEMENTS, min_size=1, max_size=30))
def test_every_version_of_a_list_can_be_read_at_no_more_than_twice_its_size(versions):
    log, logged, written = Log(), None, []

    for seq, elements in enumerate(versions, 1):
        logged = log.write(logged, elements, 1, seq)
        written.append((logged.spans, elements))

    for spans, elements in written:
        found = log.read(spans)
        assert found.elements == elements
        assert found.cost <= 2 * (ROW_COST + sum(map(len, elements)))


@pytest.mark.complaint(37)
def test_bytes_written_grow_with_what_was_said_and_not_with_its_square():
    def written_after(turns: int) -> int:
        log, logged, said = Log(), None, []
        for seq in range(1, turns + 1):
            said.append(b"%0200d" % seq)
            logged = log.write(logged, list(said), 1, seq)
        return log.written

    assert written_after(1000) < 2.2 * written_after(500)
    assert written_after(1000) < 2 * 1000 * 200


def test_list_whose_elements_are_replaced_all_the_time_stays_linear_too():
    log, logged = Log(), None
    elements = [b"%0200d" % number for number in range(50)]
    for seq in range(1, 1001):
        elements[seq % 50] = b"%0200d" % seq
        logged = log.write(logged, list(elements), 1, seq)

    assert log.read(logged.spans).elements == elements
    assert log.written < 4 * 1000 * 200


def test_rows_that_were_put_together_can_be_read_up_to_any_checkpoint():
    log, logged, spans = Log(), None, {}
    said = [b"%0100d" % seq for seq in range(1, 3 * MOST_LOOSE)]

    for seq in range(1, len(said) + 1):
        logged = log.write(logged, said[:seq], 1, seq)
        spans[seq] = logged.spans

    assert len(log.rows) <= MOST_LOOSE + 1
    assert all(log.read(spans[seq]).elements == said[:seq] for seq in spans)


def test_fork_shares_the_past_and_leaves_the_other_branch_alone():
    log, logged, spans = Log(), None, {}
    for seq in range(1, 31):
        logged = log.write(logged, [b"%0100d" % number for number in range(seq)], 1, seq)
        spans[seq] = logged
    before = log.written

    fork = log.write(spans[10], [*spans[10].elements, b"another way"], 31, 31)

    assert fork.spans == ((1, 10), (31, 31))
    assert log.written - before < 100
    assert log.read(fork.spans).elements == [*spans[10].elements, b"another way"]
    assert log.read(spans[30].spans).elements == spans[30].elements


def test_fork_of_a_list_that_is_in_groups_does_not_put_the_shared_rows_together_again():
    log, logged, spans = Log(), None, {}
    said = [b"%0100d" % seq for seq in range(400)]
    for seq in range(1, 151):
        logged = log.write(logged, said[:seq], 1, seq)
        spans[seq] = logged.spans
    branch = log.read(spans[100])

    for seq in range(151, 301):
        branch = log.write(branch, [*branch.elements, said[seq]], 151, seq)

    assert log.read(branch.spans).elements == [*said[:100], *said[151:301]]
    assert all(log.read(spans[seq]).elements == said[:seq] for seq in spans)


def test_list_that_was_forked_many_times_is_written_whole():
    log = Log()
    logged = log.write(None, [b"x" * 100] * 50, 1, 1)
    for seq in range(2, 3 * MOST_SPANS, 2):
        logged = log.write(logged, [*logged.elements, b"y"], seq, seq)
        assert len(logged.spans) <= MOST_SPANS

    assert log.read(logged.spans).elements == [b"x" * 100] * 50 + [b"y"] * (len(logged.elements) - 50)


def test_list_that_is_forked_at_every_turn_is_not_written_whole_all_the_time():
    def written_after(turns: int) -> float:
        log, logged = Log(), None
        for turn in range(turns):
            elements = [*(logged.elements if logged is not None else []), b"%0300d" % turn]
            logged = log.write(logged, elements, 2 * turn, 2 * turn)
        return log.written / (300 * turns)

    assert written_after(800) < 1.6 * written_after(200)


def test_large_elements_stay_in_rows_of_their_own():
    log, logged = Log(), None
    said = [bytes([seq]) * 40_000 for seq in range(MOST_LOOSE + 2)]

    for seq in range(1, len(said) + 1):
        logged = log.write(logged, said[:seq], 1, seq)

    assert max(map(len, log.rows.values())) < 2 * 40_000
    assert log.read(logged.spans).elements == said


def test_list_that_is_written_again_as_it_was_costs_nothing():
    log = Log()
    logged = log.write(None, [b"x" * 300], 1, 1)
    before = log.written

    again = log.write(logged, [b"x" * 300], 1, 2)

    assert again.spans == ((1, 1),)
    assert log.written == before


def test_rows_that_are_gone_or_do_not_fit_are_told():
    log, logged = Log(), None
    for seq in range(1, 6):
        logged = log.write(logged, [b"x" * 300] * seq, 1, seq)
    rows = [(seq, log.rows[seq]) for seq in range(1, 6)]

    for damaged in ([], rows[1:], [rows[0], rows[3]], [*rows[:2], rows[0]], [(1, pack_value(b"v")), rows[1]]):
        with pytest.raises(CorruptDataError, match="channel log"):
            read_rows(logged.spans, damaged)
