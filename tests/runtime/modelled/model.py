"""What the runtime must do, said in as few words as possible: the reference for whatever a real store does.

A thread goes through a script, one operation after the other: `step`, `ask`, `event`, `sleep`, `spawn`, `fail`. A
commit is one operation that is finished, or a pause before it. There are no databases, leases or races here.
"""

from __future__ import annotations

from typing import Any

from tests.runtime.modelled.nouns import HOUR, LOOK_BACK, MOST_CRASHES, Busy, Run, Script, Thread, Wait


class Model:
    """All threads, all facts, and the time."""

    def __init__(self, now: int) -> None:
        self.now = now
        self.threads: list[Thread] = []
        self.facts: list[tuple[int, str, int]] = []
        self.pending: list[tuple[Thread, tuple[int, str]]] = []
        """Ends of children of which the parents have not been told yet."""
        self.count = 0

    # ── Runs ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def start(self, thread: Thread, script: Script | None, if_busy: str = "reject", delay: int = 0) -> Run:
        if thread not in self.threads:
            self.threads.append(thread)
        live, base = thread.live, None
        if live is not None and if_busy == "reject" and not delay:
            raise Busy
        if live is not None and if_busy in ("interrupt", "rollback"):
            begun_at = live.base if live.base is not None else self._begun_at(thread, live)
            base = begun_at if if_busy == "rollback" else live.base if live.script is not None else None
            self.cancel_run(thread, live, is_replaced=True)
        is_queued = bool(delay) or (live is not None and if_busy == "enqueue")
        due = self.now + delay if delay else None if is_queued else self.now
        run = Run("queued" if is_queued else "ready", due, script, base)
        thread.runs.append(run)
        return run

    def retry(self, thread: Thread) -> Run:
        """Start a run like the last one: where that one stood, or with its input if it never began."""
        last = [run for run in thread.runs if run.status != "queued"][-1]
        run = self.start(thread, last.script)
        run.base = last.base
        return run

    @staticmethod
    def _begun_at(thread: Thread, run: Run) -> int:
        """The checkpoint that was the newest when a run wrote its first one."""
        return next((n for n, who in enumerate(thread.writers) if who is run), len(thread.history))

    def ready(self) -> list[tuple[Thread, Run]]:
        runs = [(thread, run) for thread in self.threads for run in thread.runs]
        return [(thread, run) for thread, run in runs if run.status == "ready" and (run.due or 0) <= self.now]

    def claim(self, run: Run, worker: str) -> None:
        run.status, run.worker, run.has_progress = "running", worker, False

    def drive(self, thread: Thread, run: Run, dies_at: str | None = None) -> None:
        """Go on until the run is at rest, or its worker dies: before its first write, or around its first commit."""
        if run.script is not None:
            if dies_at == "enter:written":
                return
            self._write(thread, run, (run.script, 0, self._base(thread, run)[2]))
            run.script, thread.wait = None, None
        while True:
            self._spawn(thread)
            if dies_at == "commit:begun":
                run.has_progress = run.has_progress or thread.state[0][thread.state[1]][0] in ("step", "spawn")
                return
            is_at_rest = self._commit(thread, run, is_told=dies_at is None)
            if is_at_rest or dies_at is not None:
                return

    def _base(self, thread: Thread, run: Run) -> tuple[Script, int, list[Any]]:
        if run.base is None:
            return thread.state
        return thread.history[run.base - 1] if run.base else ([], 0, [])

    @staticmethod
    def _write(thread: Thread, run: Run | None, state: tuple[Script, int, list[Any]]) -> None:
        thread.history.append(state)
        thread.writers.append(run)
        if run is not None:
            run.has_progress = True

    def _commit(self, thread: Thread, run: Run, *, is_told: bool) -> bool:
        script, at, done = thread.state
        kind, *rest = script[at]
        if kind == "fail":
            return self._rest(thread, run, "failed", is_told)
        if kind == "step":
            said: Any = "step"
        elif thread.wait is None:
            thread.wait = self._wait(thread, kind, rest)
            self._look_back(thread, thread.wait)
            return self._rest(thread, run, "waiting" if thread.wait.is_open else "ready", is_told)
        else:
            said = [kind, thread.wait.answer]
        thread.wait = None
        self._write(thread, run, (script, at + 1, [*done, said]))
        return at + 1 == len(script) and self._rest(thread, run, "done", is_told)

    def _rest(self, thread: Thread, run: Run, status: str, is_told: bool) -> bool:
        run.status, run.worker, run.due, run.crashes = status, None, self.now, 0
        if status in ("done", "failed"):
            self._end(thread, run, is_told=is_told)
        return True

    # ── Ends ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _end(self, thread: Thread, run: Run, *, is_told: bool = True, is_replaced: bool = False) -> None:
        if run.status != "dead" and not is_replaced:
            self._promote(thread)
        closing = {"done": ["end"], "cancelled": ["end", "cancel"]}.get(run.status, [])
        for child in thread.children:
            child.is_closing = child.is_closing or child.on_close in closing
        if thread.parent is not None:
            self.count += 1
            report = (self.count, run.status)
            thread.reports.append(report)
            self.pending.append((thread, report))
            if is_told:
                self.tell_parents()

    def _promote(self, thread: Thread) -> None:
        queued = [run for run in thread.runs if run.status == "queued" and (run.due is None or run.due <= self.now)]
        if queued and thread.live is None:
            queued[0].status, queued[0].due = "ready", self.now

    def tell_parents(self) -> None:
        pending, self.pending = self.pending, []
        for child, report in pending:
            parent = child.parent
            if parent is not None and parent.wait is not None and parent.wait.is_open and parent.wait.about is child:
                self.settle(parent, report[1], report)

    def cancel_run(self, thread: Thread, run: Run, *, is_replaced: bool = False) -> None:
        was, run.status, run.worker = run.status, "cancelled", None
        if was == "queued":
            return
        if thread.wait is not None and thread.wait.is_open:
            thread.wait = None
        self._end(thread, run, is_replaced=is_replaced)

    def cancel_thread(self, thread: Thread) -> bool:
        alive = [run for run in thread.runs if not run.is_over]
        for run in reversed(alive):
            self.cancel_run(thread, run)
        return bool(alive)

    def close_children(self) -> None:
        while closing := [thread for thread in self.threads if thread.is_closing]:
            for thread in closing:
                thread.is_closing, thread.on_close = False, "abandon"
                self.cancel_thread(thread)

    # ── Waits and facts ────────────────────────────────────────────────────────────────────────────────────────────

    def _spawn(self, thread: Thread) -> None:
        script, at, _ = thread.state
        kind, *rest = script[at]
        if kind == "spawn" and len(thread.history) not in thread.child_at:
            child = Thread("", thread, rest[1])
            thread.child_at[len(thread.history)] = child
            thread.children.append(child)
            self.start(child, rest[0])

    def _wait(self, thread: Thread, kind: str, rest: list[Any]) -> Wait:
        if kind == "sleep":
            return Wait(kind, due=self.now + rest[0] * HOUR)
        if kind == "spawn":
            return Wait(kind, about=thread.child_at[len(thread.history)])
        if kind == "event":
            return Wait(kind, about=rest[0])
        return Wait(kind, deadline=self.now + rest[0] * HOUR if rest[0] else None)

    def _look_back(self, thread: Thread, wait: Wait) -> None:
        if wait.kind == "event":
            found = [(n, n) for n, name, at in self.facts if name == wait.about and at >= self.now - LOOK_BACK]
        else:  # of a child counts how it ended last
            found = [(report[1], report) for report in wait.about.reports[-1:]] if wait.kind == "spawn" else []
        for value, fact in found:
            if wait.is_open and fact not in thread.heard:
                self.settle(thread, value, fact)

    def settle(self, thread: Thread, answer: Any, fact: Any = None) -> None:
        assert thread.wait is not None
        thread.wait.answer, thread.wait.is_open = answer, False
        if fact is not None:
            thread.heard.add(fact)
        live = thread.live
        if live is not None and live.status == "waiting":
            live.status, live.due = "ready", self.now

    def open_waits(self, kind: str | None = None) -> list[Thread]:
        return [one for one in self.threads if one.wait and one.wait.is_open and kind in (None, one.wait.kind)]

    def deliver(self, name: str) -> int:
        self.count += 1
        self.facts.append((self.count, name, self.now))
        for thread in self.open_waits("event"):
            if thread.wait is not None and thread.wait.about == name:
                self.settle(thread, self.count, self.count)
        return self.count

    def answer(self, thread: Thread, value: Any) -> bool:
        assert thread.wait is not None
        is_late = thread.wait.deadline is not None and thread.wait.deadline <= self.now
        self.settle(thread, "late" if is_late else value)
        return not is_late

    # ── The clock, and workers that are gone ───────────────────────────────────────────────────────────────────────

    def tend(self, dead: set[str]) -> None:
        for thread in self.open_waits():
            wait = thread.wait
            if wait is not None and (wait.due or wait.deadline or self.now + 1) <= self.now:
                self.settle(thread, "slept" if wait.kind == "sleep" else "late")
        for thread in list(self.threads):
            for run in thread.runs:
                if run.status == "running" and run.worker in dead:
                    self._reap(thread, run)
        for thread in self.threads:
            if any(run.status == "queued" and run.due is not None and run.due <= self.now for run in thread.runs):
                self._promote(thread)
        self.tell_parents()
        self.close_children()

    def _reap(self, thread: Thread, run: Run) -> None:
        run.worker, run.crashes = None, 1 if run.has_progress else run.crashes + 1
        run.due = self.now + (0 if run.crashes == 1 else 1000 * 2 ** (run.crashes - 2))
        run.status = "dead" if run.crashes >= MOST_CRASHES else "ready"
        if run.status == "dead":
            self._end(thread, run)

    def release(self, thread: Thread) -> bool:
        live = thread.live
        if live is None or live.status != "dead":
            return False
        live.status, live.crashes, live.due = "ready", 0, self.now
        return True

    def fork(self, thread: Thread, index: int) -> None:
        self._write(thread, None, thread.history[index])
        thread.wait = None
