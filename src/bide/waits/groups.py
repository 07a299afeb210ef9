"""Several conditions together: the first of them, all of them, or so many of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from bide.errors import InterruptError
from bide.waits.conditions import Condition, checked
from bide.waits.texts import is_name

MOST_LEAVES = 1000
"""How many conditions one wait may have in all."""
DEEPEST = 16
"""How deep groups may nest."""
LONGEST_LABEL = 100

Part = tuple[str, Condition]


@dataclass(frozen=True, slots=True)
class Group(Condition):
    """Several conditions, each with a label."""

    parts: tuple[Part, ...]

    @property
    def needed(self) -> int:
        """How many of the parts must be satisfied."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class AnyOf(Group):
    """The first of some conditions."""

    kind: ClassVar[str] = "any_of"

    @property
    def needed(self) -> int:
        """One."""
        return 1


@dataclass(frozen=True, slots=True)
class AllOf(Group):
    """All of some conditions."""

    kind: ClassVar[str] = "all_of"

    @property
    def needed(self) -> int:
        """All of them."""
        return len(self.parts)


@dataclass(frozen=True, slots=True)
class Quorum(Group):
    """So many of some conditions, whichever come first."""

    kind: ClassVar[str] = "quorum"

    k: int

    @property
    def needed(self) -> int:
        """As many as were asked for."""
        return self.k


def any_of(*conditions: Condition, **named: Condition) -> AnyOf:
    """Wait for the first of these: `any_of(email(from_=customer), boss=approval("close it by hand"))`.

    The Wake's `winner` is the label of the one that came: its keyword, else the name of its function ("email", and
    "email#2" for the second).
    """
    return AnyOf(checked_parts("any_of", _labelled("any_of", conditions, named)))


def all_of(*conditions: Condition, **named: Condition) -> AllOf:
    """Wait for all of these. The Wake's `value` holds one Wake for each, by its label."""
    return AllOf(checked_parts("all_of", _labelled("all_of", conditions, named)))


def quorum(k: int, /, *conditions: Condition, **named: Condition) -> Quorum:
    """Wait for `k` of these: `quorum(2, ann=approval(), ben=approval(), cleo=approval())`."""
    parts = checked_parts("quorum", _labelled("quorum", conditions, named))
    return Quorum(parts, checked_number(k, len(parts)))


def checked_number(k: object, most: int) -> int:
    """Return how many parts a quorum needs."""
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= most:
        raise InterruptError(f"quorum({k!r}, …) of {most} conditions cannot be: ask for 1 to {most} of them.")
    return k


def checked_parts(name: str, parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return the parts of a group, or raise InterruptError when it cannot be waited for."""
    if not parts:
        raise InterruptError(f"{name}() holds no condition, so nothing could ever satisfy it. Give at least one.")
    labels = [label for label, _ in parts]
    for label in labels:
        if not is_name(label, LONGEST_LABEL) or "." in label:
            raise InterruptError(f"{name}() has the label {label!r:.100}; use a short word without dots.")
        if labels.count(label) > 1:
            raise InterruptError(
                f"{name}() has two conditions with the label {label!r}. Name them: {name}(first=…, second=…)."
            )
    if sum(1 for _, part in parts for _ in leaves_of(part)) > MOST_LEAVES:
        raise InterruptError(f"{name}() holds more than {MOST_LEAVES} conditions in all. Wait for fewer at a time.")
    if 1 + max(_depth(part) for _, part in parts) > DEEPEST:
        raise InterruptError(f"{name}() nests deeper than {DEEPEST} groups. Make it flatter.")
    return parts


def leaves_of(condition: Condition, label: str = "") -> Iterator[tuple[str, Condition]]:
    """Go through what is no group, depth first, each with the path of its labels."""
    if isinstance(condition, Group):
        for own, part in condition.parts:
            yield from leaves_of(part, f"{label}.{own}" if label else own)
    else:
        yield label or condition.kind, condition


def _depth(condition: Condition) -> int:
    return 1 + max(_depth(part) for _, part in condition.parts) if isinstance(condition, Group) else 0


def _labelled(name: str, conditions: tuple[Any, ...], named: dict[str, Any]) -> tuple[Part, ...]:
    parts: list[Part] = []
    counts: dict[str, int] = {}
    for condition in conditions:
        kind = _checked(name, condition).kind
        counts[kind] = counts.get(kind, 0) + 1
        parts.append((kind if counts[kind] == 1 else f"{kind}#{counts[kind]}", condition))
    return (*parts, *((label, _checked(name, condition)) for label, condition in named.items()))


def _checked(name: str, condition: object) -> Condition:
    if isinstance(condition, list | tuple):
        raise InterruptError(f"{name}() was given a {type(condition).__name__}. Write {name}(*conditions).")
    return checked(condition)
