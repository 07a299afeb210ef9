"""A process dies in the middle of an entrypoint, or its caller goes away: finished tasks stay finished."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from threading import Barrier, Event, Thread
from typing import Any

import pytest

from bide import Command, Store, entrypoint, interrupt, task
from bide.errors import ConflictError, ResumeError
from tests.functional.programs.workflow import drive
from tests.functional.world import World
from tests.stories.programs.child import Child, run_program
from tests.threads import let_tasks_end, thread

PROGRAM = str(Path(__file__).parent / "programs" / "workflow.py")
EXPECTED = ["LEFT", "RIGHT", ["STEP", "LEAF"], "ship", "wrap", "pay", "LAST"]
MADE_ONCE = Counter(["left", "right", "step", "leaf", "last"])


# ── Killed ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def runs_in(folder: Path) -> Counter[str]:
    return Counter((folder / "runs.txt").read_text(encoding="utf-8").split())


def points_of(folder: Path, durability: str) -> list[str]:
    """Run in peace, and return the points that were passed."""
    folder.mkdir()
    ended = run_program(PROGRAM, folder, durability, BIDE_FAILPOINT_TRACE=str(folder / "trace.txt"))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert json.loads(ended.stdout) == EXPECTED
    assert runs_in(folder) == MADE_ONCE
    return (folder / "trace.txt").read_text(encoding="utf-8").split()


def differences_after_death_at(point: str, folder: Path, durability: str) -> list[str]:
    """Die at a point, go on in another process, and return what is not as it should be."""
    folder.mkdir()
    killed = run_program(PROGRAM, folder, durability, BIDE_FAILPOINT=point)
    result = drive(folder, durability)
    repeated = runs_in(folder) - MADE_ONCE
    with closing(sqlite3.connect(folder / "bide.db")) as database:
        left = database.execute(
            "SELECT (SELECT count(*) FROM journal), (SELECT count(*) FROM waits WHERE NOT consumed)"
        )
        rest = left.fetchone()
    found = {
        "did not die": killed.returncode != -signal.SIGKILL,
        f"result {result}": result != EXPECTED,
        f"made again: {repeated}": repeated.total() > 1,
        f"rows left: {rest}": rest != (0, 0),
    }
    return [f"{point}: {what}" for what, is_wrong in found.items() if is_wrong]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("durability", "every"), [("sync", 2), ("async", 5), ("exit", 5)])
def test_death_at_any_write_keeps_what_was_finished(durability: str, every: int, tmp_path: Path):
    points = points_of(tmp_path / "in peace", durability)
    chosen = points[::every]

    differences = [
        found
        for number, point in enumerate(chosen)
        for found in differences_after_death_at(point, tmp_path / str(number), durability)
    ]

    assert len(chosen) > 10
    assert differences == []


# ── Left ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_tasks_that_were_finished_before_the_reader_left_are_kept(store: Store, world: World):
    @task
    def work(number: int) -> str:
        return world.do(f"work {number}")

    @entrypoint(checkpointer=store)
    def run(given: int) -> Any:
        return [work(number).result() for number in range(3)]

    parts = run.stream(1, thread())
    assert next(parts) == {"work": "work 0 done"}
    parts.close()
    let_tasks_end()
    ended = run.invoke(None, thread())

    assert ended == [f"work {number} done" for number in range(3)]
    assert world.counts["work 0"] == 1


def test_a_cancelled_call_keeps_its_finished_tasks_and_cancels_the_others(store: Store, world: World):
    begun = asyncio.Event()

    @task
    async def quick() -> str:
        return world.do("quick")

    @task
    async def endless() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            world.do("cancelled")

    @entrypoint(checkpointer=store)
    async def run(given: int) -> Any:
        found = await quick()
        if world.counts["cancelled"] == 0:
            await endless()
        return found

    async def main() -> None:
        call = asyncio.create_task(run.ainvoke(1, thread()))
        await begun.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(main())

    assert asyncio.run(run.ainvoke(None, thread())) == "quick done"
    assert world.effects == ["quick", "cancelled"]


def test_a_cancelled_call_lets_go_of_the_thread_when_its_tasks_in_threads_have_ended(store: Store, world: World):
    begun, go = Event(), Event()

    @task
    def slow() -> str:
        begun.set()
        go.wait(30)
        return world.do("slow")

    @entrypoint(checkpointer=store)
    async def run(given: int) -> Any:
        return await slow()

    async def main() -> None:
        call = asyncio.create_task(run.ainvoke(1, thread()))
        await asyncio.to_thread(begun.wait, 30)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(main())
    go.set()
    let_tasks_end()

    assert asyncio.run(run.ainvoke(None, thread())) == "slow done"


# ── Raced for ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_of_many_who_answer_one_goes_on_and_the_task_is_used_once(store: Store, world: World):
    @task
    def ask() -> Any:
        answer = interrupt("Pay?")
        world.do("pay")
        return answer

    @entrypoint(checkpointer=store)
    def run(given: int) -> Any:
        return ask().result()

    run.invoke(1, thread())
    together = Barrier(5)
    ends: list[Any] = []

    def answer(number: int) -> None:
        together.wait(30)
        try:
            ends.append(run.invoke(Command(resume=number), thread()))
        except (ConflictError, ResumeError) as problem:
            ends.append(problem)

    racers = [Thread(target=answer, args=(number,)) for number in range(5)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join()

    assert len([end for end in ends if isinstance(end, int)]) == 1
    assert world.effects == ["pay"]


@pytest.mark.slow
def test_of_two_processes_that_answer_one_goes_on(tmp_path: Path):
    program = str(Path(__file__).parent / "programs" / "resumer.py")
    with Child(program, tmp_path, "ada") as ada, Child(program, tmp_path, "bob") as bob:
        assert [ada.hear(), bob.hear()] == ["ready", "ready"]
        rounds = []
        for number in range(50):
            ada.ask("ask", f"thread-{number}")
            for racer in (ada, bob):
                racer.tell("answer", f"thread-{number}")
            rounds.append([racer.hear()["won"] for racer in (ada, bob)])

    assert [sum(won) for won in rounds] == [1] * 50
    used = [line.split()[0] for line in (tmp_path / "used.txt").read_text(encoding="utf-8").splitlines()]
    assert sorted(used) == sorted(f"thread-{number}" for number in range(50))
