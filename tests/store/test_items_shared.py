"""Many threads and several processes use the items of one file: nobody is told that it is locked, nothing is lost."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest

from bide import Store
from bide.store.item_ops import GetOp, PutOp

THREADS, ROUNDS = 8, 20
PATIENCE_SECONDS = 60

# Each process writes keys of its own, reads those of the others, and writes one key that all of them write.
PROGRAM = """
import json, sys
from concurrent.futures import ThreadPoolExecutor
from bide import Store

url, name, threads, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])

def work(number):
    for round in range(rounds):
        items.put(("work", name), f"{number}", {"round": round}, ttl=60)
        items.put(("work", "all"), "last", {"by": name})
        found = items.get(("work", name), f"{number}")
        if found is None or found.value != {"round": round}:
            return f"{name} {number}: wrote {round} and read {found}"
        items.search(("work",), filter={"round": {"$gte": 0}}, limit=3)

with Store.open(url) as store, ThreadPoolExecutor(threads) as pool:
    items = store.items
    print("ready", flush=True)
    sys.stdin.readline()
    print(json.dumps([problem for problem in pool.map(work, range(threads)) if problem]), flush=True)
"""


def test_threads_that_write_different_keys_lose_nothing(path):
    barrier = Barrier(THREADS, timeout=PATIENCE_SECONDS)
    with Store.open(f"sqlite:///{path}") as store, ThreadPoolExecutor(THREADS) as pool:
        items = store.items

        def work(number: int) -> None:
            barrier.wait()
            for round in range(ROUNDS):
                items.put(("work", str(number)), str(round), {"round": round})

        list(pool.map(work, range(THREADS)))

        for number in range(THREADS):
            found = items.search(("work", str(number)), limit=2 * ROUNDS)
            assert sorted(item.value["round"] for item in found) == list(range(ROUNDS))


def test_batches_are_seen_whole_or_not_at_all(path):
    places = [("pair", "left"), ("pair", "right")]
    with Store.open(f"sqlite:///{path}") as store, ThreadPoolExecutor(2) as pool:
        items = store.items
        items.batch([PutOp(place, "n", {"n": 0}) for place in places])

        def write() -> None:
            for number in range(1, ROUNDS + 1):
                items.batch([PutOp(place, "n", {"n": number}) for place in places])

        def read() -> list[tuple[int, int]]:
            pairs = [items.batch([GetOp(place, "n") for place in places]) for _ in range(5 * ROUNDS)]
            return [(left.value["n"], right.value["n"]) for left, right in pairs]

        writing, reading = pool.submit(write), pool.submit(read)
        writing.result(PATIENCE_SECONDS)

        assert [pair for pair in reading.result(PATIENCE_SECONDS) if pair[0] != pair[1]] == []
        assert items.get(("pair", "left"), "n").value == {"n": ROUNDS}


@pytest.mark.slow
def test_two_processes_with_several_threads_each_share_one_file(path):
    names, url = ["one", "two"], f"sqlite:///{path}"
    children = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", PROGRAM, url, name, str(THREADS), str(ROUNDS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    try:
        assert [child.stdout.readline() for child in children if child.stdout] == ["ready\n"] * 2

        ends = [child.communicate(timeout=PATIENCE_SECONDS) for child in in_step(children)]
    finally:
        for child in children:
            child.kill()
            child.wait(PATIENCE_SECONDS)

    assert [(json.loads(said), complaints) for said, complaints in ends] == [([], "")] * 2
    with Store.open(url) as store:
        found = store.items.search(("work",), limit=1000)
        written = {(item.namespace[1], item.key): item.value for item in found if item.namespace[1] in names}
        assert written == {(name, str(number)): {"round": ROUNDS - 1} for name in names for number in range(THREADS)}
        assert store.items.get(("work", "all"), "last").value["by"] in names


def in_step(children: list[subprocess.Popen[str]]) -> list[subprocess.Popen[str]]:
    """Tell all of them to go before waiting for the first."""
    for child in children:
        assert child.stdin is not None
        child.stdin.write("go\n")
        child.stdin.flush()
    return children
