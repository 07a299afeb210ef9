"""Ctrl-C while a write waits for a file that another program holds: the store can be used afterwards."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing

import pytest

from bide import Store
from bide.store.gate import Gate


def test_thread_that_a_signal_sent_out_of_the_gate_finds_its_way_in_again(path):
    with Store.open(f"sqlite:///{path}") as store, closing(sqlite3.connect(path, isolation_level=None)) as another:
        store.database._writer.execute("PRAGMA busy_timeout = 200")
        another.execute("BEGIN IMMEDIATE")
        before = signal.signal(signal.SIGALRM, signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            with pytest.raises(KeyboardInterrupt):
                store.items.put(("users",), "ada", {})
        finally:
            signal.signal(signal.SIGALRM, before)
        another.execute("ROLLBACK")

        store.items.put(("users",), "ada", {"name": "Ada"})

        gate = store.database._gate
        assert isinstance(gate, Gate)
        assert not gate._mine.locked()
        assert store.items.get(("users",), "ada").value == {"name": "Ada"}
