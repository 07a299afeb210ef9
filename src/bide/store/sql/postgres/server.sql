-- What is asked of PostgreSQL alone.

-- ── Transactions ───────────────────────────────────────────────────────────────────────────────────────────────────

-- name: begin
BEGIN

-- name: begin_snapshot
BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY

-- name: commit
COMMIT

-- name: rollback
ROLLBACK

-- name: limit_idleness
-- For this transaction: if we are gone and nobody tells the server, it must not keep our locks for ever.
SELECT set_config('idle_in_transaction_session_timeout', :milliseconds, true)

-- name: expectation
-- Wraps a statement that must change or find a row. If it does not, the division fails, and with it the transaction:
-- what was sent behind it, without waiting, is not done either.
WITH found AS (:statement)
SELECT 1 / count(*)
FROM found

-- ── Whether a write was applied ────────────────────────────────────────────────────────────────────────────────────

-- name: note_outcome
-- Changes no row once the slot is closed.
INSERT INTO outcomes (slot, token, is_open, noted_at)
VALUES (:slot, :token, 1, now())
ON CONFLICT (slot) DO UPDATE
SET token = excluded.token, noted_at = excluded.noted_at
WHERE outcomes.is_open = 1

-- name: close_slot
-- Waits for a transaction that holds the slot, be it to insert its row, and then tells the last one that was committed.
INSERT INTO outcomes (slot, token, is_open, noted_at)
VALUES (:slot, 0, 0, now())
ON CONFLICT (slot) DO UPDATE
SET is_open = 0, noted_at = excluded.noted_at
RETURNING token

-- name: forget_outcomes
DELETE FROM outcomes
WHERE slot IN (
    SELECT slot
    FROM outcomes
    WHERE noted_at < now() - interval '1 day'
    ORDER BY slot
    FOR UPDATE SKIP LOCKED
)

-- ── The schema ─────────────────────────────────────────────────────────────────────────────────────────────────────

-- name: hold_schema
-- Whoever makes or changes our tables holds this lock until the end of the transaction.
SELECT pg_advisory_xact_lock(hashtextextended('bide:' || :schema, 0))

-- name: find_schema
-- Whether our tables are there, whether others are that have their names, and whether the server keeps its promises.
SELECT obj_description(to_regclass(:migrations), 'pg_class'),
    (
        SELECT min(relname)
        FROM pg_class
        WHERE relnamespace = to_regnamespace(coalesce(nullif(:schema, ''), quote_ident(current_schema())))
        AND relname = ANY (string_to_array(:tables, ','))
    ),
    current_setting('fsync'), current_setting('synchronous_commit'), current_setting('full_page_writes')

-- name: make_schema
CREATE SCHEMA IF NOT EXISTS :schema

-- name: look_only_in
-- For the rest of this transaction.
SELECT set_config('search_path', :schema, true)
