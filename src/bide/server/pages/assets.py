"""What the pages are drawn with: our own style, script and sign. Nothing comes from anywhere else."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from importlib.resources import files

from fastapi import APIRouter, Response

from bide.picture import Picture, PictureNode
from bide.server.problems import not_found

router = APIRouter(include_in_schema=False)

_KINDS = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
_FILES = ("bide.css", "link.css", "inbox.js", "bide.svg")
PICTURE = "picture.css"
"""The colours of graphs. They stand in each drawing too, but a page allows no style that stands in itself."""


@cache
def asset(name: str) -> bytes | None:
    """Return a file, by a name that is known here."""
    if name == PICTURE:
        return styles_of_pictures().encode()
    return (files("bide.server.pages") / "static" / name).read_bytes() if name in _FILES else None


def styles_of_pictures() -> str:
    """Return the style that every drawing of a graph brings along."""
    drawn = Picture((PictureNode("any"),), ()).draw_svg()
    return drawn.partition("<style>")[2].partition("</style>")[0]


def without_style(svg: str) -> str:
    """Return a drawing to stand in a page, whose style is in a file."""
    before, _, rest = svg.partition("<style>")
    return before + rest.partition("</style>")[2]


@cache
def address_of(name: str) -> str:
    """Return where a file is; another version of it is somewhere else, so it may be kept for ever."""
    return f"/static/{name}?v={sha256(asset(name) or b'').hexdigest()[:12]}"


@router.get("/static/{name}")
def static(name: str) -> Response:
    """Give out one of the files that pages are drawn with."""
    found = asset(name)
    if found is None:
        raise not_found("file", name)
    headers = {"Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff"}
    return Response(found, media_type=_KINDS[name.rpartition(".")[2]], headers=headers)
