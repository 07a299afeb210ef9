-- The store of Bide, told in the order of a run's life. One schema for SQLite and PostgreSQL: only types and clauses
-- that both accept. Times are milliseconds since 1970 (UTC). Bodies are bytes of the codec, each sealed with the identity
-- of its row (seal.py), so that damaged or moved ones are noticed; those past 64 KiB lie in BLOBS (bodies.py).
--
-- A caller STARTS a run on a THREAD: the thread's row, a run that is `running` and leased to a worker, and the first
-- CHECKPOINT with the input applied, in one transaction. The worker runs the tasks of a step. A task that finishes
-- before its siblings, and every step() inside a node, goes to the JOURNAL at once, so that neither is ever run again.
-- When all tasks are done the next checkpoint is COMMITTED: small values travel in its body, large ones that changed go
-- to the CHANNEL LOG, and the journal of that step is retired. A task that asks makes a WAIT: the pause, its waits, the run's status `waiting` and
-- the release of the lease are one commit. An answer is recorded once, and in the same transaction the run is taken
-- again. EVENTS tell all this in order. DELIVERIES keep what comes from outside before anybody matches it.
--
-- Three promises are kept here and not in Python: at most one live run per thread (one_live_run); a run is leased
-- exactly while it is running (CHECK on runs); a checkpoint is written only on the head it was computed from, by the run
-- that holds the lease (the WHERE of write_checkpoint in queries.sql). There are no foreign keys: every row is written in the
-- transaction that writes its parent, and each key would be looked up again on every step. `/* sqlite: … */` is read by
-- SQLite alone: tables of small rows are kept in the order of their key, so that a step touches one page and not two.

-- Which numbered migrations this database has seen.
CREATE TABLE migrations (
    version     BIGINT PRIMARY KEY,
    name        TEXT   NOT NULL,
    applied_at  BIGINT NOT NULL
);

-- A durable identity. `uid` is one life of it: deleting a thread and making it again gives another, so that an old
-- question's id can never answer a new one. Its head is its newest checkpoint; `events` counts its log. From when
-- retention first lets go something of it, it is `pruned`: then parts of its history may be missing. Whoever takes,
-- edits, prunes or deletes a thread locks this row first.
CREATE TABLE threads (
    thread_id   TEXT   PRIMARY KEY,
    uid         TEXT   NOT NULL UNIQUE,
    owner       TEXT   NOT NULL,
    graph       TEXT   NOT NULL,
    events      BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    pruned      BIGINT NOT NULL CHECK (pruned IN (0, 1))
);

-- The lives of threads that were deleted: whoever still holds one is told so, and writes nothing.
CREATE TABLE tombstones (
    uid         TEXT   PRIMARY KEY,
    thread_id   TEXT   NOT NULL,
    deleted_at  BIGINT NOT NULL
);

-- A process that drives runs. It is alive while its lease is renewed, or, seen from the same machine, while its
-- process exists.
CREATE TABLE workers (
    worker_id    TEXT   PRIMARY KEY,
    host         TEXT   NOT NULL,
    pid          BIGINT NOT NULL,
    started      TEXT   NOT NULL,
    lease_until  BIGINT NOT NULL
);

-- One request to advance a thread. `epoch` grows by one at every claim: a worker that lost its lease writes nothing,
-- because every write names the epoch that it was claimed with.
CREATE TABLE runs (
    thread_id   TEXT   NOT NULL,
    run_id      TEXT   NOT NULL,
    status      TEXT   NOT NULL CHECK (status IN ('ready', 'running', 'waiting', 'blocked', 'done', 'failed', 'cancelled')),
    epoch       BIGINT NOT NULL,
    worker_id   TEXT,
    error       TEXT,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    PRIMARY KEY (thread_id, run_id),
    CHECK ((status = 'running') = (worker_id IS NOT NULL))
) /* sqlite: WITHOUT ROWID */;
CREATE INDEX runs_of_worker ON runs (worker_id) WHERE status = 'running';
CREATE UNIQUE INDEX one_live_run ON runs (thread_id) WHERE status IN ('ready', 'running', 'waiting', 'blocked');

-- An immutable point after a step. `ns` says of which graph: empty for the thread's own, else the path of the task that
-- a graph inside it runs in; each counts its own. `body` is a frame (frames.py): the tasks that come next, what they came
-- from, the small values of the state, or those changed since its `base`, and for each large one where it is in the
-- channel log. `parent` makes history a tree: forks share their past. One that is `pruned` is gone for readers, and is
-- kept because it is the base of another.
CREATE TABLE checkpoints (
    thread_id   TEXT   NOT NULL,
    ns          TEXT   NOT NULL,
    seq         BIGINT NOT NULL,
    parent      BIGINT,
    step        BIGINT NOT NULL,
    source      TEXT   NOT NULL,
    run_id      TEXT   NOT NULL,
    epoch       BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    pruned      BIGINT NOT NULL CHECK (pruned IN (0, 1)),
    body        BYTEA  NOT NULL,
    PRIMARY KEY (thread_id, ns, seq)
) /* sqlite: WITHOUT ROWID */;

-- Values of state keys that are too large for the checkpoint's own row, written only when they changed. A list is logged
-- as it grows: a row holds the whole, or what changed since the row before (lists.py).
CREATE TABLE channel_log (
    thread_id   TEXT   NOT NULL,
    ns          TEXT   NOT NULL,
    channel     TEXT   NOT NULL,
    seq         BIGINT NOT NULL,
    body        BYTEA  NOT NULL,
    PRIMARY KEY (thread_id, ns, channel, seq)
) /* sqlite: WITHOUT ROWID */;

-- Large bodies, once for all threads of an owner that hold the same bytes, and who uses them. One that nobody uses any
-- more is collected.
CREATE TABLE blobs (
    owner       TEXT   NOT NULL,
    hash        BYTEA  NOT NULL,
    size        BIGINT NOT NULL,
    used_at     BIGINT NOT NULL,
    body        BYTEA  NOT NULL,
    PRIMARY KEY (owner, hash)
);
CREATE TABLE blob_uses (
    thread_id   TEXT   NOT NULL,
    owner       TEXT   NOT NULL,
    hash        BYTEA  NOT NULL,
    PRIMARY KEY (thread_id, owner, hash)
) /* sqlite: WITHOUT ROWID */;
CREATE INDEX users_of_blob ON blob_uses (owner, hash);

-- What a task has done in a step that is not over: `result` once it has finished, `step` for each journaled call inside
-- it, `error` if it failed last time. Gone when the step commits.
CREATE TABLE journal (
    thread_id   TEXT   NOT NULL,
    task_id     TEXT   NOT NULL,
    key         TEXT   NOT NULL,
    kind        TEXT   NOT NULL CHECK (kind IN ('result', 'step', 'error')),
    phase       TEXT   NOT NULL CHECK (phase IN ('intent', 'done')),
    name        TEXT   NOT NULL,
    digest      TEXT   NOT NULL,
    run_id      TEXT   NOT NULL,
    epoch       BIGINT NOT NULL,
    written_at  BIGINT NOT NULL,
    body        BYTEA  NOT NULL,
    PRIMARY KEY (thread_id, task_id, kind, key)
) /* sqlite: WITHOUT ROWID */;

-- What a paused thread needs, and until when. It belongs to a task and a key, so that a replayed node finds its own
-- answer. `consumed` becomes 1 when the step that asked is over; such waits are history.
CREATE TABLE waits (
    wait_id      TEXT   PRIMARY KEY,
    thread_id    TEXT   NOT NULL,
    run_id       TEXT   NOT NULL,
    task_id      TEXT   NOT NULL,
    node         TEXT   NOT NULL,
    key          TEXT   NOT NULL,
    kind         TEXT   NOT NULL CHECK (kind IN ('call', 'return', 'before', 'after')),
    status       TEXT   NOT NULL CHECK (status IN ('open', 'answered', 'expired', 'cancelled')),
    consumed     BIGINT NOT NULL CHECK (consumed IN (0, 1)),
    digest       TEXT   NOT NULL,
    question     BYTEA  NOT NULL,
    answer       BYTEA,
    answered_at  BIGINT,
    answered_via TEXT,
    deadline     BIGINT,
    created_at   BIGINT NOT NULL,
    CHECK ((status = 'answered') = (answered_at IS NOT NULL))
);
CREATE INDEX waits_of_thread ON waits (thread_id, consumed);
CREATE INDEX waits_by_age ON waits (created_at) WHERE status = 'open';
CREATE INDEX waits_due ON waits (deadline) WHERE status = 'open' AND deadline IS NOT NULL;

-- An inbound fact, stored before it is matched, and once: its source and its id there are the key.
CREATE TABLE deliveries (
    source       TEXT   NOT NULL,
    external_id  TEXT   NOT NULL,
    correlation  TEXT   NOT NULL,
    wait_id      TEXT,
    received_at  BIGINT NOT NULL,
    body         BYTEA  NOT NULL,
    PRIMARY KEY (source, external_id)
);
CREATE INDEX deliveries_by_correlation ON deliveries (correlation) WHERE wait_id IS NULL;

-- The append-only log of a thread, numbered without gaps. A finished step has no line of its own: its checkpoint is
-- that line, and `seq` says after which checkpoint an event came.
CREATE TABLE events (
    thread_id   TEXT   NOT NULL,
    number      BIGINT NOT NULL,
    seq         BIGINT NOT NULL,
    run_id      TEXT,
    kind        TEXT   NOT NULL,
    at          BIGINT NOT NULL,
    body        BYTEA  NOT NULL,
    PRIMARY KEY (thread_id, number)
) /* sqlite: WITHOUT ROWID */;

-- A value that outlives threads, under a key of a namespace. Both are bytes that sort as their texts do, so that a
-- namespace and all that lies below it is one range of the primary key (see namespaces.py). An item with a time to live
-- is not there any more from `expires_at` on; its row goes when somebody passes by.
CREATE TABLE items (
    namespace   BYTEA  NOT NULL,
    key         BYTEA  NOT NULL,
    ttl         BIGINT,
    expires_at  BIGINT,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    body        BYTEA  NOT NULL,
    PRIMARY KEY (namespace, key),
    CHECK ((ttl IS NULL) = (expires_at IS NULL))
) /* sqlite: WITHOUT ROWID */;
CREATE INDEX items_due ON items (expires_at) WHERE expires_at IS NOT NULL;

-- Results of nodes that may be taken again for the same input, each until its time is over.
CREATE TABLE cache (
    place       TEXT   NOT NULL,
    key         TEXT   NOT NULL,
    expires_at  BIGINT,
    body        BYTEA  NOT NULL,
    PRIMARY KEY (place, key)
) /* sqlite: WITHOUT ROWID */;
CREATE INDEX cache_by_expiry ON cache (expires_at) WHERE expires_at IS NOT NULL;

-- ── For graphs that stay LangGraph's ───────────────────────────────────────────────────────────────────────────────
-- What bide.interop.langgraph keeps for them: a thread here is LangGraph's, and has nothing to do with one above that
-- happens to have the same id.

-- A thread and how many checkpoints were ever put into it; whoever writes to it locks this row first. It outlives its
-- deletion: `horizon` is the newest checkpoint that was deleted with it, so that a run which is late is told so, and
-- `life` is another one from then on.
CREATE TABLE saver_threads (
    thread_id   TEXT   PRIMARY KEY,
    life        TEXT   NOT NULL,
    puts        BIGINT NOT NULL,
    horizon     TEXT,
    created_at  BIGINT NOT NULL,
    deleted_at  BIGINT
);

-- A checkpoint of LangGraph's. `seq` is the number of its put; ids sort by time, and the newest is the thread's head.
-- `body` is a frame (frames.py): its small values, and where in the log of its channels the large ones are.
CREATE TABLE saver_checkpoints (
    thread_id      TEXT   NOT NULL,
    ns             TEXT   NOT NULL,
    checkpoint_id  TEXT   NOT NULL,
    parent_id      TEXT,
    run_id         TEXT,
    seq            BIGINT NOT NULL,
    created_at     BIGINT NOT NULL,
    metadata       BYTEA  NOT NULL,
    body           BYTEA  NOT NULL,
    PRIMARY KEY (thread_id, ns, checkpoint_id)
) /* sqlite: WITHOUT ROWID */;
CREATE INDEX saver_checkpoints_of_run ON saver_checkpoints (run_id) WHERE run_id IS NOT NULL;

-- The values of channels that are too large for the checkpoint's row, written when they changed; lists as in channel_log.
CREATE TABLE saver_values (
    thread_id   TEXT   NOT NULL,
    ns          TEXT   NOT NULL,
    channel     TEXT   NOT NULL,
    seq         BIGINT NOT NULL,
    body        BYTEA  NOT NULL,
    PRIMARY KEY (thread_id, ns, channel, seq)
) /* sqlite: WITHOUT ROWID */;

-- What tasks wrote in the step that follows a checkpoint. `idx` counts the writes of a task; errors, interrupts and
-- answers have fixed places below zero.
CREATE TABLE saver_writes (
    thread_id      TEXT   NOT NULL,
    ns             TEXT   NOT NULL,
    checkpoint_id  TEXT   NOT NULL,
    task_id        TEXT   NOT NULL,
    idx            BIGINT NOT NULL,
    channel        TEXT   NOT NULL,
    task_path      TEXT   NOT NULL,
    body           BYTEA  NOT NULL,
    PRIMARY KEY (thread_id, ns, checkpoint_id, task_id, idx)
) /* sqlite: WITHOUT ROWID */;
