"""One attempt to send a webhook: signed, to a checked address, within a time and a size; nothing is followed."""

from __future__ import annotations

import base64
import binascii
import hmac
import re
import socket
import ssl
from collections.abc import Mapping, Sequence
from email.utils import parsedate_to_datetime
from functools import cache
from typing import NamedTuple

from bide.clock import Instant, elapsed
from bide.errors import SettingsError
from bide.server.hooks.targets import Resolve, Target, TargetError, addresses_of, read_target, resolve
from bide.server.settings import Settings

TIMEOUT = 15.0
"""Seconds for all of it, but for resolving the name: connecting, sending, and the head of the response."""
CONNECT_TIMEOUT = 5.0
"""Seconds for each address, of those."""
LARGEST_HEAD = 32 * 1024
MOST_ADDRESSES = 3

_STATUS = re.compile(rb"HTTP/1\.[01] ([0-9]{3})(?: [^\r\n]*)?\r?\n")
_END_OF_HEAD = re.compile(rb"\r?\n\r?\n")


class Sent(NamedTuple):
    """What came of an attempt."""

    is_heard: bool
    error: str = ""
    wait: int = 0
    """Milliseconds for which the receiver wants to be left alone."""
    is_hopeless: bool = False
    """Whether it would not be heard another time either."""


class _Failure(Exception):
    """Something went wrong on the way."""


# ── Signing, after Standard Webhooks ───────────────────────────────────────────────────────────────────────────────


def read_secrets(text: str) -> tuple[bytes, ...]:
    """Read the secrets of a receiver; several, with blanks between them, while one is being replaced."""
    found = []
    for secret in text.split():
        try:
            found.append(base64.b64decode(secret.removeprefix("whsec_"), validate=True))
        except (binascii.Error, ValueError):
            found.append(b"")
    if not found or not all(len(secret) >= 16 for secret in found):
        raise SettingsError(
            "The secret of a webhook must be 'whsec_' and at least 16 random bytes in base64, as Standard Webhooks has "
            "it. Leave it out, and the server makes one."
        )
    return tuple(found)


def signed(message_id: str, now: Instant, payload: str, secrets: Sequence[bytes]) -> Mapping[str, str]:
    """Return the headers by which a receiver knows that a message is ours, is new, and is that message."""
    seconds = str(now // 1000)
    content = f"{message_id}.{seconds}.{payload}".encode()
    signatures = (base64.b64encode(hmac.digest(secret, content, "sha256")).decode() for secret in secrets)
    return {
        "webhook-id": message_id,
        "webhook-timestamp": seconds,
        "webhook-signature": " ".join(f"v1,{signature}" for signature in signatures),
    }


# ── Sending ────────────────────────────────────────────────────────────────────────────────────────────────────────


def send(
    url: str,
    payload: str,
    headers: Mapping[str, str],
    settings: Settings,
    *,
    now: Instant,
    resolve: Resolve = resolve,
    timeout: float = TIMEOUT,
) -> Sent:
    """Post a message; heard is what was answered by 2xx."""
    try:
        target = read_target(url, settings)
        addresses = addresses_of(target, settings, resolve)
    except TargetError as problem:
        return Sent(False, str(problem), is_hopeless=True)
    except OSError as problem:
        return Sent(False, f"The host could not be resolved: {_reason(problem)}")
    attempt = _Attempt(target, elapsed() + timeout)
    try:
        status, head = attempt.post(addresses, payload.encode(), headers)
    except (_Failure, OSError) as problem:
        return Sent(False, f"The receiver could not be reached: {_reason(problem)}")
    return _judged(status, head, now)


def _judged(status: int, head: bytes, now: Instant) -> Sent:
    if 200 <= status < 300:
        return Sent(True)
    if status == 410:
        return Sent(False, "The receiver is gone for good: it answered 410.", is_hopeless=True)
    if 300 <= status < 400:
        return Sent(False, f"The receiver answered {status}; redirects are not followed.")
    return Sent(False, f"The receiver answered {status}.", _retry_after(head, now))


def _retry_after(head: bytes, now: Instant) -> int:
    """Read for how many milliseconds a receiver wants to be left alone."""
    found = re.search(rb"^retry-after:[ \t]*([^\r\n]{1,64}?)[ \t]*\r?$", head, re.IGNORECASE | re.MULTILINE)
    if found is None:
        return 0
    text = found[1].decode("ascii", "replace")
    if text.isdecimal() and len(text) < 10:
        return int(text) * 1000
    try:
        return max(0, int(parsedate_to_datetime(text).timestamp() * 1000) - now)
    except (ValueError, TypeError, OverflowError, OSError):
        return 0


class _Attempt:
    """One exchange, which is over at the deadline, however slowly the other side talks."""

    def __init__(self, target: Target, deadline: float) -> None:
        self.target = target
        self.deadline = deadline

    def post(self, addresses: Sequence[str], body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
        """Return the status and the head of the response; its body is not read."""
        connection = self._connect(addresses)
        try:
            connection = self._secured(connection)
            self._write(connection, self._request(body, headers) + body)
            return self._read_head(connection)
        finally:
            connection.close()

    def _left(self) -> float:
        left = self.deadline - elapsed()
        if left <= 0:
            raise TimeoutError("it took too long")
        return left

    def _connect(self, addresses: Sequence[str]) -> socket.socket:
        """Connect to one of the addresses that were checked; nothing is resolved here."""
        last: OSError = OSError("it has no address")
        for address in addresses[:MOST_ADDRESSES]:
            try:
                return socket.create_connection((address, self.target.port), min(CONNECT_TIMEOUT, self._left()))
            except OSError as problem:
                last = problem
        raise last

    def _secured(self, connection: socket.socket) -> socket.socket:
        if self.target.scheme == "http":
            return connection
        connection.settimeout(self._left())
        try:
            return tls().wrap_socket(connection, server_hostname=self.target.host)
        except BaseException:
            connection.close()
            raise

    def _request(self, body: bytes, headers: Mapping[str, str]) -> bytes:
        lines = {
            "Host": self.target.authority,
            "Content-Type": "application/json",
            "Content-Length": str(len(body)),
            "User-Agent": "Bide-Webhooks",
            "Accept": "*/*",
            "Connection": "close",
            **headers,
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        return f"POST {self.target.path} HTTP/1.1\r\n{head}\r\n".encode("ascii")

    def _write(self, connection: socket.socket, request: bytes) -> None:
        view = memoryview(request)
        while view:
            connection.settimeout(self._left())
            view = view[connection.send(view[:65536]) :]

    def _read_head(self, connection: socket.socket) -> tuple[int, bytes]:
        """Read until the head of the final response is there; those before it only say that it will come."""
        read = b""
        while True:
            end = _END_OF_HEAD.search(read)
            if end is None:
                if len(read) >= LARGEST_HEAD:
                    raise _Failure("the head of its response is too large")
                connection.settimeout(self._left())
                piece = connection.recv(4096)
                if not piece:
                    raise _Failure("it closed the connection without an answer")
                read += piece
                continue
            found = _STATUS.match(read)
            if found is None:
                raise _Failure("what it answered is not HTTP")
            status = int(found[1])
            if not 100 <= status < 200 or status == 101:
                return status, read[: end.end()]
            read = read[end.end() :]


@cache
def tls() -> ssl.SSLContext:
    """Return how certificates are checked: as the machine does."""
    return ssl.create_default_context()


def _reason(problem: BaseException) -> str:
    """Say what went wrong in a few words, and nothing of what the receiver has said."""
    if isinstance(problem, TimeoutError):
        return "it took too long"
    if isinstance(problem, ssl.SSLCertVerificationError):
        return f"its certificate is not valid ({problem.verify_message})"
    if isinstance(problem, socket.gaierror):
        return "the name has no address"
    if isinstance(problem, OSError):
        return (problem.strerror or type(problem).__name__)[:200]
    return str(problem)[:200]
