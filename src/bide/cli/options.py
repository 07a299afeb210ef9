"""How a function becomes a command: options that belong together are one value, and errors become words.

A parameter whose type is a group of options (a dataclass) is spread out into one option for each field, so that a
command is a short function however much can be said to it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Annotated, Any, get_type_hints

import typer

from bide.cli.desk import Desk, Place

KEYWORD = inspect.Parameter.KEYWORD_ONLY

GraphPlaces = Annotated[
    list[str] | None,
    typer.Argument(metavar="[FILE.py:NAME]...", help="Graphs, or one application.", show_default=False),
]
"""What may be named beside the options, by commands that serve whatever they are given."""


@dataclass(frozen=True)
class Where:
    """Which application, which store, and for whom the output is."""

    app: Annotated[
        str | None,
        typer.Option(
            "--app",
            "-a",
            envvar="BIDE_APP",
            metavar="FILE.py:NAME",
            help="Your application or graphs: shop.py:app, or module:name.",
            rich_help_panel="Where",
        ),
    ] = None
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            "-s",
            envvar="BIDE_STORE",
            metavar="URL",
            help="The database, unless the application has its own. (default: sqlite:///bide.db)",
            rich_help_panel="Where",
        ),
    ] = None
    schema: Annotated[
        str | None,
        typer.Option(
            "--schema",
            envvar="BIDE_SCHEMA",
            metavar="NAME",
            help="In PostgreSQL: the schema that the tables are in.",
            rich_help_panel="Where",
        ),
    ] = None
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON document, for programs.", rich_help_panel="Where")
    ] = False


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Make a function a command: its groups of options are spread, its `desk` is set up, its errors are told."""
    hints = get_type_hints(function, include_extras=True)
    groups = {name: Where if hint is Desk else hint for name, hint in hints.items() if hint is Desk or _is_group(hint)}
    context = inspect.Parameter("context", KEYWORD, annotation=typer.Context)
    parameters = [context, *(one for known in _known(function, hints, groups) for one in known)]

    wants_context = hints.pop("context", None) is not None

    def run(context: typer.Context, **given: Any) -> None:
        given |= said_before(context)
        given |= {"context": context} if wants_context else {}
        values = {name: _taken(group, given) for name, group in groups.items()}
        where = values.pop("desk")
        desk = Desk(Place(where.app, where.store, where.schema), as_json=where.as_json)
        with desk.telling_errors():
            function(desk, **values, **given)

    run.__name__, run.__doc__ = function.__name__, function.__doc__
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def spread(function: Callable[..., None]) -> Callable[..., None]:
    """Let a function in front of all commands take the options that say where, for whichever command comes."""
    known = get_type_hints(Where, include_extras=True)
    parameters = [*inspect.signature(function, eval_str=True).parameters.values()]
    parameters = [one.replace(kind=KEYWORD) for one in parameters]
    parameters += [_option(field, known[field.name]) for field in fields(Where)]

    def run(**given: Any) -> None:
        """Do nothing: the command asks what was said before it."""

    run.__name__, run.__doc__ = function.__name__, function.__doc__
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return run


def said_before(context: typer.Context) -> dict[str, Any]:
    """Return what was said before the name of the command, as in `bide --store URL threads`."""
    found: dict[str, Any] = {}
    for field in fields(Where):
        around = context.parent
        while around is not None and not _is_typed(context, field.name):
            if _is_typed(around, field.name):
                found.setdefault(field.name, around.params[field.name])
            around = around.parent
    return found


def _is_typed(context: Any, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _known(function: Callable[..., None], hints: dict[str, Any], groups: dict[str, type]) -> Iterator[list[Any]]:
    """Return the options of each parameter; those that say where come last."""
    own = inspect.signature(function).parameters
    for name, parameter in own.items():
        if name not in groups and name != "context":
            yield [parameter.replace(kind=KEYWORD, annotation=hints[name])]
    for _, group in sorted(groups.items(), key=lambda pair: pair[1] is Where):
        known = get_type_hints(group, include_extras=True)
        yield [_option(field, known[field.name]) for field in fields(group)]


def _option(field: Any, hint: Any) -> inspect.Parameter:
    default = inspect.Parameter.empty if field.default is MISSING else field.default
    return inspect.Parameter(field.name, KEYWORD, default=default, annotation=hint)


def _is_group(hint: Any) -> bool:
    return isinstance(hint, type) and is_dataclass(hint)


def _taken(group: type, given: dict[str, Any]) -> Any:
    return group(**{field.name: given.pop(field.name) for field in fields(group)})


Thread = Annotated[str, typer.Argument(metavar="THREAD", help="The id of a thread.", show_default=False)]
Most = Annotated[int, typer.Option("--most", "-n", min=1, help="Show at most so many.")]
By = Annotated[str | None, typer.Option("--by", metavar="NAME", help="Who does this. (default: you)")]
