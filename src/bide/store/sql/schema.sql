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
-- again. EVENTS tell all this in order.
--
-- Who does not want to wait for the end STARTS a run with its input and leaves: it is `ready`, and any worker that
-- serves its LANE claims it. What a wait needs from the world stands in its CONDITIONS: an instant, an event, a mail, a
-- child thread. DELIVERIES keep what comes from outside before anybody matches it. Whatever settles a wait makes the
-- run `ready` in the same transaction. Locks are taken in one order: correlation locks, threads, waits, runs.
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
-- wakes, edits, prunes or deletes a thread locks this row first. One that was spawned has a `parent`, and `on_close`
-- says what becomes of it when that one is closed; `due` means that it was, and somebody must see to it.
CREATE TABLE threads (
    thread_id   TEXT   PRIMARY KEY,
    uid         TEXT   NOT NULL UNIQUE,
    owner       TEXT   NOT NULL,
    graph       TEXT   NOT NULL,
    events      BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    pruned      BIGINT NOT NULL CHECK (pruned IN (0, 1)),
    parent      TEXT,
    on_close    TEXT   CHECK (on_close IN ('cancel', 'end', 'abandon', 'due'))
);
CREATE INDEX threads_by_age ON threads (created_at, thread_id);
CREATE INDEX threads_of_owner ON threads (owner, created_at, thread_id);
CREATE INDEX threads_of_parent ON threads (parent) WHERE parent IS NOT NULL;
CREATE INDEX threads_to_close ON threads (thread_id) WHERE on_close = 'due';

-- The lives of threads that were deleted: whoever still holds one is told so, and writes nothing.
CREATE TABLE tombstones (
    uid         TEXT   PRIMARY KEY,
    thread_id   TEXT   NOT NULL,
    deleted_at  BIGINT NOT NULL
);

-- A process that drives runs. It is alive until its lease runs out, or, seen from the same machine, until its process
-- ends; 0 means that it renews none.
CREATE TABLE workers (
    worker_id    TEXT   PRIMARY KEY,
    host         TEXT   NOT NULL,
    pid          BIGINT NOT NULL,
    started      TEXT   NOT NULL,
    lease_until  BIGINT NOT NULL
);

-- One request to advance a thread. `epoch` grows by one at every claim: a worker that lost its lease writes nothing,
-- because every write names the epoch that it was claimed with. `lane` is what a worker must serve to claim it: the
-- queue, the graph, and the version that it is pinned to; in a lane, owners take turns, and lower `rank`s come first.
-- `due_at` is from when a run may be claimed, or, of a queued one, made ready. Of those with the same `limit_key`, at
-- most `limit_most` run at once. `input` is there until the first checkpoint of the run is written, `options` for as
-- long as it lives. `crashes` counts the workers that were lost over it; after some, it is `dead` until it is released.
CREATE TABLE runs (
    thread_id   TEXT   NOT NULL,
    run_id      TEXT   NOT NULL,
    status      TEXT   NOT NULL CHECK (status IN (
        'queued', 'ready', 'running', 'waiting', 'blocked', 'dead', 'done', 'failed', 'cancelled'
    )),
    epoch       BIGINT NOT NULL,
    worker_id   TEXT,
    error       TEXT,
    created_at  BIGINT NOT NULL,
    updated_at  BIGINT NOT NULL,
    lane        TEXT   NOT NULL,
    owner       TEXT   NOT NULL,
    rank        BIGINT NOT NULL,
    due_at      BIGINT,
    crashes     BIGINT NOT NULL,
    limit_key   TEXT,
    limit_most  BIGINT,
    input       BYTEA,
    options     BYTEA,
    PRIMARY KEY (thread_id, run_id),
    CHECK ((status = 'running') = (worker_id IS NOT NULL)),
    CHECK (status <> 'ready' OR due_at IS NOT NULL),
    CHECK ((limit_key IS NULL) = (limit_most IS NULL))
) /* sqlite: WITHOUT ROWID */;
CREATE INDEX runs_of_worker ON runs (worker_id) WHERE status = 'running';
CREATE UNIQUE INDEX one_live_run ON runs (thread_id) WHERE status IN ('ready', 'running', 'waiting', 'blocked', 'dead');
CREATE INDEX runs_ready ON runs (lane, owner, rank, due_at) WHERE status = 'ready' AND limit_key IS NULL;
CREATE INDEX runs_limited ON runs (lane, limit_key, rank, due_at) WHERE status = 'ready' AND limit_key IS NOT NULL;
CREATE INDEX runs_of_limit ON runs (limit_key) WHERE status = 'running' AND limit_key IS NOT NULL;
CREATE INDEX runs_stuck ON runs (status, thread_id) WHERE status IN ('blocked', 'dead', 'failed');
CREATE INDEX runs_queued ON runs (thread_id, run_id) WHERE status = 'queued';
CREATE INDEX runs_due ON runs (due_at) WHERE status = 'queued' AND due_at IS NOT NULL;

-- What somebody has asked for under a key of their own: asked again, it is not done again.
CREATE TABLE requests (
    owner       TEXT   NOT NULL,
    key         TEXT   NOT NULL,
    digest      TEXT   NOT NULL,
    thread_id   TEXT   NOT NULL,
    run_id      TEXT   NOT NULL,
    created_at  BIGINT NOT NULL,
    PRIMARY KEY (owner, key)
) /* sqlite: WITHOUT ROWID */;
CREATE INDEX requests_by_age ON requests (created_at);

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
-- answer. `consumed` becomes 1 when the step that asked is over; such waits are history. `needs` says what it is about:
-- its condition, title, assignees and the like. `settled_in` is the epoch of a run that was running while one of its
-- waits was settled from outside: when that run pauses, it has something to go on with. `owner` is that of the thread, so
-- that one owner's inbox is one range of an index; until `snoozed_until`, an inbox does not show it.
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
    answered_by  TEXT,
    answer_key   TEXT,
    settled_in   BIGINT,
    deadline     BIGINT,
    remind_at    BIGINT,
    created_at   BIGINT NOT NULL,
    owner        TEXT   NOT NULL,
    snoozed_until BIGINT,
    needs        BYTEA,
    CHECK (status <> 'answered' OR answered_at IS NOT NULL)
);
CREATE INDEX waits_of_thread ON waits (thread_id, consumed);
CREATE INDEX waits_by_age ON waits (created_at, wait_id) WHERE status = 'open';
CREATE INDEX waits_of_owner ON waits (owner, created_at, wait_id) WHERE status = 'open' AND consumed = 0;
CREATE INDEX waits_due ON waits (deadline, wait_id) WHERE status = 'open' AND consumed = 0 AND deadline IS NOT NULL;
CREATE INDEX waits_due_of_owner ON waits (owner, deadline, wait_id)
    WHERE status = 'open' AND consumed = 0 AND deadline IS NOT NULL;
CREATE INDEX waits_to_remind ON waits (remind_at) WHERE status = 'open' AND consumed = 0 AND remind_at IS NOT NULL;

-- The leaves of what a wait needs, numbered in their order. One that is open is found by its instant, or by the
-- correlation key under which facts that could satisfy it come. `wake` is what satisfied it, `delivery_id` the fact. A
-- leaf counts only while its wait is open: those that lag behind are closed by whoever comes upon them.
CREATE TABLE conditions (
    wait_id      TEXT   NOT NULL,
    number       BIGINT NOT NULL,
    kind         TEXT   NOT NULL CHECK (kind IN ('time', 'email', 'webhook', 'event', 'approval', 'child')),
    correlation  TEXT   NOT NULL,
    due_at       BIGINT,
    is_open      BIGINT NOT NULL CHECK (is_open IN (0, 1)),
    exclusive    BIGINT NOT NULL CHECK (exclusive IN (0, 1)),
    created_at   BIGINT NOT NULL,
    delivery_id  TEXT,
    wake         BYTEA,
    PRIMARY KEY (wait_id, number)
) /* sqlite: WITHOUT ROWID */;
CREATE INDEX conditions_by_correlation ON conditions (correlation, created_at, wait_id, number)
    WHERE is_open = 1 AND correlation <> '';
CREATE INDEX conditions_due ON conditions (due_at) WHERE is_open = 1 AND due_at IS NOT NULL;
CREATE INDEX conditions_of_delivery ON conditions (delivery_id) WHERE delivery_id IS NOT NULL;

-- An inbound fact, stored before it is matched, and once: its source and its id there are the key. It is `pending` until
-- everybody who waited for it has been looked at; `wakes` counts those that it satisfied. An exclusive wait that it
-- satisfied is in `taken_by`, and no other exclusive one gets it.
CREATE TABLE deliveries (
    delivery_id  TEXT   PRIMARY KEY,
    owner        TEXT   NOT NULL,
    source       TEXT   NOT NULL,
    external_id  TEXT   NOT NULL,
    kind         TEXT   NOT NULL,
    name         TEXT   NOT NULL,
    digest       TEXT   NOT NULL,
    is_pending   BIGINT NOT NULL CHECK (is_pending IN (0, 1)),
    wakes        BIGINT NOT NULL,
    taken_by     TEXT,
    received_at  BIGINT NOT NULL,
    body         BYTEA  NOT NULL
);
CREATE UNIQUE INDEX one_delivery ON deliveries (owner, source, external_id);
CREATE INDEX deliveries_pending ON deliveries (delivery_id) WHERE is_pending = 1;
CREATE INDEX deliveries_by_age ON deliveries (received_at);
CREATE INDEX deliveries_of_owner ON deliveries (owner, delivery_id);

-- The keys under which a fact can be waited for, so that a wait finds what came before it.
CREATE TABLE delivery_keys (
    correlation  TEXT   NOT NULL,
    received_at  BIGINT NOT NULL,
    delivery_id  TEXT   NOT NULL,
    PRIMARY KEY (correlation, received_at, delivery_id)
) /* sqlite: WITHOUT ROWID */;
CREATE INDEX keys_of_delivery ON delivery_keys (delivery_id);

-- Rows that are only ever locked. Whoever registers a wait for facts and whoever brings a fact lock the row that its key
-- falls on, so that one of the two sees the other; and whoever counts the runs of a limit locks that of the limit.
CREATE TABLE correlation_locks (
    bucket       BIGINT PRIMARY KEY
);
INSERT INTO correlation_locks (bucket)
WITH RECURSIVE numbers (number) AS (
    SELECT 0
    UNION ALL
    SELECT number + 1 FROM numbers WHERE number < 255
)
SELECT number FROM numbers;

-- A rule after which runs are started, in the words of cron, and when it is due next; `error` says why it has started
-- nothing last time, if it has not.
CREATE TABLE schedules (
    schedule_id  TEXT   PRIMARY KEY,
    owner        TEXT   NOT NULL,
    graph        TEXT   NOT NULL,
    cron         TEXT   NOT NULL,
    timezone     TEXT   NOT NULL,
    is_paused    BIGINT NOT NULL CHECK (is_paused IN (0, 1)),
    next_at      BIGINT NOT NULL,
    last_at      BIGINT,
    created_at   BIGINT NOT NULL,
    error        TEXT,
    body         BYTEA  NOT NULL
);
CREATE INDEX schedules_due ON schedules (next_at) WHERE is_paused = 0;

-- The append-only log of a thread, numbered without gaps. A finished step has no line of its own: its checkpoint is
-- that line, and `seq` says after which checkpoint an event came. Lines of kind `told.…` are what a run was asked to tell
-- while it ran. `position` is a place among the events of all threads (feed.py).
CREATE TABLE events (
    position    /* sqlite: INTEGER PRIMARY KEY AUTOINCREMENT */ /* postgres: BIGINT GENERATED ALWAYS AS IDENTITY */,
    thread_id   TEXT   NOT NULL,
    number      BIGINT NOT NULL,
    seq         BIGINT NOT NULL,
    run_id      TEXT,
    kind        TEXT   NOT NULL,
    at          BIGINT NOT NULL,
    body        BYTEA  NOT NULL,
    UNIQUE (thread_id, number)
);

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

-- ── What the server keeps ──────────────────────────────────────────────────────────────────────────────────────────

-- What clients have said about a thread beside its state (metadata, a time to live), and each word of that as a label by
-- which threads are found; where bodies are hidden, a label is a hash.
CREATE TABLE thread_notes (
    thread_id   TEXT   PRIMARY KEY,
    updated_at  BIGINT NOT NULL,
    expires_at  BIGINT,
    body        BYTEA  NOT NULL
);
CREATE INDEX thread_notes_due ON thread_notes (expires_at) WHERE expires_at IS NOT NULL;
CREATE TABLE thread_labels (
    label       TEXT   NOT NULL,
    thread_id   TEXT   NOT NULL,
    PRIMARY KEY (label, thread_id)
) /* sqlite: WITHOUT ROWID */;
CREATE INDEX labels_of_thread ON thread_labels (thread_id);

-- What a client has asked for when it started a run: kept for as long as the run's row, and not only until it has begun.
CREATE TABLE run_notes (
    thread_id   TEXT   NOT NULL,
    run_id      TEXT   NOT NULL,
    body        BYTEA  NOT NULL,
    PRIMARY KEY (thread_id, run_id)
) /* sqlite: WITHOUT ROWID */;
CREATE INDEX notes_by_run ON run_notes (run_id);

-- Threads that are made for one run, and go when it is over; `uid` is the life that was meant.
CREATE TABLE passing_threads (
    thread_id   TEXT   PRIMARY KEY,
    uid         TEXT   NOT NULL
) /* sqlite: WITHOUT ROWID */;

-- A graph with a name and a config, as clients know it; what it was before is in its versions.
CREATE TABLE assistants (
    assistant_id  TEXT   PRIMARY KEY,
    owner         TEXT   NOT NULL,
    graph         TEXT   NOT NULL,
    version       BIGINT NOT NULL,
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL
);
CREATE INDEX assistants_by_age ON assistants (owner, created_at, assistant_id);
CREATE TABLE assistant_versions (
    assistant_id  TEXT   NOT NULL,
    version       BIGINT NOT NULL,
    created_at    BIGINT NOT NULL,
    body          BYTEA  NOT NULL,
    PRIMARY KEY (assistant_id, version)
) /* sqlite: WITHOUT ROWID */;

-- A key of the server's API: what is kept is a hash of it.
CREATE TABLE api_keys (
    key_id      TEXT   PRIMARY KEY,
    hash        TEXT   NOT NULL UNIQUE,
    owner       TEXT   NOT NULL,
    name        TEXT   NOT NULL,
    scopes      TEXT   NOT NULL,
    created_at  BIGINT NOT NULL,
    expires_at  BIGINT,
    revoked_at  BIGINT,
    used_at     BIGINT
);

-- Who has decided, changed or tried what, and what came of it; only ever added to.
CREATE TABLE audit (
    entry_id    TEXT   PRIMARY KEY,
    owner       TEXT   NOT NULL,
    actor       TEXT   NOT NULL,
    action      TEXT   NOT NULL,
    subject     TEXT   NOT NULL,
    thread_id   TEXT,
    at          BIGINT NOT NULL,
    body        BYTEA  NOT NULL
);
CREATE INDEX audit_by_age ON audit (owner, entry_id);
CREATE INDEX audit_of_subject ON audit (subject, entry_id);
CREATE INDEX audit_of_thread ON audit (thread_id, entry_id) WHERE thread_id IS NOT NULL;

-- Links by which somebody may decide without an account: a token is the id, the end, and a MAC over all that does not
-- change here. `leaf` is the part of the wait that it decides, or ''; `question` is a digest of what was asked. One that
-- was used or revoked says so here.
CREATE TABLE links (
    link_id     TEXT   PRIMARY KEY,
    wait_id     TEXT   NOT NULL,
    owner       TEXT   NOT NULL,
    recipient   TEXT   NOT NULL,
    actions     TEXT   NOT NULL,
    leaf        TEXT   NOT NULL,
    question    TEXT   NOT NULL,
    created_at  BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL,
    used_at     BIGINT,
    revoked_at  BIGINT
);
CREATE INDEX links_of_wait ON links (wait_id);

-- Random keys that the servers of one database share, each made by whoever needs it first.
CREATE TABLE secrets (
    name        TEXT   PRIMARY KEY,
    created_at  BIGINT NOT NULL,
    body        BYTEA  NOT NULL
);

-- What is to be told to somebody outside, until it was heard; `dead` is what nobody would hear.
CREATE TABLE outbox (
    message_id  TEXT   PRIMARY KEY,
    owner       TEXT   NOT NULL,
    thread_id   TEXT,
    kind        TEXT   NOT NULL,
    status      TEXT   NOT NULL CHECK (status IN ('open', 'sent', 'dead')),
    attempts    BIGINT NOT NULL,
    next_at     BIGINT NOT NULL,
    created_at  BIGINT NOT NULL,
    sent_at     BIGINT,
    error       TEXT,
    body        BYTEA  NOT NULL
);
CREATE INDEX outbox_due ON outbox (next_at) WHERE status = 'open';
CREATE INDEX outbox_by_age ON outbox (status, created_at);

-- Up to where somebody has read the log of all threads (feed.py).
CREATE TABLE bookmarks (
    name        TEXT   PRIMARY KEY,
    position    TEXT   NOT NULL,
    moved_at    BIGINT NOT NULL
);

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
