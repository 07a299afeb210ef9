"""A database as one process sees it, and in which that process can die at any write.

The places are those of `bide.failpoints`, which kill a real process. Here the process is played: where it dies, a
`Crashed` unwinds its code, what was not committed is taken back, and from then on nothing that is left of it reaches
the database.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from bide.clock import Clock
from bide.store.database import Answer, Database, Otherwise, Row, Transaction
from bide.store.doorbell import Doorbell
from bide.store.lease import Lifeline

T = TypeVar("T")


class Crashed(BaseException):
    """The process has died here, on purpose. No `except Exception` survives that, as none survives a `kill -9`."""


class MortalDatabase:
    """Passes everything on to a database, until its process dies."""

    def __init__(self, inner: Database) -> None:
        self.inner = inner
        self.is_dead = False
        self.passed: list[str] = []
        """The places that were passed since one was aimed at."""
        self._aim: tuple[str, int] | None = None

    def aim(self, point: str, visit: int = 1) -> None:
        """Let the process die when it comes to a place, as "commit:written", for so manieth time."""
        self._aim, self.passed = (point, visit), []

    def spare(self) -> None:
        """Let the process live."""
        self._aim = None

    def die(self) -> None:
        """Let the process be dead from now on."""
        self.is_dead = True

    def visit(self, point: str) -> None:
        """Come to a place, and die there if it is the one."""
        self.check_alive()
        if self._aim is None:
            return
        self.passed.append(point)
        if (point, self.passed.count(point)) == self._aim:
            self.die()
            raise Crashed(f"The process has died at {point!r}.")

    def check_alive(self) -> None:
        """Let nobody reach the database out of a process that is dead."""
        if self.is_dead:
            raise Crashed("This process has died before.")

    # ── As a database ──────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def path(self) -> str:
        """What it is called in messages."""
        return self.inner.path

    @path.setter
    def path(self, path: str) -> None:
        self.inner.path = path

    @property
    def blocking(self) -> bool:
        """Whether calls may wait for a disk or a network."""
        return self.inner.blocking

    @blocking.setter
    def blocking(self, blocking: bool) -> None:
        self.inner.blocking = blocking

    def write(self, name: str, work: Callable[[Transaction], T]) -> T:
        """Run `work` in one transaction."""
        self.check_alive()
        value = self.inner.write(name, self._mortal(name, work))
        self.visit(f"{name}:committed")
        return value

    def write_alone(self, name: str, work: Callable[[Transaction], T]) -> T:
        """Run `work`, which is not ours, in a transaction that nobody else shares."""
        self.check_alive()
        value = self.inner.write_alone(name, self._mortal(name, work))
        self.visit(f"{name}:committed")
        return value

    def write_one(self, name: str, query: str, params: Mapping[str, Any], *, proof: str) -> int:
        """Run one statement."""
        self.visit(f"{name}:begun")
        count = self.inner.write_one(name, query, params, proof=proof)
        self.visit(f"{name}:committed")
        return count

    def read(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` on one consistent snapshot."""
        self.check_alive()
        return self.inner.read(work)

    def _mortal(self, name: str, work: Callable[[Transaction], T]) -> Callable[[Transaction], T]:
        def work_and_perhaps_die(tx: Transaction) -> T:
            self.visit(f"{name}:begun")
            value = work(MortalTransaction(self, tx, name))
            self.visit(f"{name}:written")
            return value

        return work if self._aim is None else work_and_perhaps_die

    def check_present(self) -> None:
        """Refuse to acknowledge what would not be found again."""
        self.inner.check_present()

    def stop_waiting(self) -> None:
        """Wait no longer than a moment from now on."""
        self.inner.stop_waiting()

    def close(self) -> None:
        """Let go of the database."""
        self.inner.close()

    def clock(self) -> Clock:
        """Return the clock of the database."""
        return self.inner.clock()

    def lifeline(self, lease: float) -> Lifeline:
        """Return a way to renew a lease."""
        return self.inner.lifeline(lease)

    def doorbell(self) -> Doorbell:
        """Return a bell that others can hear."""
        return self.inner.doorbell()

    def change_schema(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` in one transaction in which nobody else changes the schema."""
        return self.inner.change_schema(work)

    def is_ours(self, tx: Transaction) -> bool:
        """Say whether there is a database of Bide."""
        return self.inner.is_ours(tx)

    def make(self, tx: Transaction) -> None:
        """Make the present schema where nothing is."""
        self.inner.make(tx)

    def run_script(self, tx: Transaction, script: str) -> None:
        """Run the statements of a migration."""
        self.inner.run_script(tx, script)


class MortalTransaction:
    """A transaction in which the process may die after any query."""

    def __init__(self, database: MortalDatabase, inner: Transaction, name: str) -> None:
        self._database = database
        self._inner = inner
        self._name = name

    @property
    def connection(self) -> Any:
        """The driver's own connection."""
        return self._inner.connection

    def run(self, query: str, params: Mapping[str, Any]) -> int:
        """Run a query for its effect."""
        count = self._inner.run(query, params)
        self._passed(query)
        return count

    def one(self, query: str, params: Mapping[str, Any]) -> Row | None:
        """Return the first row, or None."""
        row = self._inner.one(query, params)
        self._passed(query)
        return row

    def all(self, query: str, params: Mapping[str, Any]) -> Sequence[Row]:
        """Return every row."""
        return self._inner.all(query, params)

    def send(self, query: str, params: Mapping[str, Any]) -> None:
        """Run a query for its effect, not always at once."""
        self._inner.send(query, params)
        self._passed(query)

    def expect(self, query: str, params: Mapping[str, Any], otherwise: Otherwise) -> None:
        """Run a query that must change or find a row."""
        self._inner.expect(query, params, otherwise)
        self._passed(query)

    def ask(self, query: str, params: Mapping[str, Any]) -> Answer:
        """Ask now, read later."""
        return self._inner.ask(query, params)

    def _passed(self, query: str) -> None:
        self._database.visit(f"{self._name}:{query}")
