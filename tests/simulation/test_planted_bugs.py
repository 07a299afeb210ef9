"""A proof that cannot fail proves nothing: each of these bugs is planted, and the simulation must find it soon."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bide.engine import context, flow, opening, walk
from bide.engine.context import TaskContext
from bide.types import RunStatus
from tests.engine.notebook import Notebook, Pen
from tests.simulation.simulation import Broken, Simulation

SOON = 300
"""Seeds within which a bug must show."""

Plant = Callable[[pytest.MonkeyPatch], None]


def writes_without_a_lease(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Notebook, "hold", lambda self, lease: None)


def takes_over_in_the_same_epoch(patch: pytest.MonkeyPatch) -> None:
    move = Notebook._move
    patch.setattr(Notebook, "_move", lambda self, read, *args: move(self, read._replace(epoch=read.epoch - 1), *args))


def takes_over_what_it_has_not_read(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Notebook, "lines", lambda self: frozenset())


def forgets_to_consume_waits(patch: pytest.MonkeyPatch) -> None:
    retire = Notebook._retire

    def keep_waits(self: Notebook, prefix: str) -> None:
        waits = dict(self.waits)
        retire(self, prefix)
        self.waits = waits

    patch.setattr(Notebook, "_retire", keep_waits)


def forgets_to_retire_the_journal(patch: pytest.MonkeyPatch) -> None:
    retire = Notebook._retire

    def keep_journal(self: Notebook, prefix: str) -> None:
        lines = dict(self.results), dict(self.errors), dict(self.steps)
        retire(self, prefix)
        self.results, self.errors, self.steps = lines

    patch.setattr(Notebook, "_retire", keep_journal)


def forgets_steps(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Pen, "keep", lambda self, task, key, entry: None)


def forgets_steps_between_attempts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TaskContext, "remember", lambda self, key, entry: None)


def runs_unanswered_tasks_again(patch: pytest.MonkeyPatch) -> None:
    def all_without_a_result(checkpoint: Any, results: Any, waits: Any, done: Any = frozenset()) -> Any:
        return [task for task in checkpoint.tasks if task.id not in results]

    patch.setattr(walk, "ready_tasks", all_without_a_result)


def loses_finished_siblings_at_a_pause(patch: pytest.MonkeyPatch) -> None:
    save = flow._Run.save_pause

    def save_nothing_finished(self: Any, *args: Any) -> Any:
        self.unsaved = []
        yield from save(self, *args)

    patch.setattr(flow._Run, "save_pause", save_nothing_finished)


def loses_graphs_inside_at_a_pause(patch: pytest.MonkeyPatch) -> None:
    save = Notebook.commit

    def save_nothing_inside(self: Notebook, lease: Any, commit: Any, prefix: str) -> None:
        is_pause = commit.status is RunStatus.WAITING
        save(self, lease, commit._replace(carried=()) if is_pause else commit, prefix)

    patch.setattr(Notebook, "commit", save_nothing_inside)


def gives_all_questions_of_a_task_one_name(patch: pytest.MonkeyPatch) -> None:
    named = context.question_id
    patch.setattr(context, "question_id", lambda uid, task_id, key: named(uid, task_id, ""))


def forgets_updates_that_come_with_questions(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(walk.Walk, "_with_pause_updates", lambda self, asks: (self.checkpoint, frozenset()))


def pauses_at_the_same_place_again(patch: pytest.MonkeyPatch) -> None:
    held = walk.held_before

    def held_for_ever(nodes: Any, checkpoint: Any, waits: Any, begun: Any, uid: str) -> Any:
        return held(nodes, checkpoint, (), (), uid)

    patch.setattr(walk, "held_before", held_for_ever)


def applies_what_finished_first_first(patch: pytest.MonkeyPatch) -> None:
    ranks: dict[str, int] = {}
    join, following = walk.Walk._join, walk.next_checkpoint

    def remember_order(self: Any, running: int, finished: dict[str, Any]) -> Any:
        yield from join(self, running, finished)
        ranks.update({task_id: rank for rank, task_id in enumerate(finished)})

    def in_that_order(spec: Any, before: Any, outcomes: Any, **more: Any) -> Any:
        return following(spec, before, sorted(outcomes, key=lambda one: ranks.get(one.task.id, 0)), **more)

    patch.setattr(walk.Walk, "_join", remember_order)
    patch.setattr(walk, "next_checkpoint", in_that_order)


def accepts_any_answer(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(opening, "match_answers", lambda resume, loaded: [])


def ends_a_failed_run_as_done(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(flow._Run, "_status_after", lambda self, error, asks: RunStatus.DONE)


BUGS: list[Plant] = [
    writes_without_a_lease,
    takes_over_in_the_same_epoch,
    takes_over_what_it_has_not_read,
    forgets_to_consume_waits,
    forgets_to_retire_the_journal,
    forgets_steps,
    forgets_steps_between_attempts,
    runs_unanswered_tasks_again,
    loses_finished_siblings_at_a_pause,
    loses_graphs_inside_at_a_pause,
    gives_all_questions_of_a_task_one_name,
    forgets_updates_that_come_with_questions,
    pauses_at_the_same_place_again,
    applies_what_finished_first_first,
    accepts_any_answer,
    ends_a_failed_run_as_done,
]


def first_to_find(seeds: range) -> int | None:
    for seed in seeds:
        try:
            Simulation(seed).run()
        except Broken:
            return seed
    return None


@pytest.mark.parametrize("plant", BUGS, ids=lambda plant: plant.__name__)
def test_simulation_finds_a_runtime_that(plant: Plant, monkeypatch: pytest.MonkeyPatch):
    plant(monkeypatch)

    assert first_to_find(range(SOON)) is not None
