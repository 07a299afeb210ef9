"""What is refused of the long-term store. Each is raised before anything is read or written."""

from __future__ import annotations

from bide.errors import StoreError


class InvalidItemError(StoreError, ValueError):
    """A call on the long-term store that cannot be done as it is written."""


class InvalidNamespaceError(InvalidItemError):
    """Not a tuple of texts that are not empty."""


class InvalidFilterError(InvalidItemError):
    """A filter that nothing could be compared with."""


class NoSearchIndexError(InvalidItemError, NotImplementedError):
    """A search by meaning, or an index for it, was asked for; this store finds by namespace and by value."""
