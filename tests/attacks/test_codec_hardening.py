"""What attacks on the codec have found, each mended: one test for each."""

from __future__ import annotations

from enum import Enum
from fractions import Fraction

import pytest

from bide.codec import Codec, Registry
from bide.errors import CodecError, CorruptDataError, UnknownTypeError, UnstorableValueError
from tests.attacks.frames import ext, frame, packed

asked: list[object] = []


class Colour(Enum):
    RED = 1

    @classmethod
    def _missing_(cls, value: object) -> Colour:
        asked.append(value)
        return cls.RED


def test_bytes_cannot_make_an_enum_look_for_a_member_by_its_value():
    registry = Registry()
    registry.add(Colour)
    asked.clear()

    with pytest.raises(CodecError, match="'Colour' has no name"):
        Codec(registry).decode(frame(ext(3, packed(["Colour", 1, {"members": [], "rest": "evil"}]))))

    assert asked == []


def test_a_fraction_whose_lowest_terms_would_take_minutes_is_not_built():
    long = b"q" + b"f" * 4_000_000 + b"/" + b"e" * 4_000_000 + b"1"

    with pytest.raises(CorruptDataError, match="longer than any that can be stored"):
        Codec().decode(frame(ext(1, long)))


def test_a_fraction_that_could_not_be_read_is_refused_when_it_is_written():
    with pytest.raises(UnstorableValueError, match=r"value\['rate'\]: it is a fraction of more than 16384"):
        Codec().encode({"rate": Fraction(1 << 70_000, 3)})


def test_a_fraction_of_ten_thousand_digits_comes_back():
    fraction = Fraction(7**10_000, 3**10_000)

    assert Codec().decode(Codec().encode(fraction)) == fraction


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (frame(ext(4, packed(["x" * 1_000_000, 1, {}]))), UnknownTypeError),
        (frame(ext(1, b"d" + b"x" * 1_000_000)), CorruptDataError),
        (frame(ext(6, packed(["bide", "x" * 1_000_000, {}]))), CorruptDataError),
    ],
    ids=["name", "date", "message"],
)
def test_an_error_does_not_repeat_a_million_letters_of_the_stored_bytes(data, error):
    with pytest.raises(error) as refusal:
        Codec().decode(data)

    assert len(str(refusal.value)) < 1_500


def test_memory_that_runs_out_is_not_called_damage(monkeypatch):
    def run_out(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("bide.codec.codec.read", run_out)

    with pytest.raises(MemoryError):
        Codec().decode(Codec().encode(1))
