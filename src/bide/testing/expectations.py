"""What a test expects of a thread, said so that a failure tells the whole story."""

from __future__ import annotations

from typing import Any

from bide.clock import iso
from bide.runtime import Bide
from bide.runtime.views import Run, Thread, Wait, Woken
from bide.store.needed import PLAIN
from bide.types import RunStatus

ThreadLike = Run | Thread | Wait | Woken | str | int
"""A thread, by its id or by anything that has one."""

LONGEST_STORY = 20
_ANYTHING = object()


def id_of(thread: ThreadLike) -> str:
    """Return the id of a thread."""
    return str(thread) if isinstance(thread, str | int) else thread.thread_id


class Expectations:
    """The part of a harness that looks, and says what it has found."""

    app: Bide

    def thread(self, thread: ThreadLike) -> Thread:
        """Return a thread as it stands."""
        return self.app.get(id_of(thread))

    def state(self, thread: ThreadLike) -> Any:
        """Return the state of a thread."""
        return self.thread(thread).values

    def wait(self, thread: ThreadLike) -> Wait:
        """Return what a thread waits for; it must be one thing."""
        found = self.thread(thread)
        if len(found.waits) != 1:
            raise AssertionError(f"expected one open question, found {len(found.waits)}\n{self.story(thread)}")
        return found.waits[0]

    # ── Expectations ───────────────────────────────────────────────────────────────────────────────────────────────

    def assert_done(self, thread: ThreadLike, **values: Any) -> Thread:
        """Expect that a thread has finished, and that its state holds these values."""
        found = self._assert_status(thread, RunStatus.DONE)
        for name, value in values.items():
            held = found.values.get(name, _ANYTHING) if isinstance(found.values, dict) else _ANYTHING
            if held is _ANYTHING or held != value:
                shown = "nothing" if held is _ANYTHING else repr(held)
                raise AssertionError(f"expected {name}={value!r}, found {shown}\n{self.story(thread)}")
        return found

    def assert_waiting(self, thread: ThreadLike, kind: str | None = None, *, at: str | None = None) -> Wait:
        """Expect that a thread waits; for something of this kind, and in this node, if they are given.

        Kinds are question, approval, time, email, webhook, event, child, any_of, all_of, quorum and pause. Returns the
        first wait that fits.
        """
        found = self._assert_status(thread, RunStatus.WAITING)
        for wait in found.waits:
            if kind in (None, wait.kind) and at in (None, wait.node):
                return wait
        raise AssertionError(f"expected a wait of kind {kind!r} at {at!r}\n{self.story(thread)}")

    def assert_failed(self, thread: ThreadLike, text: str = "") -> Thread:
        """Expect that a thread has failed, with this text in its error."""
        found = self._assert_status(thread, RunStatus.FAILED)
        if text not in (found.error or ""):
            raise AssertionError(f"expected an error with {text!r}\n{self.story(thread)}")
        return found

    def assert_cancelled(self, thread: ThreadLike) -> Thread:
        """Expect that a thread was cancelled."""
        return self._assert_status(thread, RunStatus.CANCELLED)

    def assert_sound(self) -> None:
        """Expect that everything in the store is whole and makes sense."""
        found = self.app.store.verify()
        if not found.is_sound:
            raise AssertionError(str(found))

    def _assert_status(self, thread: ThreadLike, status: RunStatus) -> Thread:
        found = self.thread(thread)
        if found.status is not status:
            raise AssertionError(f"expected a thread that is {status.value}\n{self.story(thread)}")
        return found

    # ── Stories ────────────────────────────────────────────────────────────────────────────────────────────────────

    def story(self, thread: ThreadLike) -> str:
        """Tell where a thread stands, and how it came there: for the message of a test that fails."""
        found = self.thread(thread)
        error = f", error: {found.error}" if found.error else ""
        lines = [f"thread {found.thread_id} of graph {found.graph!r} is {_said(found.status)}{error}"]
        lines.append(f"  state: {found.values!r}")
        lines += [f"  waits at {wait.node!r} for {wait.waiting_for}" for wait in found.waits]
        events = self.app.store.events(found.thread_id, most=100_000)[-LONGEST_STORY:]
        for event in events:
            told = PLAIN.decode(event.body, "event")
            lines.append(f"  {iso(event.at)} {event.kind} {told if told else ''}".rstrip())
        return "\n".join(lines)


def _said(status: RunStatus | None) -> str:
    return "without a run" if status is None else status.value
