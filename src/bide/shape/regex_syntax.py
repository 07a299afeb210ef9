"""Reads a regular expression into the program of an automaton.

The syntax is that of Python's `re`, without what no automaton can do: back references, conditions, and looking ahead or
behind. What one character may be (`x`, `.`, `[a-z]`, `\\d`) is left to `re` itself, so it means exactly the same.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from bide.shape.regex_limits import RegexError

MOST_STEPS = 1000
"""How long a program may get: `(a{100}){100}` is short to write and has ten thousand steps."""

DEEPEST = 50
"""How deep groups may nest."""

_FLAGS = {"a": re.ASCII, "i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL}
_LEADING_FLAGS = re.compile(r"\(\?([aims]+)\)")
_GROUP = re.compile(r"\((?:\?:|\?P<([A-Za-z_][A-Za-z0-9_]*)>)?")
_LOOKS_AHEAD = re.compile(r"\(\?([=!])")
_COUNT = re.compile(r"\{(?:([0-9]+)|([0-9]*),([0-9]*))\}")
_CLASS = re.compile(r"\[\^?+\]?+(?:\\.|[^\]\\])*\]", re.DOTALL)
_LONG_ESCAPE = re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|N\{[^}]*\}|0[0-7]{0,2})")
_PLACES = {"^": "^", "$": "$", r"\A": r"\A", r"\Z": r"\Z", r"\b": r"\b", r"\B": r"\B"}
_ENDLESS: Final = -1


class Step(NamedTuple):
    """One step of a program. `kind` is "one" (a character), "place", "split", "jump" or "found"."""

    kind: str
    what: int | str = ""
    """Of "one" the number of its pattern; of "place" its name."""
    to: tuple[int, ...] = ()
    """Where it goes on, seen from this step."""


class Program(NamedTuple):
    """What an automaton runs."""

    steps: tuple[Step, ...]
    ones: tuple[re.Pattern[str], ...]
    """What single characters may be."""
    flags: int


_Block = list[Step]
_START = Step("place", r"\A")


def program_of(pattern: str, flags: str) -> Program:
    """Read a regular expression; raises RegexError, which says what is wrong with it."""
    value, start = _flags_of(pattern, flags)
    return _Reader(pattern, value, start).rest()


def programs_of(pattern: str) -> list[tuple[Program, bool]]:
    """Read a regular expression that may look ahead where it begins: `^(?=…)(?!…)…`.

    What it sees there begins at the start of the text as well, so these are expressions of their own: returns each
    with whether it must be found, or must not.
    """
    value, start = _flags_of(pattern, "")
    reader = _Reader(pattern, value, start)
    found = [] if value & re.MULTILINE else reader.looks_ahead()
    if not found:
        return [(program_of(pattern, ""), True)]
    return [*found, (reader.rest(is_choice=False), True)]


def _flags_of(pattern: str, flags: str) -> tuple[int, int]:
    """Return the flags, together with those at the start of the pattern, and where it goes on after them."""
    value = 0
    leading = _LEADING_FLAGS.match(pattern)
    for letter in flags + (leading[1] if leading else ""):
        value |= _FLAGS[letter]
    return value, leading.end() if leading else 0


class _Reader:
    """Reads from left to right; every method returns the steps of what it has read."""

    def __init__(self, pattern: str, flags: int, position: int) -> None:
        self.pattern = pattern
        self.position = position
        self.ones: list[re.Pattern[str]] = []
        self._flags = flags
        self._known: dict[str, int] = {}
        self._names: set[str] = set()

    def rest(self, *, is_choice: bool = True) -> Program:
        """Read all that is left; unless it may be a choice, it begins where the text does, after what looks ahead."""
        block = self.alternatives(0) if is_choice else [_START, *self._sequence(0)]
        if self.position < len(self.pattern):
            if self.pattern[self.position] == "|":
                raise RegexError("it looks ahead before a choice; put the whole choice into brackets, (?:…|…)")
            raise RegexError(f"the bracket at position {self.position} was never opened")
        return Program((*_checked(block), Step("found")), tuple(self.ones), self._flags)

    def looks_ahead(self) -> list[tuple[Program, bool]]:
        """Read what looks ahead right behind the start of the text."""
        found: list[tuple[Program, bool]] = []
        start = self.position + 1
        if not _LOOKS_AHEAD.match(self.pattern, start) or not self._take("^"):
            return found
        while opening := _LOOKS_AHEAD.match(self.pattern, self.position):
            start = self.position
            self.position = opening.end()
            block = _checked([_START, *self.alternatives(1)])
            if not self._take(")"):
                raise RegexError(f"the bracket at position {start} is never closed")
            found.append((Program((*block, Step("found")), tuple(self.ones), self._flags), opening[1] == "="))
        return found

    def alternatives(self, depth: int) -> _Block:
        """Read what stands between two brackets."""
        if depth > DEEPEST:
            raise RegexError(f"it nests deeper than {DEEPEST} brackets")
        block = self._sequence(depth)
        while self._take("|"):
            other = self._sequence(depth)
            choice = Step("split", to=(1, len(block) + 2))
            block = _checked([choice, *block, Step("jump", to=(len(other) + 1,)), *other])
        return block

    def _sequence(self, depth: int) -> _Block:
        block: _Block = []
        while self.position < len(self.pattern) and self.pattern[self.position] not in "|)":
            item, repeats = self._item(depth)
            block = _checked(block + (self._quantified(item) if repeats else self._unquantified(item)))
        return block

    def _item(self, depth: int) -> tuple[_Block, bool]:
        """Read one thing, and say whether it can be repeated."""
        character = self.pattern[self.position]
        if character == "(":
            return self._group(depth), True
        place = _PLACES.get(self.pattern[self.position : self.position + 2]) or _PLACES.get(character)
        if place is not None:
            self.position += len(place)
            return [Step("place", place)], False
        return [Step("one", self._one(character))], True

    def _group(self, depth: int) -> _Block:
        start = self.position
        opening = _GROUP.match(self.pattern, start)
        assert opening is not None
        self.position = opening.end()
        if self.pattern[self.position : self.position + 1] == "?":
            raise RegexError(
                f"{self.pattern[start : start + 4]!r} at position {start} is not supported: only (…), (?:…), "
                f"(?P<name>…) and, at the very start, the flags (?aims)"
            )
        self._name(opening[1])
        block = self.alternatives(depth + 1)
        if not self._take(")"):
            raise RegexError(f"the bracket at position {start} is never closed")
        return block

    def _name(self, name: str | None) -> None:
        if name in self._names:
            raise RegexError(f"it names two groups {name!r}")
        if name is not None:
            self._names.add(name)

    # --- one character ---

    def _one(self, character: str) -> int:
        start = self.position
        if character == "[":
            source = _class_source(self._read(_CLASS, "the set at position {} is never closed"))
        elif character == "\\":
            source = self._escape(start)
        elif character in "*+?" or _COUNT.match(self.pattern, start):
            raise RegexError(f"there is nothing to repeat at position {start}")
        else:
            self.position += 1
            source = character if character == "." else re.escape(character)
        return self._numbered(source, start)

    def _escape(self, start: int) -> str:
        following = self.pattern[start + 1 : start + 2]
        if following.isdigit() and following != "0":
            raise RegexError(f"back references, as at position {start}, are not supported")
        long = _LONG_ESCAPE.match(self.pattern, start)
        self.position = long.end() if long else start + 2
        return self.pattern[start : self.position]

    def _read(self, what: re.Pattern[str], otherwise: str) -> str:
        found = what.match(self.pattern, self.position)
        if found is None:
            raise RegexError(otherwise.format(self.position))
        self.position = found.end()
        return found[0]

    def _numbered(self, source: str, start: int) -> int:
        if source not in self._known:
            try:
                self.ones.append(re.compile(source, self._flags))
            except (re.error, OverflowError) as error:
                raise RegexError(f"{source!r} at position {start} is wrong ({error})") from None
            self._known[source] = len(self.ones) - 1
        return self._known[source]

    # --- how often ---

    def _quantified(self, block: _Block) -> _Block:
        bounds = self._bounds()
        if bounds is None:
            return block
        if self.pattern[self.position : self.position + 1] == "+":
            raise RegexError(f"the possessive repetition at position {self.position} is not supported")
        self._take("?")  # whether as few or as many as possible: found is found
        if self._bounds() is not None:
            raise RegexError(f"there are several repetitions after each other before position {self.position}")
        return _repeated(block, *bounds)

    def _unquantified(self, block: _Block) -> _Block:
        if self._bounds() is not None:
            raise RegexError(f"a place such as ^ or \\b cannot be repeated, as before position {self.position}")
        return block

    def _bounds(self) -> tuple[int, int] | None:
        """Read how often something may come: at least, and at most."""
        for sign, bounds in {"*": (0, _ENDLESS), "+": (1, _ENDLESS), "?": (0, 1)}.items():
            if self._take(sign):
                return bounds
        found = _COUNT.match(self.pattern, self.position)
        if found is None:
            return None
        self.position = found.end()
        if found[1]:
            return _counts(found[1], found[1])
        return _counts(found[2] or "0", found[3] or str(_ENDLESS))

    def _take(self, text: str) -> bool:
        if not self.pattern.startswith(text, self.position):
            return False
        self.position += len(text)
        return True


def _counts(least: str, most: str) -> tuple[int, int]:
    if max(len(least), len(most)) > len(str(MOST_STEPS)):
        raise RegexError("it repeats something too often")
    low, high = int(least), int(most)
    if high != _ENDLESS and high < low:
        raise RegexError(f"{{{least},{most}}} asks for more than it allows")
    return low, high


def _repeated(block: _Block, least: int, most: int) -> _Block:
    if (len(block) + 2) * max(least, most, 1) > 2 * MOST_STEPS:
        raise _too_long()
    needed = block * least
    if most == _ENDLESS:
        return _checked([*needed, Step("split", to=(1, len(block) + 2)), *block, Step("jump", to=(-len(block) - 1,))])
    optional: _Block = []
    for _ in range(most - least):
        optional = [Step("split", to=(1, len(block) + len(optional) + 1)), *block, *optional]
    return _checked(needed + optional)


def _checked(block: _Block) -> _Block:
    if len(block) > MOST_STEPS:
        raise _too_long()
    return block


def _too_long() -> RegexError:
    return RegexError(f"written out, it has more than {MOST_STEPS} steps; repeat less often")


def _class_source(source: str) -> str:
    r"""Return a set so that `re` has no doubt about it: `[[]` and `[&&]` mean something else in other languages."""
    if "--" in source:
        raise RegexError(f"the set {source!r} has two hyphens in a row; write \\- for a hyphen")
    opening = re.match(r"\[\^?\]?", source)
    assert opening is not None
    inner = source[opening.end() : -1]
    return opening[0] + re.sub(r"(\\.)|([\[&|~])", _escaped_once, inner, flags=re.DOTALL) + "]"


def _escaped_once(found: re.Match[str]) -> str:
    return found[1] or f"\\{found[2]}"
