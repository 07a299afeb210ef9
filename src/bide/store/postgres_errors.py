"""PostgreSQL's complaints, in words that say what to do, and which of them pass by themselves."""

from __future__ import annotations

from bide.errors import BideError, StoreBusyError, StoreError, StoreFormatError, StoreUnavailableError

NOT_PREPARED = frozenset(["26000", "42P05"])
"""A prepared statement is unknown, or known already: behind a pooler, every transaction may be on another server."""
UNMET = "22012"
"""Division by zero: see `expectation` in server.sql."""

_PASSING_CLASSES = ("08",)
_PASSING = frozenset(
    [
        "40001",  # serialization failure
        "40P01",  # deadlock
        "25006",  # read-only: a standby, or a server that is being replaced
        "57P01",  # the server is shut down
        "57P02",  # a crash of another backend
        "57P03",  # it cannot take connections now
        "57P05",  # an idle session was ended
        "25P03",  # an idle transaction was ended
        "0A000",  # a cached plan does not fit the tables any more
    ]
)
_NEEDS_NEW_CONNECTION = frozenset(["25006", "0A000"])
_UNAVAILABLE = {
    "53100": "The disk of {path} is full. Nothing of this transaction was written; everything acknowledged before is "
    "kept. Free some space and go on with invoke(None, config).",
    "53200": "{path} has no memory left ({problem}). Nothing of this transaction was written. Give the server more, or "
    "store less at once.",
    "42501": "{path} does not allow this user to do what Bide needs ({problem}). Nothing was written. {grant}",
    "42939": "PostgreSQL keeps names that begin with pg_ for itself ({problem}). Nothing was written. Give schema= "
    "another name, such as 'bide'.",
    "25006": "{path} is read-only ({problem}): it is a standby, or was set so. Nothing was written. Name the primary "
    "in the URL, or all servers with target_session_attrs=read-write.",
    "3F000": "{path} has no schema in which tables could be made ({problem}). Name one, and it is made: "
    "Store.open(url, schema='bide').",
}
_GRANTS = {
    "for table": "Let the owner of the tables grant it: GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA … "
    "TO …, and USAGE ON SCHEMA …; or open the store as their owner.",
    "must be owner": "The tables are to be brought forward, and only their owner may do that: open the store once as "
    "the user who made them.",
    "for schema": "Let the owner of the schema grant it: GRANT CREATE, USAGE ON SCHEMA … TO …; or open the store with "
    "a schema that this user owns: Store.open(url, schema=…).",
    "for database": "To make a schema is a right on the database. Let its owner grant it, GRANT CREATE ON DATABASE … "
    "TO …, or make the schema once for this user: CREATE SCHEMA … AUTHORIZATION ….",
}
"""What to grant, by what the server says the right is missing for."""
_ANY_GRANT = (
    "Let the owner grant what is missing: CREATE and USAGE on the schema to make the tables; USAGE on it, and SELECT, "
    "INSERT, UPDATE and DELETE on all its tables, to use them."
)
_BUSY = {
    "57014": "{path} did not finish a statement in {patience:.0f} seconds, so it was cancelled. Nothing was written. "
    "Another transaction probably holds its rows: look for it in pg_stat_activity, end it, and try again.",
    "55P03": "{path} could not lock a row in time ({problem}). Nothing was written. Another transaction holds it: look "
    "for it in pg_stat_activity, end it, and try again.",
    "53300": "{path} has no connection left ({problem}). Nothing was written. Raise max_connections there, open the "
    "store with a lower most_connections, or put a pooler between.",
}
_FORMAT = {
    "42P01": "{path} lacks a table of Bide's ({problem}). Somebody has dropped or moved it. Restore it from a backup, "
    "or choose another database or schema.",
    "42703": "{path} has a table that is not as Bide made it ({problem}). Restore it from a backup, or choose another "
    "database or schema.",
    "XX001": "{path} has damaged data ({problem}). Restore it from a backup.",
    "XX002": "{path} has a damaged index ({problem}). REINDEX may mend it; else restore a backup.",
}
_OTHERS = {
    "25P02": "A statement in step(effect='tx') failed and its error was caught. After that PostgreSQL takes nothing "
    "more in the same transaction, so nothing was written. Let the error out, or ask before you write.",
}


def is_passing(sqlstate: str) -> bool:
    """Say whether the same transaction may succeed when it is tried again."""
    return sqlstate in _PASSING or sqlstate.startswith(_PASSING_CLASSES)


def is_read_only(sqlstate: str) -> bool:
    """Say whether the server takes no writes: one that took some before may be in the middle of being replaced."""
    return sqlstate == "25006"


def needs_new_connection(sqlstate: str) -> bool:
    """Say whether it is the connection that is no good any more, though it stands."""
    return sqlstate in _NEEDS_NEW_CONNECTION


def explain(sqlstate: str, problem: object, path: str, patience: float = 0) -> BideError:
    """Turn the database's complaint into an error that says what to do."""
    kinds: tuple[tuple[dict[str, str], type[BideError]], ...] = (
        (_UNAVAILABLE, StoreUnavailableError),
        (_BUSY, StoreBusyError),
        (_FORMAT, StoreFormatError),
        (_OTHERS, StoreError),
    )
    text = _in_one_line(problem).rstrip(".")
    grant = next((advice for words, advice in _GRANTS.items() if words in text), _ANY_GRANT)
    for advice, kind in kinds:
        if sqlstate in advice:
            return kind(advice[sqlstate].format(path=path, problem=text, patience=patience, grant=grant))
    return StoreError(f"{path} refused: {text} (SQLSTATE {sqlstate or 'unknown'}).")


_HOPELESS = {
    "password authentication failed": "Check user and password in the URL, or the file ~/.pgpass.",
    "no password supplied": "Put the password into the URL, into PGPASSWORD or into the file ~/.pgpass.",
    "no pg_hba.conf entry": "The server does not take connections of this user from here: add a line to its "
    "pg_hba.conf.",
    "does not exist": "Create it (createdb, createuser), or correct the URL.",
    "could not translate host name": "Correct the host in the URL.",
    "is not permitted to log in": "Let the role log in: ALTER ROLE … LOGIN.",
    "permission denied for database": "Let the owner grant it: GRANT CONNECT ON DATABASE ….",
    "invalid connection option": "Correct the URL.",
    "invalid sslmode value": "After sslmode= write disable, allow, prefer, require, verify-ca or verify-full.",
    "invalid integer value": "Correct the number in the URL.",
    "invalid port number": "Correct the port in the URL.",
    "invalid target_session_attrs value": "After target_session_attrs= write any, read-write, read-only, primary, "
    "standby or prefer-standby.",
    "root certificate": "Correct sslmode and sslrootcert in the URL.",
}


def is_hopeless(problem: object) -> bool:
    """Say whether a connection will not be had by trying again. The server tells this in words alone."""
    return any(words in str(problem) for words in _HOPELESS)


def explain_connecting(problem: object, path: str) -> BideError:
    """Say why there is no connection, and what to do."""
    text = _in_one_line(problem)
    if "too many clients" in text or "remaining connection slots" in text or "too many connections" in text:
        return explain("53300", text, path)
    advice = next((advice for words, advice in _HOPELESS.items() if words in text), None)
    asked = "" if "Is the server running" in text else "Is the server running, and reachable from here? "
    more = advice or f"{asked}Check host and port in the URL, then try again."
    return StoreUnavailableError(f"There is no connection to {path}: {text} Nothing was written. {more}")


def _in_one_line(problem: object) -> str:
    """Write the server's lines one behind the other, each as a sentence that ends."""
    lines = (line.strip().rstrip(".") for line in str(problem).splitlines())
    return " ".join(line if line.endswith(("?", "!", ":")) else f"{line}." for line in lines if line)


def explain_doubt(path: str, patience: float) -> BideError:
    """Say that the server went away in the middle of a commit, and did not come back."""
    return StoreUnavailableError(
        f"The connection to {path} broke while a transaction was committed, and the server could not be reached again "
        f"for {patience:.0f} seconds: whether it was written is not known. When the server is back, look at the thread "
        f"with get_state(config); if its step is not there, go on with invoke(None, config)."
    )
