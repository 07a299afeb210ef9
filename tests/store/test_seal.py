"""A seal gives back what was closed at this place, or says that it cannot. There is no third outcome."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bide.errors import CorruptDataError
from bide.store.encryption import Encryption
from bide.store.seal import Checksums, close_reference, is_reference, open_reference, place_of

PLACE = place_of("journal", "thread-7", "task-1", 3)
BODY = b"\x01\xa2hi"


@pytest.fixture(params=["checksums", "encryption"])
def seal(request):
    return Checksums() if request.param == "checksums" else Encryption({"2026-a": bytes(32)})


def refused(seal, place, sealed):
    """Whether opening was refused with an error that names the place."""
    try:
        seal.open(place, sealed)
    except CorruptDataError as error:
        return place in str(error)
    return False


# --- what comes back --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("body", [b"", b"\x00", BODY, bytes(range(256)) * 300], ids=["empty", "nul", "small", "large"])
def test_what_was_closed_is_opened(seal, body):
    assert seal.open(PLACE, seal.close(PLACE, body)) == body


def test_a_plain_row_is_a_kind_a_checksum_and_the_body():
    assert Checksums().close(PLACE, BODY).hex() == "01" + "403a6122889efe4c" + BODY.hex()


def test_the_place_is_part_of_what_is_sealed(seal):
    sealed = seal.close(PLACE, BODY)

    assert refused(seal, place_of("journal", "thread-8", "task-1", 3), sealed)


def test_a_place_with_lone_surrogates_is_a_place_like_others(seal):
    place = place_of("threads", "\ud800")

    assert seal.open(place, seal.close(place, BODY)) == BODY


# --- damage -----------------------------------------------------------------------------------------------------------


def test_every_flipped_bit_is_noticed(seal):
    sealed = seal.close(PLACE, BODY * 5)

    opened = []
    for position in range(len(sealed)):
        for bit in range(8):
            flipped = bytearray(sealed)
            flipped[position] ^= 1 << bit
            if not refused(seal, PLACE, bytes(flipped)):
                opened.append((position, bit))

    assert opened == []


def test_every_truncation_and_every_addition_is_noticed(seal):
    sealed = seal.close(PLACE, BODY * 5)

    assert all(refused(seal, PLACE, sealed[:end]) for end in range(len(sealed)))
    assert refused(seal, PLACE, sealed + b"\x00")


@given(st.binary(max_size=80))
@settings(max_examples=500, deadline=None)
def test_noise_is_never_opened(noise):
    for seal in (Checksums(), Encryption({"2026-a": bytes(32)}), Encryption({"2026-a": bytes(32)}, required=False)):
        assert refused(seal, PLACE, noise)


@pytest.mark.parametrize("kind", [0, 3, 4, 0x80, 0xFF])
def test_a_kind_that_is_not_known_is_an_error_that_says_so(seal, kind):
    sealed = bytes([kind]) + seal.close(PLACE, BODY)[1:]

    with pytest.raises(CorruptDataError, match=rf"journal/thread-7/task-1/3 is of kind {kind}.*newer release"):
        seal.open(PLACE, sealed)


@pytest.mark.parametrize("stored", [None, "text", 7, 1.5], ids=["null", "text", "integer", "real"])
def test_a_column_that_holds_no_bytes_is_an_error_that_says_so(seal, stored):
    assert not is_reference(stored)
    with pytest.raises(CorruptDataError, match=f"there is a {type(stored).__name__}, not bytes"):
        seal.open(PLACE, stored)


# --- references -------------------------------------------------------------------------------------------------------


def test_a_reference_is_told_from_a_body_and_comes_back(seal):
    reference = close_reference(seal, PLACE, b"h" * 32)

    assert is_reference(reference)
    assert not is_reference(seal.close(PLACE, b"h" * 32))
    assert open_reference(seal, PLACE, reference) == b"h" * 32


def test_a_reference_is_never_taken_for_a_body_nor_a_body_for_a_reference(seal):
    reference, body = close_reference(seal, PLACE, b"h" * 32), seal.close(PLACE, BODY)

    assert refused(seal, PLACE, reference)
    assert refused(seal, PLACE, reference[1:])
    for forged in (b"\x03" + body, body):
        with pytest.raises(CorruptDataError, match="journal/thread-7/task-1/3"):
            open_reference(seal, PLACE, forged)


def test_every_flipped_byte_of_a_reference_is_noticed(seal):
    reference = close_reference(seal, PLACE, b"h" * 32)

    for position in range(len(reference)):
        flipped = bytearray(reference)
        flipped[position] ^= 0xFF
        with pytest.raises(CorruptDataError):
            open_reference(seal, PLACE, bytes(flipped))


# --- fingerprints -----------------------------------------------------------------------------------------------------


def test_equal_bodies_have_one_fingerprint_and_others_another(seal):
    assert seal.fingerprint(BODY) == seal.fingerprint(bytes(BODY))
    assert seal.fingerprint(BODY) != seal.fingerprint(BODY + b"\x00")
    assert len(seal.fingerprint(BODY)) == 32


def test_what_a_seal_writes_is_current(seal):
    assert seal.is_current(seal.close(PLACE, BODY))
    assert seal.is_current(close_reference(seal, PLACE, b"h" * 32))


def test_what_another_seal_wrote_is_not_current():
    encryption = Encryption({"2026-a": bytes(32)})

    assert not Checksums().is_current(encryption.close(PLACE, BODY))
    assert not encryption.is_current(Checksums().close(PLACE, BODY))
    assert not encryption.is_current(close_reference(Checksums(), PLACE, b"h" * 32))


# --- places -----------------------------------------------------------------------------------------------------------


def test_a_place_reads_like_a_path():
    assert place_of("checkpoints", "thread-7", "", 12, None) == "checkpoints/thread-7//12/None"


def test_parts_that_hold_a_slash_or_a_percent_sign_are_escaped():
    assert place_of("items", "a/b", "50%") == "items/a%2Fb/50%25"


def test_a_place_may_have_many_parts():
    assert place_of("items", *"abcdefghijklmnopqrst") == "items/" + "/".join("abcdefghijklmnopqrst")


parts = st.lists(st.text(alphabet="ab/%25F\x00\ud800", max_size=4), max_size=4)


@given(parts, parts)
@settings(max_examples=2000, deadline=None)
def test_two_rows_never_have_one_place(one, other):
    assert (place_of("t", *one) == place_of("t", *other)) == (one == other)
