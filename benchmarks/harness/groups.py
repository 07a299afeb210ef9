"""The words of the plan: subjects that take turns, lines that compare them, and budgets that we promised."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Subject:
    """Something that is measured: a script of `cases/`, run in a process of its own."""

    name: str
    script: str
    arguments: tuple[str, ...] = ()
    is_rival: bool = False
    """Whether it needs the rivals' packages."""
    is_reference: bool = False
    """Whether it is LangGraph's own server, which has a place apart from the other rivals."""
    needs: tuple[str, str, str] | None = None
    """An option, and the subject and metric that its value comes from."""

    @property
    def is_on_postgres(self) -> bool:
        """Whether it needs a database on a PostgreSQL."""
        return "postgres" in self.arguments


@dataclass(frozen=True)
class Budget:
    """What we promised: at most so many times the rival, or at most so much in the metric's own unit."""

    most: float
    text: str
    unit: str = ""
    """The unit of an absolute budget; empty for a ratio."""
    is_later: bool = False
    """Whether the work for it is still to come."""


@dataclass(frozen=True)
class Line:
    """One line of the table: a metric of ours, beside the same metric of a rival or alone."""

    what: str
    metric: str
    ours: str
    rival: str | None = None
    budgets: tuple[Budget, ...] = ()


@dataclass(frozen=True)
class Group:
    """Subjects that take turns, and the lines that compare them."""

    name: str
    subjects: tuple[Subject, ...]
    lines: tuple[Line, ...]
    is_long: bool = False
    """Whether one round is enough: it takes minutes, or it counts bytes, which do not waver."""

    @property
    def needs_postgres(self) -> bool:
        """Whether anybody in it needs a PostgreSQL."""
        return any(subject.is_on_postgres for subject in self.subjects)


def part(of: int) -> Budget:
    return Budget(1 / of, f"≤ 1/{of}")


def times(most: float, *, is_later: bool = False) -> Budget:
    return Budget(most, f"≤ {most:g} ×", is_later=is_later)


def at_most(most: float, unit: str, *, is_later: bool = False) -> Budget:
    return Budget(most, f"≤ {most:g} {unit}", unit, is_later)


AHEAD = Budget(1.0, "≤ 1 ×")
