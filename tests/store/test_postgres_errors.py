"""Each complaint of PostgreSQL becomes an error of ours: what happened, whether something was written, what to do."""

from __future__ import annotations

import pytest

from bide.errors import StoreBusyError, StoreError, StoreFormatError, StoreUnavailableError
from bide.store.postgres_errors import explain, explain_connecting, explain_doubt, is_hopeless, is_passing

PATH = "postgresql://me@host/database"


@pytest.mark.parametrize(
    ("sqlstate", "kind", "advice"),
    [
        ("53100", StoreUnavailableError, "Free some space"),
        ("53200", StoreUnavailableError, "Give the server more"),
        ("42501", StoreUnavailableError, "USAGE on the schema"),
        ("42939", StoreUnavailableError, "names that begin with pg_"),
        ("25006", StoreUnavailableError, "target_session_attrs=read-write"),
        ("3F000", StoreUnavailableError, "schema='bide'"),
        ("57014", StoreBusyError, "pg_stat_activity"),
        ("55P03", StoreBusyError, "pg_stat_activity"),
        ("53300", StoreBusyError, "most_connections"),
        ("42P01", StoreFormatError, "Restore it from a backup"),
        ("42703", StoreFormatError, "Restore it from a backup"),
        ("XX001", StoreFormatError, "Restore it from a backup"),
        ("XX002", StoreFormatError, "REINDEX"),
        ("25P02", StoreError, "Let the error out"),
        ("12345", StoreError, "SQLSTATE 12345"),
        ("", StoreError, "SQLSTATE unknown"),
    ],
)
def test_complaint_says_what_to_do(sqlstate, kind, advice):
    error = explain(sqlstate, "what the server said.", PATH, 60)

    assert type(error) is kind
    assert advice in str(error)
    assert ".." not in str(error)


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        ("permission denied for table threads", "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES"),
        ("must be owner of table threads", "as the user who made them"),
        ("permission denied for schema public", "GRANT CREATE, USAGE ON SCHEMA"),
        ("permission denied for database shop", "CREATE SCHEMA … AUTHORIZATION"),
    ],
)
def test_right_that_is_missing_is_the_one_to_grant(words, advice):
    assert advice in str(explain("42501", f"ERROR:  {words}", PATH))


def test_what_the_server_asks_stays_a_question():
    words = "connection to server failed: No such file\n\tIs the server running on that socket?"

    text = str(explain_connecting(words, PATH))

    assert "No such file. Is the server running on that socket? Nothing was written. Check host and port" in text


@pytest.mark.parametrize("sqlstate", ["40001", "40P01", "25006", "57P01", "57P02", "57P03", "08006", "08P01"])
def test_what_may_pass_is_tried_again(sqlstate):
    assert is_passing(sqlstate)


@pytest.mark.parametrize("sqlstate", ["53100", "53300", "42501", "23505", "22012", "42P01", "57014", ""])
def test_what_will_not_pass_is_told_at_once(sqlstate):
    assert not is_passing(sqlstate)


@pytest.mark.parametrize(
    ("words", "kind", "advice"),
    [
        ('FATAL:  password authentication failed for user "me"', StoreUnavailableError, "Check user and password"),
        ("fe_sendauth: no password supplied", StoreUnavailableError, "PGPASSWORD"),
        ('FATAL:  no pg_hba.conf entry for host "10.0.0.1"', StoreUnavailableError, "pg_hba.conf"),
        ('FATAL:  database "x" does not exist', StoreUnavailableError, "createdb"),
        ("FATAL:  sorry, too many clients already", StoreBusyError, "most_connections"),
        ("FATAL:  remaining connection slots are reserved", StoreBusyError, "most_connections"),
        ("connection refused", StoreUnavailableError, "Is the server running"),
        ('invalid sslmode value: "yes"', StoreUnavailableError, "verify-full"),
        ('invalid integer value "x" for connection option "port"', StoreUnavailableError, "Correct the number"),
    ],
)
def test_connection_that_cannot_be_had_says_why(words, kind, advice):
    error = explain_connecting(words, PATH)

    assert type(error) is kind
    assert advice in str(error)


@pytest.mark.parametrize(
    ("words", "hopeless"),
    [
        ("password authentication failed", True),
        ("does not exist", True),
        ("connection refused", False),
        ("the database system is starting up", False),
        ("sorry, too many clients already", False),
    ],
)
def test_only_what_may_come_back_is_waited_for(words, hopeless):
    assert is_hopeless(words) == hopeless


def test_doubt_is_told_as_doubt():
    text = str(explain_doubt(PATH, 60))

    assert "whether it was written is not known" in text
    assert "Nothing was written" not in text
    assert "get_state(config)" in text
