"""Pictures of graphs, drawn with nothing but the standard library: Mermaid, SVG, PNG and plain text.

    picture = Picture(
        nodes=(PictureNode("__start__", kind="start"), PictureNode("ask", mark="paused"), PictureNode("reply")),
        edges=(PictureEdge("__start__", "ask"), PictureEdge("ask", "reply", "yes", is_conditional=True)),
    )
    picture.draw_svg()

From a picture to what is drawn of it, each step a module:

    model     what there is to draw: nodes, edges, pictures inside nodes
    rank      which node stands above which, cycles broken
    layers    the rows, with a place for every edge that passes one, and for every label
    order     left to right in each row, with few crossings
    place     where exactly, with straight lines
    ports     where edges touch their nodes, and how the rows are stacked
    route     the curves between
    layout    all of it, pictures inside pictures too: a `drawing`, in pixels and in one `style`
    svg       a drawing for the web
    paint     a drawing as a PNG; on `canvas` and `outline`, with our own `font` of `glyphs`, into a `png`
    ascii     the picture for a terminal, on `tracks` of its own
    mermaid   the picture as text that others draw
"""

from bide.picture.model import Nodes, Picture, PictureEdge, PictureNode

__all__ = ["Nodes", "Picture", "PictureEdge", "PictureNode"]
