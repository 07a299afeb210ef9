"""Conditions together: their labels, and what cannot be waited for."""

from __future__ import annotations

import pytest

from bide.errors import InterruptError
from bide.waits import after, all_of, any_of, approval, email, event, quorum
from bide.waits.groups import DEEPEST, MOST_LEAVES, leaves_of


def labels(condition):
    return [label for label, _ in leaves_of(condition)]


def test_a_label_is_the_keyword_or_else_the_name_of_the_function():
    condition = any_of(email(subject="*"), event("a"), email(body="*"), email(to="*"), boss=approval())

    assert labels(condition) == ["email", "event", "email#2", "email#3", "boss"]


def test_labels_of_nested_conditions_are_joined_by_dots():
    condition = any_of(
        all_of(event("a"), event("b")), quorum(1, x=any_of(after("1h"), event("c"))), any_of(event("d")), last=after(1)
    )

    assert labels(condition) == [
        *("all_of.event", "all_of.event#2", "quorum.x.after", "quorum.x.event"),
        *("any_of.event", "last"),
    ]


def test_a_single_condition_is_its_own_label():
    assert labels(after("1h")) == ["after"]


@pytest.mark.parametrize("group", [any_of, all_of, lambda *given, **named: quorum(1, *given, **named)])
class TestEveryGroup:
    def test_refuses_to_be_empty(self, group):
        with pytest.raises(InterruptError, match="holds no condition"):
            group()

    def test_refuses_two_parts_of_one_label(self, group):
        with pytest.raises(InterruptError, match=r"two conditions with the label 'email'.*first="):
            group(email(subject="*"), email=email(body="*"))

    @pytest.mark.parametrize("label", ["a.b", "", " ", "a\nb", "x" * 200])
    def test_refuses_a_label_that_could_be_taken_for_a_path(self, group, label):
        with pytest.raises(InterruptError, match="label"):
            group(**{label: after(1)})

    def test_refuses_what_is_no_condition(self, group):
        with pytest.raises(InterruptError, match="is no condition"):
            group("2h")
        with pytest.raises(InterruptError, match=r"Call it: after\("):
            group(after)
        with pytest.raises(InterruptError, match=r"\(\*conditions\)"):
            group([after(1), after(2)])

    def test_refuses_more_than_can_be_stored(self, group):
        many = [event(f"e{number}") for number in range(MOST_LEAVES)]

        assert len(labels(group(*many))) == MOST_LEAVES
        with pytest.raises(InterruptError, match="in all"):
            group(group(*many), after(1))

    def test_refuses_to_nest_too_deep(self, group):
        condition = after(1)
        for _ in range(DEEPEST):
            condition = group(condition)

        with pytest.raises(InterruptError, match="nests deeper"):
            group(condition)


@pytest.mark.parametrize("k", [0, 3, -1, True, 1.0, "1", None])
def test_a_quorum_that_cannot_be_is_refused(k):
    with pytest.raises(InterruptError, match="1 to 2"):
        quorum(k, after(1), after(2))


def test_a_quorum_may_have_a_part_of_any_name():
    assert labels(quorum(1, k=after(1), conditions=after(2))) == ["k", "conditions"]
