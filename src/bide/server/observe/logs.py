"""Logs: one line for each thing that happened, as JSON for machines or as text for people.

Either way a line says what it is about: the request, the caller, the thread and the run. Tokens and keys are never in
it: a request is named by its route and not by its address, and whatever looks like a secret is blotted out.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Mapping
from typing import IO, Any

from bide.clock import iso
from bide.runtime.about import known_about

LOGGERS = ("bide", "uvicorn", "uvicorn.error")
FIELDS = ("request_id", "caller", "method", "route", "status", "duration_ms", "thread_id", "run_id", "wait_id", "graph")
"""What a line may say beside its message, in this order."""
_SHORT = {"request_id": "request", "thread_id": "thread", "run_id": "run", "wait_id": "wait"}
_SECRETS = re.compile(
    r"(?i)(\b(?:bearer|basic)\s+|\bx-api-key\W{1,3}|\b(?:token|secret|password|api_key)=)[^\s\"'&,;]+"  # said to be one
    r"|\b(?:bide|whsec|sk|ghp|xoxb|lsv2)_[A-Za-z0-9_\-.]{12,}"  # begins as keys do
    r"|\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+"  # a JWT
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"  # an account in an address
    r"|(?<=/w/)[^\s/?\"']+"  # an approval link
)


def blotted(text: str) -> str:
    """Return a text without what looks like a secret."""
    return _SECRETS.sub(lambda found: f"{found[1] or ''}…", text)


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """Return what a line is about: what is known where it was written, and what it says itself."""
    known: dict[str, Any] = {**known_about(), **getattr(record, "about", {})}
    return {name: known[name] for name in FIELDS if known.get(name) not in (None, "")}


class JsonLines(logging.Formatter):
    """Each line a JSON document."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        document: dict[str, Any] = {
            "time": iso(int(record.created * 1000)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": blotted(record.getMessage()),
            **fields_of(record),
        }
        if record.exc_info:
            document["error"] = blotted(self.formatException(record.exc_info))
        return json.dumps(document, ensure_ascii=False, default=str)


class TextLines(logging.Formatter):
    """Each line for somebody who reads along."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line, and what went wrong below it."""
        at = iso(int(record.created * 1000))[11:19]
        about = " ".join(f"{_SHORT.get(name, name)}={value}" for name, value in _beside(record).items())
        line = f"{at} {record.levelname.lower():<7} {blotted(record.getMessage())}{f'  {about}' if about else ''}"
        if record.exc_info:
            line += "\n" + blotted(self.formatException(record.exc_info))
        return line


def _beside(record: logging.LogRecord) -> Mapping[str, Any]:
    """Leave out what the message of a request says already."""
    shown = fields_of(record)
    if record.name == "bide.access":
        return {name: value for name, value in shown.items() if name in ("caller", "thread_id", "run_id", "wait_id")}
    return {name: value for name, value in shown.items() if name not in ("status", "duration_ms", "method")}


def write_logs(level: str, *, as_json: bool, to: IO[str] | None = None) -> logging.Handler:
    """Send what we and the web server log to one place, in one shape; what others log stays theirs."""
    handler = logging.StreamHandler(to or sys.stderr)
    handler.setFormatter(JsonLines() if as_json else TextLines())
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers = [handler] if name != "uvicorn.error" else []
        logger.propagate = name == "uvicorn.error"
        logger.setLevel(level.upper())
    # It says what our own banner and our last words say, and each request a second time.
    logging.getLogger("uvicorn.error").setLevel(max(logging.getLogger("bide").level, logging.WARNING))
    logging.getLogger("uvicorn.access").disabled = True
    return handler
