"""What an answer to a pause must look like.

A node says so with `interrupt(question, response_schema=X)`, where X is a JSON Schema or a Python type. The JSON Schema
is stored with the question, so that any process, form or command line can check an answer without the type; when the
node runs again, the answer becomes the type.

    vocabulary   which schemas can be enforced          plain        what JSON would carry of a value
    check        where an answer does not fit           report       how that is told
    rules        keywords about one value               strings      formats, and `patterns`
    recognise    which form a type has                  forms        how types are described and built
"""

from __future__ import annotations

from typing import Any

from bide.shape.check import misfits, problems
from bide.shape.models import is_model
from bide.shape.report import refusal
from bide.shape.vocabulary import enforceable

__all__ = ["build", "json_schema", "misfits", "problems"]


def json_schema(shape: object) -> dict[str, Any]:
    """Return the JSON Schema to store with a question; the caller may change it.

    Raises InterruptError when the shape is no type for an answer, or holds what could not be enforced.

    >>> json_schema(list[int])
    {'type': 'array', 'items': {'type': 'integer'}}
    """
    if isinstance(shape, dict):
        return enforceable(shape)
    # A twentieth of `import bide`, which whoever gives no types need not spend.
    from bide.shape.forms import describe
    from bide.shape.model_form import model_schema
    from bide.shape.recognise import form_of

    return enforceable(model_schema(shape) if is_model(shape) else describe(form_of(shape)))


def build(shape: object, value: object) -> object:
    """Return the answer as the type that the question asks for; for a JSON Schema, as it is.

    Raises InvalidAnswerError, which lists every problem, when the answer does not fit.

    >>> build(tuple[int, ...], [1, 2])
    (1, 2)
    """
    from bide.shape.model_form import Model
    from bide.shape.recognise import form_of

    if is_model(shape):
        return Model(shape).build(value, ())
    if found := problems(value, json_schema(shape)):
        raise refusal(found)
    return value if isinstance(shape, dict) else form_of(shape).build(value, ())
