-- What PostgreSQL has beside the schema that both databases share.

-- The last write of each writer, noted in the transaction of that write. A connection may die while a commit is under
-- way; whoever lost it looks here whether it was applied. From then on the slot is closed, so that a transaction which
-- is still on its way to the server comes too late.
CREATE TABLE outcomes (
    slot        TEXT   PRIMARY KEY,
    token       BIGINT NOT NULL,
    is_open     BIGINT NOT NULL CHECK (is_open IN (0, 1)),
    noted_at    TIMESTAMPTZ NOT NULL
) WITH (fillfactor = 50);

-- Positions are given before a transaction commits, and so may become visible in another order. What was written by
-- transactions that were over before the oldest that is still under way is all there: so far the log of all threads is
-- read, in the order of transactions.
ALTER TABLE events ADD COLUMN tx BIGINT NOT NULL DEFAULT (pg_current_xact_id()::TEXT::BIGINT);
CREATE INDEX events_in_order ON events (tx, position) WHERE kind NOT LIKE 'told.%';

-- By this, and not by the names of its tables, a database is known as one of ours.
COMMENT ON TABLE migrations IS 'Bide';
