"""Put hostile bodies, sealed as they should be, into the rows of a store; read and go on under watch; print JSON."""

from __future__ import annotations

import json
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from bide import Command, Store
from bide.errors import BideError
from bide.store.seal import REFERENCE, Checksums, is_reference
from tests.attacks.corpus import PICKLES, constructor_dicts
from tests.attacks.frames import REGISTERED_CODES, binary, ext, frame, packed
from tests.attacks.watch import Watch, alarms_of
from tests.attacks.world import Place, attacker, bodies_in, build, graph_on, places_in, questions, readers
from tests.threads import thread

ORDINARY = frozenset({"sqlite3.connect", "sqlite3.connect/handle", "sqlite3.enable_load_extension", "fcntl.flock"})
"""What a store does itself: it talks to its database."""
QUIET = frozenset(
    {"sys.setprofile", "object.__getattr__", "object.__setattr__", "_thread.start_new_thread", "builtins.id"}
)

LAYOUTS: tuple[Any, ...] = (
    None, True, 0, -1, 2**63, 2**64 - 1, 1.5, float("nan"), "", "os.system", b"", b"\x01", [], {}, [[]], [None] * 9,
    [2, 1, None, {}, {}, []], [2, 1, 2**64 - 1, {}, {}, []], [2, 1, [], {}, {}, []], [2, 1, None, [], [], []],
    [2, 1, None, {"note": 7, "letter": "x"}, {"note": [[1, 2]]}, 7], [2, 1, None, {}, {"said": [[0, 2**63]]}, None],
    [2, 1, None, {}, {"said": [["a", "b"]]}, [1, 2]], [2, 1, None, {"note": b"\x01\xa1x"}, {}, [0] * 7],
    [2, {}, {}, {}, {}, {}], [2, 1, None, {"__class__": b"\x01\xc0"}, {}, ["", [["", ""]], [], None, [], None, ""]],
    [2, 1, None, {}, {}, ["x", [["os", "system", b"cos\nsystem\n."]], [["a", "b", b"x"]], b"x", [b"x"], b"x", ""]],
    [0, 2**40], [0, "text"], [0, [1]], [1, 7], [1, "text"], [1, [1, 2]], [1, {"a": 1}], [2, [[0, 1, []]]], [2, 7],
    [2, [[-9, 3, [b"x"]]]], [3, b"x"], [3, 7], [3, [[1, b"\x92\x01\x90"]]], [9, []], [[], [], [], [], []],
    [[["note", "x"]], ["os.system"], [], [], []], [[7], 7, 7, 7, 7], ["q", None],
    ["q", {"type": "object"}, "a", "b", 1],
)  # fmt: skip


def hostile() -> Iterator[bytes]:
    """Bodies as an attacker would write them who knows every layout."""
    yield from (b"", b"\x00", b"\x01", b"\xff" * 9, b"\x01\xc1")
    for value in LAYOUTS:
        yield packed(value)
        yield frame(packed(value))
    for told in constructor_dicts()[::7]:
        yield packed(told)
        yield frame(packed(told))
        yield json.dumps(told).encode()
    for pickle in list(PICKLES.values())[::3]:
        yield pickle
        yield frame(pickle)
        yield frame(binary(pickle))
        yield packed([0, pickle])
    for code in REGISTERED_CODES:
        yield frame(ext(code, packed(["os.system", 1, {"command": "true"}])))
        yield packed([0, frame(ext(code, packed(["subprocess.Popen", 1, {"args": "true"}])))])
    yield frame(ext(42, b"cos\nsystem\n."))
    yield frame(ext(4, packed(["bide.Send", 1, {"node": "os.system", "arg": 1}])))
    yield frame(b"\x91" * 100_000)
    yield b"\xdd\xff\xff\xff\xff"
    yield packed([1, [b"\x01" + b"\x91" * 2_000]])


class Attack:
    """Writes hostile rows into one database, and keeps what came of reading them."""

    def __init__(self, watch: Watch, path: Path) -> None:
        self._watch = watch
        self._path = path
        self.outcomes: Counter[str] = Counter()
        self.violations: list[str] = []

    def try_out(self, what: str, act: Callable[[], Any]) -> None:
        """Do something, and write down whatever must not be."""
        wrong: list[str] = []
        try:
            with self._watch.on(counting=False):
                act()
            outcome = "value"
        except BideError as error:
            outcome = type(error).__name__
        except BaseException as error:  # noqa: BLE001 - anything else is what this looks for
            outcome, wrong = "other", [f"{type(error).__name__}: {error}"[:200]]
        wrong += [f"alarm: {alarm}" for alarm in self._watch.alarms if not self._is_ordinary(alarm)]
        self.outcomes[outcome] += 1
        self.violations += [f"{what}: {problem}" for problem in wrong]

    def _is_ordinary(self, alarm: str) -> bool:
        """Whether it is the store itself that opens the files of its database."""
        return alarm.startswith("open(") and str(self._path) in alarm


class Target(NamedTuple):
    """A body to attack, where it was sealed, and who reads it."""

    place: Place
    where: str
    readers: tuple[str, ...]

    def sealed(self, body: bytes) -> bytes:
        """What an attacker stores who knows how to make a checksum."""
        kind = REFERENCE if is_reference(self.place.stored) else b""
        return kind + Checksums().close(self.where, body)


def targets(places: Iterable[Place], opened: dict[str, dict[bytes, str]]) -> list[Target]:
    """Of the bodies that somebody reads, the first and the last of each kind."""
    kinds: dict[tuple[str, str, int], list[Target]] = {}
    for place in places:
        inner = place.stored.removeprefix(REFERENCE)
        found = tuple(name for name, places in opened.items() if inner in places)
        if found:
            target = Target(place, opened[found[0]][inner], found)
            kinds.setdefault((place.table, place.column, place.stored[0]), []).append(target)
    return [target for same in kinds.values() for target in (same if len(same) == 1 else (same[0], same[-1]))]


def attack_readers(attack: Attack, path: Path, acts: dict[str, Callable[[], Any]], found: list[Target]) -> None:
    """Look at the thread, after each row and each body."""
    with closing(attacker(path)) as database:
        for target in found:
            for body in hostile():
                target.place.write(database, target.sealed(body))
                for name in target.readers:
                    if name in acts:
                        attack.try_out(f"{target.place} = {body[:60]!r}: {name}", acts[name])
            target.place.write(database, target.place.stored)


def attack_runs(attack: Attack, path: Path, found: list[Target]) -> None:
    """Go on with the thread, or begin one that finds a cached result, after some of the bodies; each in a copy."""
    copy = path.with_name("copy.db")
    for target in found:
        is_cached = target.place.table == "cache"
        act = begin if is_cached else go_on
        for body in list(hostile())[:: 4 if is_cached else 16]:
            shutil.copy(path, copy)
            with closing(attacker(copy)) as database:
                target.place.write(database, target.sealed(body))
            with Store.open(f"sqlite:///{copy}") as store:
                graph = graph_on(store)
                attack.try_out(f"{target.place} = {body[:60]!r}: run", lambda act=act, graph=graph: act(graph))
            for file in path.parent.glob("copy.db*"):
                file.unlink()


def begin(graph: Any) -> Any:
    """Run a thread from its beginning, with the cached result of its node."""
    return graph.invoke({"note": "begun"}, thread("new"))


def go_on(graph: Any) -> Any:
    """Answer the open question of the thread, whatever it is, or find that this cannot be done."""
    asked = questions(graph, "waiting")
    return graph.invoke(Command(resume={id_: "Bob" for id_ in asked.values()}), thread("waiting"))


def report_on(attack: Attack, watch: Watch, found: list[Target]) -> dict[str, Any]:
    """What came of it."""
    return {
        "control": alarms_of(watch, lambda: __import__("this_module_is_not_there")),
        "tried": Counter(f"{target.place.table}.{target.place.column}" for target in found),
        "outcomes": attack.outcomes,
        "violations": attack.violations,
    }


def main() -> None:
    """Build a store, learn its places, and attack."""
    path = Path(sys.argv[1]) / "bide.db"
    build(path)
    watch = Watch(ORDINARY | QUIET)
    mine = [place for place in bodies_in(path) if place.thread_id in (None, "waiting")]
    found = targets(mine, places_in(path, Checksums()))
    attack = Attack(watch, path.parent)
    with Store.open(f"sqlite:///{path}") as store:
        acts = readers(store, graph_on(store), "waiting")
        for read in acts.values():
            read()  # what is loaded on first use is loaded now
        attack_readers(attack, path, acts, found)
    attack_runs(attack, path, found)
    json.dump(report_on(attack, watch, found), sys.stdout)


if __name__ == "__main__":
    main()
