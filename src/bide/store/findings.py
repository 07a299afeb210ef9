"""What `store.verify()` finds, and how it tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

INVARIANTS: Mapping[str, str] = {
    "I1": "a thread has at most one live run",
    "I2": "history has no holes, and within a run epochs never go back",
    "I3": "a run is leased exactly while it is running, its worker can be told to be gone, and a ready one be claimed",
    "I4": "a run that waits has an open wait, which can be settled, and a thread that is done has none",
    "I5": "a wait that is settled has its answer, when and by what way, and that took the thread on",
    "I6": "a delivery is counted for each that it woke, is one's alone where that was said, and passes nobody over",
    "I7": "the journal is that of the step under way, and was written by its runs",
    "I8": "every transition has its event, numbered without gaps",
    "I9": "every large value is whole, and nothing is kept that nobody can reach",
    "I10": "permits that are held are those of running runs",
    "I11": "effects outside the database happened as often as they should",
    "I12": "every row is what was written: its seal opens, and its body can be read",
    "I13": "every row belongs to a thread that lives, and every wait to its owner",
    "I14": "a run that was started begins, and its input is applied once",
}
"""What must hold. Instead of permits there are counts under a lock, so I10 holds; I11 is outside of the database, where
tests keep a ledger."""


@dataclass(frozen=True)
class Problem:
    """Something that should not be."""

    invariant: str
    """Which of the invariants does not hold: "I1" to "I14"."""
    what: str
    advice: str
    thread_id: str | None = None

    def __str__(self) -> str:
        """Show it in one line."""
        where = "" if self.thread_id is None else f" in thread {self.thread_id!r}"
        return f"{self.invariant}{where}: {self.what} {self.advice}"


@dataclass(frozen=True)
class Verification:
    """What a look at everything has found."""

    problems: tuple[Problem, ...]
    checked: Mapping[str, int]
    """How many rows of each table were looked at."""
    untold: int = 0
    """How many more problems there are than were asked for."""

    @property
    def is_sound(self) -> bool:
        """Whether nothing was found."""
        return not self.problems

    def __str__(self) -> str:
        """Show what was looked at, and each problem in a line."""
        rows = ", ".join(f"{count} {table}" for table, count in sorted(self.checked.items()) if count)
        head = "Sound" if self.is_sound else f"{len(self.problems) + self.untold} problem(s)"
        more = [f"… and {self.untold} more."] if self.untold else []
        return "\n".join([f"{head}: looked at {rows or 'an empty store'}.", *map(str, self.problems), *more])


@dataclass
class Findings:
    """What has been found so far; only so many problems are kept."""

    most: int
    problems: list[Problem] = field(default_factory=list)
    checked: Counter[str] = field(default_factory=Counter)
    untold: int = 0

    def tell(self, invariant: str, thread_id: str | None, what: str, advice: str) -> None:
        """Note a problem."""
        if len(self.problems) < self.most:
            self.problems.append(Problem(invariant, what, advice, thread_id))
        else:
            self.untold += 1

    def add(self, other: Findings) -> None:
        """Take over what was found elsewhere."""
        kept = other.problems[: max(self.most - len(self.problems), 0)]
        self.problems += kept
        self.untold += other.untold + len(other.problems) - len(kept)
        self.checked += other.checked

    def result(self) -> Verification:
        """Return all of it."""
        return Verification(tuple(self.problems), dict(self.checked), self.untold)
