"""Hostile bytes for the codec, family by family. Whatever needs building is built here, and never run."""

from __future__ import annotations

import json
import random
import struct
import zlib
from collections.abc import Iterator
from typing import Any

from tests.attacks.frames import OWN_CODES, REGISTERED_CODES, binary, every_ext, everywhere, ext, frame, packed
from tests.attacks.trapped import golden_values, trapped_codec

# --- pickles ----------------------------------------------------------------------------------------------------------

_COMMAND = b"touch /tmp/bide-was-here"
_AS_SHORT_TEXT = b"\x8c" + bytes([len(_COMMAND)]) + _COMMAND

PICKLES = {
    "GLOBAL and REDUCE": b"cos\nsystem\n(S'" + _COMMAND + b"'\ntR.",
    "INST": b"(S'" + _COMMAND + b"'\nios\nsystem\n.",
    "OBJ": b"(cos\nsystem\nS'" + _COMMAND + b"'\no.",
    "protocol 2": b"\x80\x02cposix\nsystem\nq\x00X" + struct.pack("<I", len(_COMMAND)) + _COMMAND + b"\x85R.",
    "STACK_GLOBAL": b"\x80\x04\x95"
    + struct.pack("<Q", 60)
    + b"\x8c\x02os\x8c\x06system\x93"
    + _AS_SHORT_TEXT
    + b"\x85R.",
    "NEWOBJ": b"\x80\x02csubprocess\nPopen\n" + b"X\x04\x00\x00\x00true\x85\x81.",
    "NEWOBJ_EX": b"\x80\x04\x8c\x0asubprocess\x8c\x05Popen\x93\x8c\x04true\x85}\x92.",
    "BUILD": b"\x80\x02c__main__\nOrder\n)\x81}X\x05\x00\x00\x00totalcos\nsystem\nsb.",
    "EXT1": b"\x80\x02\x82\x01.",
    "EXT2": b"\x80\x02\x83\x01\x00.",
    "EXT4": b"\x80\x02\x84\x01\x00\x00\x00.",
    "PERSID": b"Pos.system\n.",
    "BINPERSID": b"\x80\x02X\x09\x00\x00\x00os.systemQ.",
    "builtins.eval": b'cbuiltins\neval\n(S\'__import__("os").system("true")\'\ntR.',
    "builtins.__import__": b"cbuiltins\n__import__\n(S'antigravity'\ntR.",
    "getattr": b"cbuiltins\ngetattr\n(cos\nS'system'\ntR(S'true'\ntR.",
    "copyreg": b"\x80\x02ccopyreg\n_reconstructor\nc__main__\nOrder\nc__builtin__\nobject\nN\x87R.",
    "NEXT_BUFFER": b"\x80\x05\x97.",
    "BYTEARRAY8": b"\x80\x05\x96" + struct.pack("<Q", 2**62) + b".",
    "LONG4": b"\x80\x02\x8b\xff\xff\xff\x7f.",
    "FRAME": b"\x80\x04\x95" + b"\xff" * 8 + b".",
    "MEMOIZE": b"\x80\x04" + b"\x8c\x01a\x94" * 200 + b".",
    "marshalled code": b"\xe3" + b"\x00" * 40,
}


def pickles() -> Iterator[bytes]:
    """Every opcode and real payloads: bare, as a frame, as an extension of ours, as a name."""
    for payload in [*PICKLES.values(), *(bytes([opcode]) + rest for opcode in range(256) for rest in _AFTER_OPCODE)]:
        yield payload
        yield frame(payload)
        yield from (frame(ext(code, payload)) for code in OWN_CODES)
        yield frame(ext(4, packed([payload.decode("latin-1"), 1, {}])))
        yield frame(ext(4, packed(["Order", 1, {"total": payload, "lines": []}])))


_AFTER_OPCODE = (b"", b".", b"cos\nsystem\n(S'true'\ntR.")


# --- extension types --------------------------------------------------------------------------------------------------

_CONTENTS = (b"", b"\x00", b"\x90", b"t\x90", b"\xff" * 4, b"\x00" * 8, b"cos\ns.", b"\x93\xa1a\x01\x80", b"\x00" * 12)


def extensions() -> Iterator[bytes]:
    """All 256 extension codes, in every way to write them, with empty, wrong and plausible contents."""
    for code in range(-128, 128):
        for content in (*_CONTENTS, b"\xff" * 16, *(PICKLES.values() if code in (0, 5, 42, -1) else ())):
            yield from (frame(way) for way in every_ext(code, content))


def nested_extensions() -> Iterator[bytes]:
    """Extensions within extensions, of ours and of others."""
    for outer in OWN_CODES:
        for inner in (*OWN_CODES, 0, 42, -1):
            for content in _CONTENTS:
                yield frame(ext(outer, ext(inner, content)))
                yield frame(ext(outer, b"t\x91" + ext(inner, content)))
                yield frame(ext(outer, b"\x93\xa5Order\x01\x81\xa5total" + ext(inner, content)))


# --- names of things to call ------------------------------------------------------------------------------------------

_NAMES: tuple[Any, ...] = (
    "os.system", "posix.system", "subprocess.Popen", "builtins.eval", "builtins.exec", "eval", "__import__",
    "antigravity", "importlib.import_module", "pathlib.Path", "tests.attacks.trapped.Order", "__main__.Order",
    "Order.pay", "Order.load", "Order.__init__", "Order.__class__", "Email.send", "__class__", "__reduce__", "object",
    "ctypes.CDLL", "socket.socket", "../../etc/passwd", "", "\x00", "Order\x00", "order", " Order", "Ο" + "rder",
    None, True, 1, 2**64 - 1, 1.5, float("nan"), b"Order", [], ["Order"], {}, {"Order": 1},
)  # fmt: skip

_VERSIONS: tuple[Any, ...] = (0, -1, 2, 2**63, "1", None, True, 1.0, float("nan"), [], {"__class__": 1})

_FIELDS: tuple[Any, ...] = (
    {}, [], None, "fields", 7, {"total": 1}, {"total": 1, "lines": [], "more": 1}, {"__class__": "os"},
    {"__dict__": {"pay": 1}}, {"__reduce__": "os.system"}, {"__init__": 1}, {"pay": 1}, {"__setattr__": None},
    {"x": 1, "__pydantic_private__": {"y": 1}}, {"member": "pay"}, {"member": "_missing_"}, {"member": "__class__"},
    {"member": ["RED"]}, {"members": [], "rest": 99}, {"members": ["RED"], "rest": "evil"}, {"members": 1, "rest": 1},
    {"members": ["mro"], "rest": 0}, {"value": "a@b.c", "attributes": {"__class__": 1}},
    {"value": "a@b.c", "attributes": {"__dict__": 1}}, {"value": "a", "attributes": {"__dict__": {"send": 1}}},
    {"value": "a", "attributes": {"__doc__": 1, "__slots__": 2, "send": 3}}, {"value": "a", "attributes": []},
    {"value": 1, "attributes": {}}, {"attributes": {}}, {1: 2},
)  # fmt: skip

_RESTS: tuple[list[Any], ...] = (
    [], [None], [[], None, None], [["x"], {"y": 1}, {"z": 2}], [[], {"__class__": 1}, {"__dict__": 1}],
    [[["x"]], [], []], [{"x": 1}, "extra", 7], [[], None, None, "more"], [1, 2, 3],
)  # fmt: skip


def names() -> Iterator[bytes]:
    """Values of registered classes that name something else, or have other fields than the class."""
    for code in REGISTERED_CODES:
        for name in _NAMES:
            yield from everywhere(ext(code, packed([name, 1, {"total": 1}])))
            yield frame(ext(code, packed([name])))
        for name in ("Order", "Model", "Colour", "Right", "Point", "Email"):
            yield from (frame(ext(code, packed([name, version, {"x": 1}]))) for version in _VERSIONS)
            for fields in _FIELDS:
                yield from (frame(ext(code, packed([name, 1, fields, *rest]))) for rest in _RESTS)


def langgraph_names() -> Iterator[bytes]:
    """What LangGraph itself stores, with fields that are none, or too many."""
    for code in REGISTERED_CODES:
        for name in ("Send", "Command", "Interrupt", "Overwrite", "Item", "StateSnapshot", "TimeoutPolicy", "Nothing"):
            for fields in (*_FIELDS, {"node": "os.system", "arg": "true"}, {"goto": "os.system", "resume": {}}):
                yield frame(ext(code, packed([f"langgraph.{name}", 1, fields])))


def chat_messages() -> Iterator[bytes]:
    """Messages of families and types that are none, and with parts that no message has."""
    kinds = ("human", "ai", "tool", "text", "Document", "remove", "chat", "AIMessageChunk", *_NAMES)
    for family in ("bide", "langchain", "langgraph", "os", "__main__", None, 1, [], {}):
        for kind in kinds:
            yield frame(ext(6, packed([family, kind, {"content": "x"}])))
            yield frame(ext(6, packed([family, kind, "os.system"])))
    for family in ("bide", "langchain"):
        for kind in ("human", "ai", "text", "Document"):
            for fields in _FIELDS:
                yield from (frame(ext(6, packed([family, kind, fields, *rest]))) for rest in _RESTS)


def constructors() -> Iterator[bytes]:
    """LangChain's constructor dicts, as data of ours and as the JSON that they usually are."""
    for told in constructor_dicts():
        yield from everywhere(packed(told))
        text = json.dumps(told).encode()
        yield text
        yield frame(text)
        yield frame(binary(text))
        yield from (frame(ext(code, text)) for code in OWN_CODES)
        yield from (frame(ext(code, packed(told))) for code in OWN_CODES)


def constructor_dicts() -> list[dict[str, Any]]:
    """What LangChain's and LangGraph's loaders would call."""
    calls: list[dict[str, Any]] = [
        {"lc": lc, "type": kind, "id": target, "kwargs": {"command": "true"}, "args": ["true"]}
        for lc in (1, 2)
        for kind in ("constructor", "secret", "not_implemented")
        for target in (["os", "system"], ["subprocess", "Popen"], ["langchain_core", "messages", "AIMessage"], ["PATH"])
    ]
    calls += [{**call, "method": method} for call in calls[:2] for method in ("__init__", ["construct", None], "load")]
    return calls


# --- scalars and containers -------------------------------------------------------------------------------------------

_SCALARS = (
    b"", b"0", b"1/0", b"0/0/0", b"1/2/0", b"-1/-1", b"f" * 40_000 + b"/3", b"1e999999999999999999", b"sNaN", b"NaN1",
    b"Infinity", b"-Infinity", b"1" * 50_000, b"\x00" * 50_000, b"\xff" * 16, b"\x7f\xf8" + b"\x00" * 14,
    b"\xed\xa0\x80", b"\xff\xfe", b"2026-13-01", b"2026-01-01T00:00:00+99:99", b"x" * 50_000, b"p/etc/passwd",
    b"pa\x00b", b"w..\\x", b"p" + b"\xed\xb2\x80", b"z",
)  # fmt: skip

_CLOCKS: tuple[list[Any], ...] = tuple(
    [text, fold, zone]
    for text in ("2026-01-01T00:00:00", "00:00:00", "x" * 5_000, "", 7, None)
    for fold in (0, 2, -1, None, "0")
    for zone in (
        None, 0, 2**62, -(2**63), "Europe/Berlin", "../../../etc/passwd", "/etc/passwd", "os", "tzdata", "zoneinfo",
        "antigravity", "Europe/Berlin\x00", "Europe", "", "é", [0, "x"], [2**62, "x"], [0], [0, 0], {}, 1.5,
    )
)  # fmt: skip


def scalars() -> Iterator[bytes]:
    """Every tag with contents that fit another, or none."""
    for tag in range(256):
        for content in _SCALARS if bytes([tag]) in b"isbcrnqudDtTp" else _SCALARS[:4]:
            yield frame(ext(1, bytes([tag]) + content))
    for clock in _CLOCKS:
        yield from (frame(ext(1, tag + packed(clock))) for tag in (b"D", b"t"))
    for span in ([2**63, 0, 0], [0, 0], [1.5, float("nan"), 0], [float("inf"), 0, 0], ["1", 0, 0], {}, 7):
        yield frame(ext(1, b"T" + packed(span)))


def containers() -> Iterator[bytes]:
    """Every tag with lists that are none, have too much or too little, or hold what cannot be in a set."""
    lists = (
        [], [1], [1, 1], [[]], [{}], [None, 1, 2], [0, 1], [-1], [2**62, 1], ["list"], ["list", 1], ["os.system", 1, 2],
        [["list"], 1, 2], ["eval", "a", 1], [1, 2, 1, 3], [float("nan")] * 3, None, {}, "items", 7,
    )  # fmt: skip
    for tag in range(256):
        for items in lists if bytes([tag]) in b"tsfqondm" else lists[:2]:
            yield frame(ext(2, bytes([tag]) + packed(items)))


def texts_and_numbers() -> Iterator[bytes]:
    """Text that is no UTF-8, lone surrogates in every place where text may be, and numbers at the edges."""
    for text in (
        b"\xed\xa0\x80",
        b"\xff",
        b"\xc0\xaf",
        b"\xf4\x90\x80\x80",
        b"\xe2\x82",
        b"\x80",
        b"\xf8\x88\x80\x80\x80",
    ):
        short = bytes([0xA0 | len(text)]) + text
        yield from everywhere(short)
        yield from everywhere(b"\x81" + short + b"\x01")
        yield from everywhere(ext(1, b"s" + text))
        yield frame(ext(4, b"\x93" + short + b"\x01\x80"))
        yield frame(ext(4, b"\x93\xa5Order\x01\x81" + short + b"\x01"))
    for number in (b"\x7f\xf8" + b"\x00" * 6, b"\x7f\xf0" + b"\x00" * 6, b"\xff" * 8, b"\x80" + b"\x00" * 7):
        yield from (inside for kind in (b"\xcb", b"\xcf", b"\xd3") for inside in everywhere(kind + number))
    yield from everywhere(b"\xca\x7f\xc0\x00\x00")
    yield from everywhere(b"\xc1")
    yield from (frame(bytes([first])) for first in range(256))
    yield from (bytes([version]) + packed({"a": 1}) for version in range(256))


# --- bombs ------------------------------------------------------------------------------------------------------------


def bombs() -> Iterator[bytes]:
    """Lengths that are not there, depth, repetition, and what other formats would unfold."""
    for head in (b"\xdd", b"\xdf", b"\xdb", b"\xc6", b"\xc9"):
        for length in (b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", b"\xff\xff\xff\xff"):
            yield from everywhere(head + length)
            yield frame((head + length) * 500)
    yield frame(b"\x91" * 1_000_000)
    yield frame(b"\x81\xa1a" * 300_000)
    yield frame(b"\xdd\x00\x00\x00\x01" * 200_000)
    for code in OWN_CODES:
        yield frame(_nested(ext, code, 3_000))
    yield from (
        frame(_many(one, 100_000)) for one in (b"\xc0", b"\x90", b"\x80", b"\xa0", b"\x91\x90", b"\x81\xa1a\xc0")
    )
    for content in (b"q\x91\xc0", b"s\x90", b"o\x90", b"n\x90", b"d\x91\xc0", b"t\x90", b"m\x90"):
        yield frame(_many(ext(2, content), 20_000))
    yield frame(_many(ext(2, b"t\xdd\x00\x00\xff\xff" + b"\x90" * 65_535), 5))
    for zipped in (zlib.compress(bytes(10_000_000), 9), b"PK\x03\x04" + b"\x00" * 40, b"\x1f\x8b\x08" + b"\x00" * 40):
        yield zipped
        yield from everywhere(binary(zipped))
        yield from (frame(ext(code, zipped)) for code in OWN_CODES)
    yield b"[" * 100_000
    yield b'{"a":' * 100_000
    yield frame(ext(2, b"s" + _many(ext(1, b"q" + b"f" * 9_000 + b"/" + b"e" * 6_000 + b"1"), 3)))


def _nested(wrap: Any, code: int, levels: int) -> bytes:
    body = b"\x90"
    for _ in range(levels):
        body = wrap(code, b"t\x91" + body)
    return bytes(body)


def _many(one: bytes, count: int) -> bytes:
    return b"\xdd" + count.to_bytes(4) + one * count


# --- damage -----------------------------------------------------------------------------------------------------------


def golden_frames() -> list[bytes]:
    """What the codec itself writes, for one value of every type."""
    codec = trapped_codec()
    return [codec.encode(value) for value in golden_values().values()]


def truncations() -> Iterator[bytes]:
    """Golden frames cut off at every byte, and with something after their end."""
    for golden in golden_frames():
        yield from (golden[:end] for end in range(len(golden)))
        yield from (golden + more for more in (b"\x00", b"\xc0", golden))


def flips() -> Iterator[bytes]:
    """Golden frames with every single bit turned, and with each byte all zeros or all ones."""
    for golden in golden_frames():
        for position, byte in enumerate(golden):
            for changed in {*(byte ^ (1 << bit) for bit in range(8)), 0x00, 0xFF} - {byte}:
                yield golden[:position] + bytes([changed]) + golden[position + 1 :]


def mixtures() -> Iterator[bytes]:
    """Pieces of golden frames put together at random, always the same."""
    chance = random.Random(20260801)
    goldens = golden_frames()
    for _ in range(4_000):
        one, other = chance.choice(goldens), chance.choice(goldens)
        start, end = sorted(chance.choices(range(len(other) + 1), k=2))
        at = chance.randrange(1, len(one))
        yield one[:at] + other[start:end] + one[at + chance.randrange(3) :]


FAMILIES = {
    family.__name__: family
    for family in (
        pickles, extensions, nested_extensions, names, langgraph_names, chat_messages, constructors, scalars,
        containers, texts_and_numbers, bombs, truncations, flips, mixtures,
    )
}  # fmt: skip
