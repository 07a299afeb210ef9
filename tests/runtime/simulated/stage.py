"""Actors on a stage: many stories of plain, blocking code, of which one goes on at a time, as a director says.

Each actor has a stack of its own, and so a thread; but it moves only while it holds the baton, and hands it on at every
`breathe`. Nothing ever runs beside anything else, and the order of everything is the director's.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock, Thread, local
from typing import Any

PATIENCE = 100
"""Seconds after which a play that does not go on is given up: somebody waits for a lock without breathing."""


class Actor:
    """One story."""

    def __init__(self, name: str, story: Callable[[], Any], may_go_on: Callable[[], None] = lambda: None) -> None:
        self.name = name
        self.story = story
        self.may_go_on = may_go_on
        """Called whenever the actor gets the baton; it raises in an actor whose process is dead."""
        self.is_over = False
        self.is_idle = False
        self.error: BaseException | None = None
        self.has_begun = False
        self.turn = Lock()
        self.turn.acquire()


Director = Callable[[Actor | None], Actor | None]


class Stage:
    """Where actors play. A director is told who has the baton, and names who goes on; None at the end."""

    def __init__(self) -> None:
        self._director: Director = lambda actor: None
        self._end = Lock()
        self._end.acquire()
        self._problem: BaseException | None = None

    def play(self, director: Director) -> None:
        """Play until the director says that it is over."""
        self._director, self._problem = director, None
        self._hand_on(None, self._choose(None))
        if not self._end.acquire(timeout=PATIENCE):
            raise AssertionError("the play does not go on: somebody waits for what another one holds")
        if self._problem is not None:
            raise self._problem

    def breathe(self, actor: Actor) -> None:
        """Hand the baton on, and wait until it comes back; that may be at once."""
        chosen = self._choose(actor)
        if chosen is not actor:
            self._hand_on(actor, chosen)
        actor.may_go_on()

    def _choose(self, actor: Actor | None) -> Actor | None:
        try:
            return self._director(actor)
        except BaseException as problem:  # noqa: BLE001 — raised by `play`, in the thread of the test
            self._problem = problem
            return None

    def _hand_on(self, actor: Actor | None, chosen: Actor | None) -> None:
        if chosen is None:
            self._end.release()
        elif chosen.has_begun:
            chosen.turn.release()
        else:
            chosen.has_begun = True
            PLAYERS.begin(lambda: self._live(chosen))
        if actor is not None and not actor.is_over:
            actor.turn.acquire()

    def _live(self, actor: Actor) -> None:
        PLAYERS.here.part = (self, actor)
        try:
            actor.may_go_on()
            actor.story()
        except BaseException as error:  # noqa: BLE001 — the director hears of it
            actor.error = error
        finally:
            PLAYERS.here.part = None
            actor.is_over = True
            self._hand_on(actor, self._choose(actor))


class Players:
    """Threads that play one part after another: to make a thread takes longer than most parts."""

    def __init__(self) -> None:
        self.here = local()
        self._free: list[tuple[Lock, list[Callable[[], None]]]] = []

    def begin(self, part: Callable[[], None]) -> None:
        """Let a thread that is free play a part."""
        if self._free:
            bell, desk = self._free.pop()
        else:
            bell, desk = Lock(), []
            bell.acquire()
            Thread(target=self._serve, args=(bell, desk), name="player", daemon=True).start()
        desk.append(part)
        bell.release()

    def _serve(self, bell: Lock, desk: list[Callable[[], None]]) -> None:
        while True:
            bell.acquire()
            desk.pop()()
            self._free.append((bell, desk))


PLAYERS = Players()


def breathe(*, is_idle: bool = False) -> None:
    """Let others go on, if this is an actor's story."""
    part: tuple[Stage, Actor] | None = getattr(PLAYERS.here, "part", None)
    if part is not None:
        stage, actor = part
        actor.is_idle = is_idle
        stage.breathe(actor)
