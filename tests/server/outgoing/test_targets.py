"""No webhook reaches into the server's own network, however its URL is written (SSRF)."""

from __future__ import annotations

from typing import Any

import pytest

from bide.server.hooks.sending import send
from bide.server.hooks.targets import TargetError, addresses_of, check_target, is_public, read_target
from bide.server.problems import Problem
from bide.server.settings import Settings
from tests.server.outgoing.outside import Names, Receiver, receiving

OPEN_PORTS = Settings(webhook_ports=None)
"""So that nothing but the address can be what is refused."""
CLOSED_NETWORK = Settings(allow_private_targets=True)

# PORT is where a trap listens on loopback.
ADDRESSES = [
    # this machine
    "https://127.0.0.1:PORT/",
    "https://127.0.0.2:PORT/",
    "https://127.255.255.254:PORT/",
    "https://0.0.0.0:PORT/",
    "https://0.1.2.3:PORT/",
    "https://[::1]:PORT/",
    "https://[::]:PORT/",
    "https://[0:0:0:0:0:0:0:1]:PORT/",
    "https://localhost:PORT/",
    "https://LOCALHOST:PORT/",
    "https://localhost.:PORT/",
    "https://a.localhost:PORT/",
    # the network around it
    "https://10.0.0.1:PORT/",
    "https://10.255.255.255:PORT/",
    "https://172.16.0.1:PORT/",
    "https://172.31.255.255:PORT/",
    "https://192.168.1.1:PORT/",
    "https://100.64.0.1:PORT/",
    "https://100.127.255.255:PORT/",
    "https://169.254.0.1:PORT/",
    "https://printer.local:PORT/",
    "https://[fe80::1]:PORT/",
    "https://[fe80::1%25lo]:PORT/",
    "https://[fe80::1%lo]:PORT/",
    "https://[fec0::1]:PORT/",
    "https://[fc00::1]:PORT/",
    "https://[fd12:3456:789a::1]:PORT/",
    # where machines of a cloud are told their secrets
    "https://169.254.169.254:PORT/latest/meta-data/",
    "https://metadata.google.internal:PORT/computeMetadata/v1/",
    "https://168.63.129.16:PORT/",
    "https://100.100.100.200:PORT/",
    "https://192.0.0.192:PORT/",
    "https://[fd00:ec2::254]:PORT/",
    # one address inside another
    "https://[::ffff:127.0.0.1]:PORT/",
    "https://[::ffff:7f00:1]:PORT/",
    "https://[::ffff:169.254.169.254]:PORT/",
    "https://[0:0:0:0:0:ffff:10.0.0.1]:PORT/",
    "https://[::127.0.0.1]:PORT/",
    "https://[64:ff9b::7f00:1]:PORT/",
    "https://[64:ff9b:1::7f00:1]:PORT/",
    "https://[2002:7f00:1::]:PORT/",
    "https://[2001:0:4136:e378:8000:63bf:80ff:fffe]:PORT/",
    "https://[100::1]:PORT/",
    # nobody's
    "https://192.0.2.1:PORT/",
    "https://198.51.100.7:PORT/",
    "https://203.0.113.9:PORT/",
    "https://198.18.0.1:PORT/",
    "https://192.88.99.1:PORT/",
    "https://224.0.0.1:PORT/",
    "https://239.255.255.250:PORT/",
    "https://240.0.0.1:PORT/",
    "https://255.255.255.255:PORT/",
    "https://[ff02::1]:PORT/",
    "https://[2001:db8::1]:PORT/",
    "https://[3fff::1]:PORT/",
    # written so that programs disagree
    "https://2130706433:PORT/",
    "https://017700000001:PORT/",
    "https://0x7f000001:PORT/",
    "https://0x7F.1:PORT/",
    "https://0177.0.0.1:PORT/",
    "https://127.1:PORT/",
    "https://127.0.1:PORT/",
    "https://127.000.000.001:PORT/",
    "https://127.0.0.1.:PORT/",
    "https://0:PORT/",
    "https://4294967297:PORT/",
    "https://1.1.1.0x1:PORT/",
    "https://１２７.０.０.１:PORT/",
    "https://①②⑦.⓪.⓪.①:PORT/",
    "https://127。0。0。1:PORT/",
    "https://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ:PORT/",
    # names that lead there
    "https://rebound.example:PORT/",
    "https://REBOUND.example.:PORT/",
    "https://six.example:PORT/",
    "https://mapped.example:PORT/",
    "https://half.example:PORT/",
    "https://zoned.example:PORT/",
    "https://metadata.example:PORT/",
]
WORDS = [
    "http://public.example/",
    "ftp://public.example/",
    "file:///etc/passwd",
    "gopher://127.0.0.1:PORT/_",
    "javascript:alert(1)",
    "//127.0.0.1:PORT/",
    "127.0.0.1:PORT",
    "https://",
    "https:///path",
    "https://user@public.example/",
    "https://user:password@127.0.0.1:PORT/",
    "https://public.example@127.0.0.1:PORT/",
    "https://public.example:80#@127.0.0.1:PORT/",
    "https://public.example\\@127.0.0.1:PORT/",
    "https://127.0.0.1:PORT\\@public.example/",
    "https://public.example /",
    "https://public.example\t/",
    "https://public.example/\r\nHost: 127.0.0.1",
    "https://public.example/a b",
    "https://public.example:notaport/",
    "https://public.example:99999999/",
    "https://public.example:-1/",
    "https://public..example/",
    "https://-public.example/",
    "https://" + "a" * 64 + ".example/",
    "https://pub%6cic.example/",
    "https://[::1/",
    "https://[public.example]/",
    "https://[::1]x/",
    "https://public.example/" + "a" * 3000,
    "",
    None,
    7,
]

NAMES = Names(
    public_example=["93.184.216.34"],
    rebound_example=["127.0.0.1"],
    six_example=["::1"],
    mapped_example=["::ffff:127.0.0.1"],
    half_example=["93.184.216.34", "10.0.0.1"],
    zoned_example=["fe80::1%lo"],
    metadata_example=["169.254.169.254"],
    localhost=["127.0.0.1"],
    a_localhost=["127.0.0.1"],
    printer_local=["192.168.1.9"],
    metadata_google_internal=["169.254.169.254"],
)


@pytest.mark.parametrize("written", [*ADDRESSES, *WORDS])
def test_target_that_is_not_public_is_refused_and_never_connected_to(
    written: Any, trap: Receiver, connections: list[Any]
) -> None:
    url = written.replace("PORT", str(trap.port)) if isinstance(written, str) else written

    with pytest.raises(Problem) as refused:
        check_target(url, OPEN_PORTS, NAMES)
    sent = send(str(url), "{}", {}, OPEN_PORTS, now=0, resolve=NAMES)

    assert refused.value.status == 422
    assert refused.value.detail.endswith(".")
    assert not sent.is_heard
    assert sent.is_hopeless
    assert connections == []


def test_the_corpus_is_large_enough_to_mean_something() -> None:
    assert len(ADDRESSES) + len(WORDS) >= 100


@pytest.mark.parametrize(
    "url",
    [
        "https://public.example/hook?a=1",
        "https://PUBLIC.example/",
        "https://public.example:8443/",
        "https://93.184.216.34/",
        "https://[2606:2800:220:1:248:1893:25c8:1946]/",
        "https://bücher.example/",
    ],
)
def test_target_that_is_public_may_be_called(url: str) -> None:
    names = Names(public_example=["93.184.216.34", "2606:2800:220:1::1"])
    names.known["xn--bcher-kva.example"] = ["93.184.216.34"]

    check_target(url, Settings(), names)


@pytest.mark.parametrize("port", [22, 25, 80, 5432, 6379])
def test_ports_of_other_services_are_refused_unless_they_are_allowed(port: int) -> None:
    url = f"https://public.example:{port}/"

    with pytest.raises(Problem, match=f"port {port}"):
        check_target(url, Settings(), NAMES)

    check_target(url, Settings(webhook_ports=(443, port)), NAMES)


def test_refusal_does_not_tell_what_is_in_the_own_network() -> None:
    with pytest.raises(TargetError) as refused:
        addresses_of(read_target("https://metadata.example/", OPEN_PORTS), OPEN_PORTS, NAMES)

    assert "169.254" not in str(refused.value)


def test_name_that_has_no_address_now_may_have_one_later() -> None:
    check_target("https://unknown.example/", Settings(), NAMES)

    sent = send("https://unknown.example/", "{}", {}, Settings(), now=0, resolve=NAMES)

    assert sent.error == "The host could not be resolved: the name has no address"
    assert not sent.is_hopeless


def test_name_that_leads_elsewhere_by_the_time_it_is_sent_is_refused_then(connections: list[Any]) -> None:
    names = Names(turncoat_example=["93.184.216.34"])
    check_target("https://turncoat.example/", Settings(), names)

    names.known["turncoat.example"] = ["127.0.0.1"]
    sent = send("https://turncoat.example/", "{}", {}, Settings(), now=0, resolve=names)

    assert sent.is_hopeless
    assert connections == []


def test_connection_goes_to_the_address_that_was_checked_and_the_name_is_asked_once(connections: list[Any]) -> None:
    with receiving() as receiver:
        names = Names(receiver_example=["127.0.0.1"])

        sent = send(f"http://receiver.example:{receiver.port}/in", "{}", {}, CLOSED_NETWORK, now=0, resolve=names)

    assert sent.is_heard
    assert names.asked == ["receiver.example"]
    assert connections == [("127.0.0.1", receiver.port)]
    assert receiver.calls[0].headers["host"] == f"receiver.example:{receiver.port}"


def test_addresses_are_public_or_not_at_the_edges_of_networks() -> None:
    public = ["9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0", "1.1.1.1"]
    public += ["223.255.255.255", "2000::1", "2a00::1", "2001:200::1", "168.63.129.15"]

    assert [address for address in public if not is_public(address)] == []
    assert not is_public("nonsense")


def test_every_address_that_python_calls_private_is_refused_too() -> None:
    from ipaddress import ip_address

    for number in range(0, 2**32, 104729 * 7):
        address = ip_address(number)
        if not address.is_global or address.is_multicast or address.is_reserved:
            assert not is_public(str(address)), address
