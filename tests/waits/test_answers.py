"""What the answer to an approval looks like: something that a form can be drawn from."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from bide.errors import InterruptError
from bide.shape import problems
from bide.waits import after, answer_schema, approval, to_plain


@dataclass
class Line:
    item: str
    count: int


@dataclass
class Order:
    lines: list[Line]
    note: str = ""


def test_without_a_form_an_answer_is_one_of_the_options():
    schema = answer_schema(approval("May I?"))

    assert schema == {"title": "May I?", "type": "string", "enum": ["approve", "reject"]}
    assert problems("approve", schema) == []
    assert problems("yes", schema)
    assert problems(True, schema)


def test_with_a_form_the_first_option_needs_it_and_the_others_do_not():
    schema = answer_schema(approval(form=int))

    assert problems({"decision": "approve", "form": 3}, schema) == []
    assert problems({"decision": "reject"}, schema) == []
    assert problems({"decision": "reject", "form": 3}, schema) == []
    assert problems({"decision": "approve"}, schema) == ["answer.form: is missing"]
    assert problems({"decision": "approve", "form": "x"}, schema)
    assert problems({"decision": "maybe"}, schema)
    assert problems({"decision": "reject", "by": "me"}, schema)
    assert problems({"form": 3}, schema)
    assert problems("approve", schema)


def test_with_a_form_and_no_options_an_answer_is_the_form():
    schema = answer_schema(approval("How many?", options=(), form=int))

    assert schema == {"title": "How many?", "type": "integer"}


@pytest.mark.parametrize("options", [("send", "drop"), ()])
def test_a_form_with_definitions_can_be_checked_wherever_it_stands(options):
    tree = {
        "$defs": {
            "node": {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}}
        },
        "$ref": "#/$defs/node",
    }
    schema = answer_schema(approval(options=options, form=tree))
    good, bad = {"children": [{"children": []}]}, {"children": [{"children": 7}]}

    wrapped = (lambda form: {"decision": "send", "form": form}) if options else (lambda form: form)

    assert problems(wrapped(good), schema) == []
    assert problems(wrapped(bad), schema)


def test_a_form_may_be_a_type():
    schema = answer_schema(approval(options=["send", "drop"], form=Order))

    assert problems({"decision": "send", "form": {"lines": [{"item": "pen", "count": 2}]}}, schema) == []
    assert problems({"decision": "send", "form": {"lines": [{"item": "pen"}]}}, schema)


def test_the_stored_approval_has_the_same_schema():
    condition = approval("Order?", options=["send", "drop"], form=Order)

    assert answer_schema(to_plain(condition)) == answer_schema(condition)


def test_other_conditions_have_no_answer():
    with pytest.raises(InterruptError, match="about approvals"):
        answer_schema(to_plain(after("1h")))
