"""Where things are: the addresses of pages, with ids as addresses carry them."""

from __future__ import annotations

from urllib.parse import quote, urlencode


def thread_place(thread_id: str) -> str:
    """Return the address of a thread's page; the id of a child holds that of its parent, and a slash."""
    return f"/inbox/threads/{quote(thread_id)}"


def wait_place(wait_id: str) -> str:
    """Return the address of a wait's page."""
    return f"/inbox/waits/{quote(wait_id, safe='')}"


def live_place(thread_id: str) -> str:
    """Return the address where a page hears that a thread has changed."""
    return f"/inbox/live?{urlencode({'thread': thread_id})}"
