"""One attempt to send a webhook ends in time and in little memory, whatever the receiver does."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from bide.clock import SystemClock
from bide.errors import SettingsError
from bide.server.hooks import sending
from bide.server.hooks.sending import LARGEST_HEAD, Sent, read_secrets, send, signed
from bide.server.settings import Settings
from tests.server.outgoing.outside import OK, Answer, Call, Names, Receiver, receiving, saying, status

SETTINGS = Settings(allow_private_targets=True)
NOW = 1_800_000_000_000
SECRET = "whsec_" + "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def attempt(receiver: Receiver, payload: str = "{}", *, timeout: float = 5.0) -> Sent:
    return send(receiver.url, payload, {}, SETTINGS, now=NOW, timeout=timeout)


def answered_by(*answers: Answer, timeout: float = 5.0) -> Sent:
    with receiving(*answers) as receiver:
        return attempt(receiver, timeout=timeout)


# ── What is heard ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("code", [200, 201, 202, 204, 299])
def test_what_is_answered_by_2xx_is_heard(code: int) -> None:
    assert answered_by(status(code)) == Sent(True)


@pytest.mark.parametrize("code", [400, 401, 403, 404, 408, 422, 429, 500, 502, 503, 504])
def test_every_other_answer_is_tried_again(code: int) -> None:
    assert answered_by(status(code)) == Sent(False, f"The receiver answered {code}.")


def test_receiver_that_is_gone_for_good_is_not_asked_again() -> None:
    assert answered_by(status(410)).is_hopeless


def test_request_is_one_that_any_server_reads(receiver: Receiver) -> None:
    sent = send(f"{receiver.url}/a%20b/ü?x=1&y=z", '{"ä": 1}', {"webhook-id": "m1"}, SETTINGS, now=NOW)

    (call,) = receiver.calls
    assert sent.is_heard
    assert call.line == "POST /in/a%20b/%C3%BC?x=1&y=z HTTP/1.1"
    assert call.body.decode() == '{"ä": 1}'
    assert call.headers["content-type"] == "application/json"
    assert call.headers["host"] == f"127.0.0.1:{receiver.port}"
    assert call.headers["webhook-id"] == "m1"


def test_large_payload_is_sent_whole(receiver: Receiver) -> None:
    payload = '"' + "x" * 3_000_000 + '"'

    assert attempt(receiver, payload).is_heard
    assert receiver.calls[0].body.decode() == payload


def test_interim_answers_are_passed_over() -> None:
    interim = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"

    assert answered_by(saying(interim + OK)).is_heard


# ── Receivers that are no good ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_redirects_are_not_followed(code: int, trap: Receiver) -> None:
    sent = answered_by(status(code, f"location: {trap.url}"))

    assert sent == Sent(False, f"The receiver answered {code}; redirects are not followed.")


@pytest.mark.parametrize(
    ("response", "reason"),
    [
        (b"", "it closed the connection without an answer"),
        (b"HTTP/1.1 200", "it closed the connection without an answer"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "what it answered is not HTTP"),
        (b"HTTP/1.1 2000 OK\r\n\r\n", "what it answered is not HTTP"),
        (b"HTTP/2 200\r\n\r\n", "what it answered is not HTTP"),
        (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * LARGEST_HEAD, "the head of its response is too large"),
    ],
)
def test_answer_that_is_none_is_a_failure(response: bytes, reason: str) -> None:
    assert answered_by(saying(response)) == Sent(False, f"The receiver could not be reached: {reason}")


def test_body_of_an_answer_is_not_read_however_large_it_is() -> None:
    noticed = threading.Event()

    def pour(connection: socket.socket, call: Call) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000000\r\n\r\n")
        try:
            while True:
                connection.sendall(b"x" * 65536)
        except OSError:
            noticed.set()

    assert answered_by(pour).is_heard
    assert noticed.wait(30), "the sender has left, and the receiver can pour no more"


def silent(connection: socket.socket, call: Call) -> None:
    connection.recv(1)


def drip(connection: socket.socket, call: Call) -> None:
    pause = threading.Event()
    while True:
        connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        pause.wait(0.02)


@pytest.mark.parametrize("slow", [silent, drip])
def test_receiver_that_takes_too_long_is_left(slow: Answer) -> None:
    assert answered_by(slow, timeout=0.3) == Sent(False, "The receiver could not be reached: it took too long")


def test_receiver_that_reads_nothing_is_left() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"

        sent = send(url, '"' + "x" * 30_000_000 + '"', {}, SETTINGS, now=NOW, timeout=0.5)

    assert sent.error == "The receiver could not be reached: it took too long"


def test_receiver_that_is_not_there_is_a_failure() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

    sent = send(f"http://127.0.0.1:{port}/", "{}", {}, SETTINGS, now=NOW)

    assert sent.error == "The receiver could not be reached: Connection refused"


def test_second_address_is_tried_where_the_first_does_not_answer(receiver: Receiver) -> None:
    names = Names(two_example=["127.0.0.9", "127.0.0.1"])

    assert send(f"http://two.example:{receiver.port}/", "{}", {}, SETTINGS, now=NOW, resolve=names).is_heard


@pytest.mark.parametrize(
    ("said", "wait"),
    [
        ("120", 120_000),
        ("0", 0),
        ("Fri, 15 Jan 2027 08:10:00 GMT", 600_000),
        ("Fri, 15 Jan 2021 08:10:00 GMT", 0),
        ("soon", 0),
        ("-5", 0),
        ("9" * 40, 0),
    ],
)
def test_receiver_that_wants_to_be_left_alone_is(said: str, wait: int) -> None:
    assert answered_by(status(429, f"Retry-After: {said}")).wait == wait


# ── Signatures ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_signature_is_what_standard_webhooks_checks() -> None:
    now = SystemClock().now()

    headers = signed("msg_1", now, '{"ä": 1}', read_secrets(SECRET))

    assert Webhook(SECRET).verify('{"ä": 1}', dict(headers)) == {"ä": 1}
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify('{"ä": 2}', dict(headers))
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify('{"ä": 1}', {**headers, "webhook-id": "msg_2"})


def test_while_a_secret_is_replaced_both_check() -> None:
    other = "whsec_" + "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB"
    now = SystemClock().now()

    headers = signed("msg_1", now, "{}", read_secrets(f"{other} {SECRET}"))

    for secret in (SECRET, other):
        assert Webhook(secret).verify("{}", dict(headers)) == {}


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_short", "whsec_!!!!", "password", "whsec_QUFB", "ä"])
def test_secret_that_is_none_is_refused(secret: str) -> None:
    with pytest.raises(SettingsError, match="at least 16 random bytes"):
        read_secrets(secret)


# ── TLS: the certificate must be of the name, though the connection goes to an address ─────────────────────────────


@pytest.fixture
def certified(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ssl.SSLContext]:
    """A certificate for receiver.example, which this machine trusts."""
    chain = make_certificate(tmp_path, "receiver.example")
    monkeypatch.setenv("SSL_CERT_FILE", str(chain))
    sending.tls.cache_clear()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chain)
    yield context
    sending.tls.cache_clear()


def make_certificate(folder: Path, name: str) -> Path:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.fromtimestamp(SystemClock().now() / 1000, UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    written = folder / "chain.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    written.write_bytes(private + certificate.public_bytes(serialization.Encoding.PEM))
    return written


def test_certificate_is_checked_by_the_name_in_the_url(certified: ssl.SSLContext) -> None:
    asked: list[str | None] = []
    certified.sni_callback = lambda connection, name, context: asked.append(name)
    names = Names(receiver_example=["127.0.0.1"], other_example=["127.0.0.1"])

    with receiving(wrap=lambda raw: certified.wrap_socket(raw, server_side=True)) as receiver:
        right = send(f"https://receiver.example:{receiver.port}/", "{}", {}, SETTINGS, now=NOW, resolve=names)
        wrong = send(f"https://other.example:{receiver.port}/", "{}", {}, SETTINGS, now=NOW, resolve=names)
        address = send(f"https://127.0.0.1:{receiver.port}/", "{}", {}, SETTINGS, now=NOW, resolve=names)

    assert right.is_heard
    assert "its certificate is not valid" in wrong.error
    assert "its certificate is not valid" in address.error
    assert len(receiver.calls) == 1
    assert asked[:2] == ["receiver.example", "other.example"]


def test_certificate_that_nobody_trusts_is_refused(certified: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    sending.tls.cache_clear()
    names = Names(receiver_example=["127.0.0.1"])

    with receiving(wrap=lambda raw: certified.wrap_socket(raw, server_side=True)) as receiver:
        sent = send(f"https://receiver.example:{receiver.port}/", "{}", {}, SETTINGS, now=NOW, resolve=names)

    assert "its certificate is not valid" in sent.error
    assert receiver.calls == []


def test_receiver_that_speaks_no_tls_is_a_failure(receiver: Receiver) -> None:
    sent = send(f"https://127.0.0.1:{receiver.port}/", "{}", {}, SETTINGS, now=NOW, timeout=2)

    assert not sent.is_heard
    assert receiver.calls == []
