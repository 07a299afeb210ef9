"""The demo's hand on the API: what curl does, in a few lines of the standard library."""

from __future__ import annotations

import hashlib
import hmac
import json
from http.client import HTTPConnection
from typing import Any

SECONDS = 60.0


class Refused(Exception):
    """The server did not do what it was asked for."""

    def __init__(self, status: int, said: Any) -> None:
        super().__init__(
            f"The server answered {status}: {said.get('detail', said) if isinstance(said, dict) else said}"
        )
        self.status = status


class Api:
    """One server."""

    def __init__(self, port: int) -> None:
        self.port = port

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str) -> Any:
        """Ask for something."""
        return self._call("GET", path, None, {})

    def post(self, path: str, body: Any = None) -> Any:
        """Send something."""
        given = None if body is None else json.dumps(body).encode()
        return self._call("POST", path, given, {"content-type": "application/json"})

    def hook(self, name: str, body: bytes, signature: str) -> Any:
        """Call a webhook, as the bank does."""
        headers = {"content-type": "application/json", "x-hub-signature-256": signature}
        return self._call("POST", f"/hooks/{name}", body, headers)

    def _call(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Any:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            said = json.loads(answer.read() or b"null")
        finally:
            connection.close()
        if answer.status >= 400:
            raise Refused(answer.status, said)
        return said


def signed(secret: str, body: bytes) -> str:
    """Return the signature of a call, in the way of GitHub."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
