"""The server: everything that people and programs do with threads over HTTP. Needs the extra `server`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bide.server.app import create_app
    from bide.server.settings import Settings

__all__ = ["Settings", "create_app"]


def __getattr__(name: str) -> Any:
    """Load the server when it is used, and say which extra is missing."""
    if name not in __all__:
        raise AttributeError(f"module 'bide.server' has no attribute {name!r}")
    try:
        from bide.server.app import create_app
        from bide.server.settings import Settings
    except ModuleNotFoundError as missing:
        from bide.errors import GraphError

        raise GraphError(
            f"The server needs {missing.name!r}, which is not installed. Install the extra: pip install 'bide[server]'."
        ) from missing
    return {"create_app": create_app, "Settings": Settings}[name]
