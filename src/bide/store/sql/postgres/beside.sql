-- What is asked of PostgreSQL beside the transactions of the store: the time, and the doorbell.

-- name: read_clock
-- In milliseconds; not the time at which the transaction began.
SELECT (extract(epoch FROM clock_timestamp()) * 1000)::float8

-- name: limit_statements
-- For this transaction: whoever has sent it does not wait for longer, and must not leave it behind a lock.
SELECT set_config('statement_timeout', :milliseconds, true)

-- name: read_backend
SELECT pg_backend_pid()

-- name: listen
LISTEN :channel

-- name: ring
-- By itself, never in a transaction of the store: commits that notify wait for each other, in the whole server. Alone it
-- writes nothing, so it does not even wait for the disk.
SELECT pg_notify(:channel, '')
