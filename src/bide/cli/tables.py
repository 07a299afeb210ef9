"""Listings that fit the terminal: a table where there is room, one block for each row where there is not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.text import Text

NARROW = 72
"""Below so many columns a table is no help."""


@dataclass(frozen=True)
class Column:
    """One column."""

    title: str
    is_whole: bool = True
    """Whether its values are never cut, so that they can be copied."""
    from_width: int = 0
    """It is left out of tables on terminals that are narrower."""
    is_number: bool = False


def listing(console: Console, columns: Sequence[Column], rows: Iterable[Sequence[str | Text]]) -> RenderableType:
    """Lay rows out for a terminal."""
    found = [list(row) for row in rows]
    return _blocks(columns, found) if console.width < NARROW else _table(console, columns, found)


def _table(console: Console, columns: Sequence[Column], rows: list[list[str | Text]]) -> RenderableType:
    from rich.table import Table

    shown = [number for number, column in enumerate(columns) if column.from_width <= console.width]
    table = Table(box=None, padding=(0, 3, 0, 0), header_style="bold dim", pad_edge=False)
    for number in shown:
        column = columns[number]
        # What may be cut takes whatever room the rest leaves.
        width = {"no_wrap": True} if column.is_whole else {"no_wrap": True, "overflow": "ellipsis", "min_width": 12}
        justify = "right" if column.is_number else "left"
        table.add_column(column.title.upper(), justify=justify, **width)  # type: ignore[arg-type]
    for row in rows:
        table.add_row(*(row[number] for number in shown))
    return table


def _blocks(columns: Sequence[Column], rows: list[list[str | Text]]) -> RenderableType:
    from rich.console import Group
    from rich.text import Text

    parts: list[RenderableType] = []
    for row in rows:
        parts += [Text("")] if parts else []
        parts.append(Text.assemble((str(row[0]), "bold")))
        parts.append(facts(zip([column.title for column in columns[1:]], row[1:], strict=True), indent=2))
    return Group(*parts)


def facts(pairs: Iterable[tuple[str, str | Text]], *, indent: int = 0) -> RenderableType:
    """Lay names and values out in two columns; long values go on below themselves."""
    from rich.padding import Padding
    from rich.table import Table

    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in pairs:
        grid.add_row(name, value)
    return Padding(grid, (0, 0, 0, indent), expand=False)


def aligned(rows: Iterable[Sequence[str | Text]], *, indent: int = 0) -> RenderableType:
    """Lay short rows out below each other; the last part of each goes on below itself."""
    from rich.padding import Padding
    from rich.table import Table

    found = [list(row) for row in rows]
    grid = Table.grid(padding=(0, 1, 0, 0))
    for _ in found[0][:-1]:
        grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for row in found:
        grid.add_row(*row)
    return Padding(grid, (0, 0, 0, indent), expand=False)


def heading(text: str) -> Text:
    """Return a title, with a line of air above it."""
    from rich.text import Text

    return Text(f"\n{text}", style="bold")


def status(word: object) -> Text:
    """Return a status in its colour."""
    from rich.text import Text

    from bide.cli.marks import style_of

    return Text(str(word), style=style_of(word))
