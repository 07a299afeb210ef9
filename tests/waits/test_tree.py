"""Whether a condition is satisfied: by example, and beside a model that knows only what the words mean."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from bide.waits import Wake, after, all_of, any_of, approval, event, open_leaves, quorum, to_plain, verdict
from bide.waits.groups import AllOf, AnyOf, Group, leaves_of
from tests.waits.strategies import conditions


def wake(value, at=0, **more):
    return Wake(value, kind="event", at=at, by="ann", via="cli", delivery="d-1", **more)


def settled(condition, satisfied):
    return verdict(to_plain(condition), satisfied)


def still_open(condition, satisfied):
    return open_leaves(to_plain(condition), satisfied)


def test_a_single_leaf_is_its_own_winner():
    assert settled(event("paid"), {}) is None
    assert settled(event("paid"), {0: wake("x", 7)}) == wake("x", 7, winner="event")


def test_of_any_the_first_wins_by_its_instant():
    condition = any_of(event("a"), boss=approval())

    assert settled(condition, {}) is None
    assert settled(condition, {1: wake("yes", 5)}) == wake("yes", 5, winner="boss")
    assert settled(condition, {0: wake("paid", 6), 1: wake("yes", 5)}) == wake("yes", 5, winner="boss")


def test_of_one_instant_the_condition_that_was_written_first_wins():
    assert settled(any_of(event("a"), event("b")), {1: wake("b", 5), 0: wake("a", 5)}) == wake("a", 5, winner="event")


def test_of_all_every_part_is_told_in_the_order_in_which_it_was_written():
    condition = all_of(event("a"), boss=approval(), late=event("b"))
    there = {2: wake("b", 1), 0: wake("a", 9), 1: wake("yes", 5)}

    found = settled(condition, there)

    assert settled(condition, {0: there[0], 2: there[2]}) is None
    assert found == Wake(
        {
            "event": wake("a", 9, winner="event"),
            "boss": wake("yes", 5, winner="boss"),
            "late": wake("b", 1, winner="late"),
        },
        kind="all_of",
        at=9,
    )
    assert list(found.value) == ["event", "boss", "late"]


def test_of_a_quorum_those_are_told_that_are_there():
    condition = quorum(2, ann=approval(), ben=approval(), cleo=approval())

    found = settled(condition, {2: wake("yes", 3), 0: wake("no", 8)})

    assert settled(condition, {2: wake("yes", 3)}) is None
    assert found == Wake(
        {"ann": wake("no", 8, winner="ann"), "cleo": wake("yes", 3, winner="cleo")}, kind="quorum", at=8
    )


def test_a_winner_inside_a_winner_is_told_by_its_path():
    condition = any_of(outside=any_of(event("a"), event("b")), boss=approval())

    assert settled(condition, {1: wake("b", 2)}) == wake("b", 2, winner="outside.event#2")


def test_a_group_that_wins_brings_what_its_parts_came_to():
    condition = any_of(both=all_of(x=event("a"), y=any_of(event("b"), after(1))), boss=approval())

    found = settled(condition, {0: wake("a", 1), 2: wake(None, 4), 3: wake("yes", 5)})

    assert (found.winner, found.kind, found.at) == ("both", "all_of", 4)
    assert found.value == {"x": wake("a", 1, winner="x"), "y": wake(None, 4, winner="after")}


def test_a_group_is_as_late_as_the_part_that_completed_it():
    condition = any_of(two=quorum(2, event("a"), event("b"), event("c")), boss=approval())

    assert settled(condition, {0: wake(1, 1), 1: wake(2, 9), 2: wake(3, 4), 3: wake("yes", 5)}).winner == "two"
    assert settled(condition, {0: wake(1, 1), 1: wake(2, 9), 3: wake("yes", 5)}).winner == "boss"


def test_what_is_in_a_satisfied_part_is_no_longer_open():
    condition = all_of(any_of(event("a"), event("b")), quorum(2, event("c"), event("d"), event("e")))

    assert still_open(condition, {}) == {0, 1, 2, 3, 4}
    assert still_open(condition, {1: wake(1)}) == {2, 3, 4}
    assert still_open(condition, {1: wake(1), 3: wake(1)}) == {2, 4}
    assert still_open(condition, {1: wake(1), 3: wake(1), 4: wake(1)}) == set()


# --- beside a model ---------------------------------------------------------------------------------------------------


def holds(condition, path, there):
    """Whether a condition holds, given the paths of the leaves that do: what the words mean, and nothing else."""
    if not isinstance(condition, Group):
        return path in there
    count = sum(holds(part, (*path, label), there) for label, part in condition.parts)
    return count >= (
        1 if isinstance(condition, AnyOf) else len(condition.parts) if isinstance(condition, AllOf) else condition.k
    )


def moment(condition, path, there):
    """The first instant from which on it holds: what a movie of the leaves, shown in their order, would say."""
    instants = sorted(set(there.values()))
    return next(at for at in instants if holds(condition, path, {p for p, when in there.items() if when <= at}))


@st.composite
def cases(draw):
    condition = draw(conditions(depth=3, leaf=st.just(event("paid"))))
    numbers = range(sum(1 for _ in leaves_of(condition)))
    chosen = draw(st.sets(st.sampled_from(list(numbers))))
    return condition, {number: wake(number, draw(st.integers(0, 5))) for number in sorted(chosen)}


def paths(condition, path=()):
    if not isinstance(condition, Group):
        return [path]
    return [found for label, part in condition.parts for found in paths(part, (*path, label))]


@settings(max_examples=150, deadline=None)
@given(cases())
def test_a_condition_is_satisfied_exactly_when_the_words_say_so(case):
    condition, satisfied = case
    there = {paths(condition)[number]: found.at for number, found in satisfied.items()}

    found = settled(condition, satisfied)

    assert (found is not None) == holds(condition, (), set(there))
    if found is not None:
        assert found.at == moment(condition, (), there)


@settings(max_examples=150, deadline=None)
@given(cases())
def test_a_leaf_is_open_exactly_when_it_could_still_change_something(case):
    condition, satisfied = case
    everywhere = paths(condition)
    there = {everywhere[number] for number in satisfied}

    def decided(path):
        """Whether the leaf itself, or any group around it, holds already."""
        node = condition
        for depth, label in enumerate(path):
            if holds(node, path[:depth], there):
                return True
            node = dict(node.parts)[label]
        return path in there

    assert still_open(condition, satisfied) == {number for number, path in enumerate(everywhere) if not decided(path)}


@settings(max_examples=100, deadline=None)
@given(cases())
def test_the_winner_is_the_label_of_what_it_brings(case):
    condition, satisfied = case
    found = settled(condition, satisfied)

    if found is not None and not isinstance(condition, Group):
        assert found.winner == "event"
    elif found is not None and isinstance(condition, AnyOf):
        node = condition
        for label in found.winner.split("."):
            node = dict(node.parts)[label]
        assert isinstance(found.value, dict) == isinstance(node, Group)
    elif found is not None:
        assert found.winner is None
        assert list(found.value) == [label for label, _ in condition.parts if label in found.value]


@settings(deadline=None)
@given(cases(), cases())
def test_more_facts_never_undo_what_is_satisfied(one, other):
    condition, satisfied = one
    more = {number: found for number, found in other[1].items() if number < len(paths(condition))}

    if settled(condition, satisfied) is not None:
        assert settled(condition, {**more, **satisfied}) is not None
        assert still_open(condition, {**more, **satisfied}) == set()
