"""Eight people answer the same thousand questions at once, from threads and from processes: each has one winner, and
everybody is told the truth about it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bide import Bide, Store
from tests.faults.size import TIMES
from tests.runtime.answering import PATIENCE, Told, answer_all, asking, check_answers
from tests.stores import SCHEMA

PROGRAM = Path(__file__).parent / "programs" / "answerer.py"
PEOPLE = ["a1", "a2", "b1", "b2", "c1", "d1", "x1", "x2"]
"""Those whose names begin alike answer under the same key; x1 and x2 have none."""


class Place:
    """A database in which threads wait."""

    def __init__(self, url: str, schema: str) -> None:
        self.url = url
        self.schema = schema

    def open(self) -> Store:
        return Store.open(self.url, **({"schema": self.schema} if self.schema else {}))

    def ask(self, threads: int, many: int) -> list[str]:
        """Let so many threads ask so many questions each; return the waits, longest first."""
        with self.open() as store:
            app = Bide(store, [asking(store)])
            for _ in range(threads):
                app.start("asking", {"many": many})
            while app.run_ready(most=10):
                pass
            return [wait.id for wait in app.waits(most=threads * many)]

    def finish(self) -> list[str]:
        """Drive everything to its end; return every answer that has come into a state."""
        with self.open() as store:
            app = Bide(store, [asking(store)])
            while app.run_ready(most=10):
                pass
            threads = [app.get(thread.thread_id) for thread in app.list(most=1000)]
            assert {thread.status for thread in threads} == {"done"}
            found = store.verify()
            assert found.is_sound, str(found)
            return [answer for thread in threads for answer in thread.values["answers"].values()]


@pytest.fixture(params=["file", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "file":
        return Place(f"sqlite:///{tmp_path / 'bide.db'}", "")
    return Place(request.getfixturevalue("postgres_url"), SCHEMA)


def check_race(place: Place, told: list[Told], waits: list[str]) -> None:
    winners = check_answers(told, waits, len(PEOPLE))
    answers = place.finish()
    assert Counter(answers) == Counter(f"answer of {winner.who[0]}" for winner in winners.values())


def test_questions_that_threads_answer_at_once_have_one_winner_each(place: Place):
    waits = place.ask(threads=2, many=10)

    with place.open() as store:
        told = answer_all(store, waits, PEOPLE)

    check_race(place, told, waits)


@pytest.mark.slow
@pytest.mark.timeout(300 * TIMES)
def test_thousand_questions_that_processes_answer_at_once_have_one_winner_each(place: Place):
    waits = place.ask(threads=20 * TIMES, many=50)

    with answerers(place, PEOPLE[:4], waits) as one, answerers(place, PEOPLE[4:], waits) as other:
        told = [*answers_of(one), *answers_of(other)]

    check_race(place, told, waits)
    assert len({one.who for one in told if one.status == "resumed"}) > 1, "and it was a race"


@contextmanager
def answerers(place: Place, people: list[str], waits: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A process with a thread for each of these people, which begins to answer when the block begins."""
    command = [sys.executable, str(PROGRAM), place.url, place.schema, ",".join(people)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            assert json.loads(process.stdout.readline()) == "open"
            process.stdin.write("\n".join([*waits, "", ""]))
            process.stdin.flush()
            yield process
        finally:
            process.kill()


def answers_of(process: subprocess.Popen[str]) -> list[Told]:
    told, _ = process.communicate(timeout=PATIENCE * TIMES)
    return [Told(**json.loads(line)) for line in told.splitlines()]
