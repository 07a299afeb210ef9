"""No token is written to a log: uvicorn notes every address that is asked for, and a link's address is a key."""

from __future__ import annotations

import logging
import re

_TOKEN = re.compile(r"/w/[^\s\"'?#/]+")


class WithoutTokens(logging.Filter):
    """Blots out the tokens of links in what a logger writes."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change a line that has a token in it; let every line through."""
        if isinstance(record.args, tuple):
            record.args = tuple(_blotted(part) for part in record.args)
        record.msg = _blotted(record.msg)
        return True


def _blotted(part: object) -> object:
    return _TOKEN.sub("/w/…", part) if isinstance(part, str) else part


_FILTER = WithoutTokens()


def keep_tokens_out_of_logs() -> None:
    """See to it that uvicorn's own log of requests holds no token, whoever runs the server."""
    logging.getLogger("uvicorn.access").addFilter(_FILTER)  # the same filter twice is one
