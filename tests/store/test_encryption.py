"""Encryption at rest: rows open with their key and in their place, keys can be changed, and no key is ever shown."""

from __future__ import annotations

import copy
import re
import subprocess
import sys
import traceback
from base64 import b64decode, urlsafe_b64encode

import pytest

from bide.errors import CorruptDataError, EncryptionError, UnknownKeyError
from bide.store.encryption import Encryption
from bide.store.seal import Checksums, close_reference, open_reference, place_of

OLD, NEW = bytes(range(32)), bytes(range(100, 132))
PLACE = place_of("journal", "thread-7", "task-1", 3)
BODY = b"\x01\xa2hi"


# --- rows -------------------------------------------------------------------------------------------------------------


def test_an_old_row_opens_for_ever():
    sealed = bytes.fromhex(
        "0206323032362d61a6f7c55fac20cb722910c357a33cb85b1cf13243087c8dc46c4efe704ae4f6ff5279c7457e3bcb42f2296692ea"
        "1999cfe5e46118"
    )

    assert Encryption({"2026-a": OLD}).open(PLACE, sealed) == BODY


def test_nothing_of_the_body_is_on_disk_and_no_two_rows_are_alike():
    encryption = Encryption({"2026-a": OLD})
    body = b"the customer's secret"

    rows = {encryption.close(PLACE, body) for _ in range(100)}

    assert len(rows) == 100
    assert not any(b"secret" in row for row in rows)


@pytest.mark.parametrize(
    "elsewhere",
    [
        place_of("journal", "thread-8", "task-1", 3),
        place_of("journal", "thread-7", "task-1", 4),
        place_of("checkpoints", "thread-7", "task-1", 3),
        place_of("journal", "thread-7/task-1", 3),
    ],
    ids=["thread", "key", "table", "slash"],
)
def test_a_row_that_was_moved_does_not_open(elsewhere):
    encryption = Encryption({"2026-a": OLD})

    with pytest.raises(CorruptDataError, match="copied here from another row"):
        encryption.open(elsewhere, encryption.close(PLACE, BODY))


def test_a_row_cannot_be_said_to_be_of_another_key():
    # Given two ids for one key, so that only the id in the row differs,
    encryption = Encryption({"2026-a": OLD, "2026-b": OLD}, "2026-a")
    sealed = encryption.close(PLACE, BODY)

    # when the id in the row is changed, then the tag does not fit.
    with pytest.raises(CorruptDataError, match="does not open with its key '2026-b'"):
        encryption.open(PLACE, sealed.replace(b"2026-a", b"2026-b"))


def test_a_derived_key_encrypts_so_many_rows_and_no_more(monkeypatch):
    monkeypatch.setattr("bide.store.encryption._ROWS_PER_SALT", 10)
    encryption = Encryption({"2026-a": OLD})

    rows = [encryption.close(PLACE, BODY) for _ in range(30)]

    salts = [row[12:28] for row in rows]
    assert [len(set(salts[start : start + 10])) for start in (0, 10, 20)] == [1, 1, 1]
    assert len(set(salts)) == 3
    assert all(encryption.open(PLACE, row) == BODY for row in rows)


# --- keys that are missing, wrong or changed --------------------------------------------------------------------------


def test_a_row_of_an_unknown_key_names_the_key_and_says_what_to_do():
    sealed = Encryption({"2025-z": OLD}).close(PLACE, BODY)

    with pytest.raises(UnknownKeyError, match=r"thread-7.*key '2025-z'.*keys given are '2026-a'.*Give that key") as e:
        Encryption({"2026-a": NEW}).open(PLACE, sealed)

    assert e.value.key_id == "2025-z"


def test_another_key_under_the_same_name_is_told_from_damage():
    sealed = Encryption({"2026-a": OLD}).close(PLACE, BODY)

    with pytest.raises(UnknownKeyError, match="not with the one that was given under this name"):
        Encryption({"2026-a": NEW}).open(PLACE, sealed)


def test_an_encrypted_row_in_a_store_without_keys_says_what_to_do():
    sealed = Encryption({"2026-a": OLD}).close(PLACE, BODY)

    with pytest.raises(CorruptDataError, match=r"is encrypted.*encryption=Encryption"):
        Checksums().open(PLACE, sealed)


def test_after_a_change_of_keys_old_rows_are_read_and_new_ones_written_with_the_new_key():
    # Given rows of the old key,
    old = Encryption({"2026-a": OLD})
    row, reference = old.close(PLACE, BODY), close_reference(old, PLACE, b"h" * 32)

    # when a new key is made the current one,
    both = Encryption({"2026-a": OLD, "2026-b": NEW}, current="2026-b")

    # then the old rows open, and are known to be old,
    assert both.open(PLACE, row) == BODY
    assert open_reference(both, PLACE, reference) == b"h" * 32
    assert not both.is_current(row)
    assert not both.is_current(reference)

    # and once they are written anew the old key is not needed any more.
    again = both.close(PLACE, both.open(PLACE, row))
    assert both.is_current(again)
    assert Encryption({"2026-b": NEW}).open(PLACE, again) == BODY


def test_a_new_key_under_an_old_name_is_not_taken_for_the_old_one():
    row = Encryption({"2026-a": OLD}).close(PLACE, BODY)

    assert not Encryption({"2026-a": NEW}).is_current(row)


# --- rows that are not encrypted --------------------------------------------------------------------------------------


def test_a_plain_row_is_refused_where_encryption_is_required():
    with pytest.raises(CorruptDataError, match=r"thread-7.*is not encrypted.*required=False"):
        Encryption({"2026-a": OLD}).open(PLACE, Checksums().close(PLACE, BODY))


def test_a_plain_reference_is_refused_where_encryption_is_required():
    with pytest.raises(CorruptDataError, match="is not encrypted"):
        open_reference(Encryption({"2026-a": OLD}), PLACE, close_reference(Checksums(), PLACE, b"h" * 32))


def test_a_plain_row_is_read_while_a_store_is_being_encrypted_and_written_encrypted():
    moving = Encryption({"2026-a": OLD}, required=False)
    plain = Checksums().close(PLACE, BODY)

    assert moving.open(PLACE, plain) == BODY
    assert not moving.is_current(plain)
    assert moving.close(PLACE, BODY)[0] == 2


def test_a_damaged_plain_row_is_refused_while_a_store_is_being_encrypted():
    plain = Checksums().close(PLACE, BODY)

    with pytest.raises(CorruptDataError, match="checksum"):
        Encryption({"2026-a": OLD}, required=False).open(PLACE, plain[:-1] + b"!")


# --- fingerprints -----------------------------------------------------------------------------------------------------


def test_a_guess_at_a_large_value_cannot_be_checked_without_the_key():
    prints = {
        Encryption({"a": OLD}).fingerprint(BODY),
        Encryption({"a": NEW}).fingerprint(BODY),
        Checksums().fingerprint(BODY),
    }

    assert len(prints) == 3


# --- keys as people write them ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "written",
    [
        OLD,
        bytearray(OLD),
        OLD.hex(),
        OLD.hex().upper(),
        "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
        " AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8\n",
    ],
    ids=["bytes", "bytearray", "hex", "HEX", "base64", "base64 without padding"],
)
def test_a_key_is_given_as_bytes_hexadecimal_or_base64(written):
    assert Encryption({"k": written}).open(PLACE, Encryption({"k": OLD}).close(PLACE, BODY)) == BODY


def test_a_key_in_base64_for_urls_is_the_same_key():
    key = b"\xfb\xff" * 16
    written = urlsafe_b64encode(key).decode()
    assert "-" in written

    assert Encryption({"k": written}).open(PLACE, Encryption({"k": key}).close(PLACE, BODY)) == BODY


def test_a_generated_key_is_32_bytes_and_never_the_same():
    keys = {Encryption.generate_key() for _ in range(20)}

    assert len(keys) == 20
    assert {len(b64decode(key)) for key in keys} == {32}
    for key in keys:
        Encryption({"k": key})


@pytest.mark.parametrize(
    "key",
    [b"", OLD[:16], OLD + b"!", "correct horse battery staple", "zz" * 32, "é" * 44, None, 7],
    ids=["none", "128 bits", "33 bytes", "password", "no hex", "no base64", "None", "number"],
)
def test_what_is_no_key_is_refused_and_not_shown(key):
    with pytest.raises(EncryptionError, match=r"The key 'k' must be 32 bytes.*generate_key") as refusal:
        Encryption({"k": key})

    assert not key or str(key) not in str(refusal.value)
    assert refusal.value.__cause__ is None


@pytest.mark.parametrize(
    "key_id", ["", "x" * 65, "ключ", "a\nb", 7], ids=["empty", "long", "cyrillic", "newline", "int"]
)
def test_an_id_is_short_printable_text(key_id):
    with pytest.raises(EncryptionError, match="The id of a key is 1 to 64 printable ASCII characters"):
        Encryption({key_id: OLD})


@pytest.mark.parametrize("keys", [{}, None, OLD.hex()], ids=["empty", "None", "a key"])
def test_keys_have_ids(keys):
    with pytest.raises(EncryptionError, match=re.escape("keys={'2026-a': key}")):
        Encryption(keys)


def test_with_several_keys_one_is_said_to_be_the_current_one():
    with pytest.raises(EncryptionError, match=r"several keys \('a', 'b'\): say which one encrypts"):
        Encryption({"a": OLD, "b": NEW})


def test_the_current_key_is_one_of_the_keys():
    with pytest.raises(EncryptionError, match="current='c' is none of the keys that were given: 'a', 'b'"):
        Encryption({"a": OLD, "b": NEW}, "c")


def test_keys_are_read_from_the_environment_and_the_first_one_encrypts(monkeypatch):
    monkeypatch.setenv("BIDE_ENCRYPTION_KEYS", f"2026-b:{NEW.hex()}, 2026-a:{OLD.hex()}")

    encryption = Encryption.from_env()

    assert repr(encryption) == "Encryption(keys=['2026-a', '2026-b'], current='2026-b', required=True)"
    assert encryption.open(PLACE, Encryption({"2026-a": OLD}).close(PLACE, BODY)) == BODY


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "BIDE_ENCRYPTION_KEYS is not set, or is empty"),
        (OLD.hex(), "Entry 1 of BIDE_ENCRYPTION_KEYS has no id"),
        (f"a:{OLD.hex()},a:{NEW.hex()}", "Entry 2 of BIDE_ENCRYPTION_KEYS has the same id"),
    ],
    ids=["unset", "no id", "twice"],
)
def test_an_environment_that_holds_no_keys_is_refused_and_not_shown(monkeypatch, text, says):
    monkeypatch.setenv("BIDE_ENCRYPTION_KEYS", text)

    with pytest.raises(EncryptionError, match=says) as refusal:
        Encryption.from_env()

    assert OLD.hex() not in str(refusal.value)


# --- secrets stay secret ----------------------------------------------------------------------------------------------


def test_no_key_is_in_a_repr_or_an_error():
    encryption = Encryption({"2026-a": OLD})
    stranger = Encryption({"2026-a": NEW})

    with pytest.raises(CorruptDataError) as damage:
        encryption.open("elsewhere", encryption.close(PLACE, BODY))
    with pytest.raises(UnknownKeyError) as wrong:
        stranger.open(PLACE, encryption.close(PLACE, BODY))

    told = [repr(encryption), str(vars(encryption)), *map(traceback.format_exception, (damage.value, wrong.value))]
    assert not any(shown in str(told) for shown in (repr(OLD), OLD.hex(), repr(NEW), NEW.hex()))


def test_an_encryption_is_not_copied_or_written_anywhere():
    with pytest.raises(TypeError, match="holds keys"):
        copy.deepcopy(Encryption({"2026-a": OLD}))


def test_without_the_package_the_error_names_the_extra():
    program = (
        "import sys; sys.modules['cryptography.exceptions'] = None\n"
        "from bide.store.encryption import Encryption\n"
        "Encryption({'k': bytes(32)})\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert "EncryptionError: Encryption needs the package 'cryptography'" in done.stderr
    assert 'pip install "bide[crypto]"' in done.stderr
