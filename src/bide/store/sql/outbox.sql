-- What is told to somebody outside: bookmarks of those who read the feed, and messages until they were heard.

-- name: read_bookmark
SELECT position
FROM bookmarks
WHERE name = :name

-- name: list_bookmarks
SELECT name, position, moved_at
FROM bookmarks
ORDER BY name

-- name: put_bookmark
-- Of several who begin at the same moment, the first says where.
INSERT INTO bookmarks (name, position, moved_at)
VALUES (:name, :position, :now)
ON CONFLICT (name) DO NOTHING

-- name: move_bookmark
-- The old place is in the WHERE: of several who read the same lines, one makes messages of them.
UPDATE bookmarks
SET position = :position, moved_at = :now
WHERE name = :name
AND position = :old

-- name: insert_message
-- Its id is made of what it tells: what is there already is not told again.
INSERT INTO outbox (message_id, owner, thread_id, kind, status, attempts, next_at, created_at, body)
VALUES (:message_id, :owner, :thread_id, :kind, 'open', 0, :now, :now, :body)
ON CONFLICT (message_id) DO NOTHING

-- name: list_due_messages
-- Served by outbox_due. Those that others are taking at this moment are left to them.
SELECT message_id, owner, thread_id, kind, status, attempts, next_at, created_at, sent_at, error, body
FROM outbox
WHERE status = 'open'
AND next_at <= :now
ORDER BY next_at
LIMIT :most
/* lock: skip locked */

-- name: claim_message
-- Until `until` it is the claimer's. If that one dies it is due again: it may have been heard, and comes twice then.
UPDATE outbox
SET attempts = attempts + 1, next_at = :until
WHERE message_id = :message_id

-- name: next_message
SELECT min(next_at)
FROM outbox
WHERE status = 'open'

-- name: note_sent
-- The attempt is in the WHERE: who was too slow must not undo what another has found out since.
UPDATE outbox
SET status = 'sent', sent_at = :now, error = NULL
WHERE message_id = :message_id
AND attempts = :attempts
AND status = 'open'

-- name: note_failed
UPDATE outbox
SET status = :status, next_at = :next_at, error = :error
WHERE message_id = :message_id
AND attempts = :attempts
AND status = 'open'

-- name: revive_message
-- Also one that is to be tried later is tried now.
UPDATE outbox
SET status = 'open', next_at = :now
WHERE message_id = :message_id
AND status <> 'sent'

-- name: read_message
SELECT message_id, owner, thread_id, kind, status, attempts, next_at, created_at, sent_at, error, body
FROM outbox
WHERE message_id = :message_id

-- name: list_messages
-- Newest first, behind the last one that was seen.
SELECT message_id, owner, thread_id, kind, status, attempts, next_at, created_at, sent_at, error, body
FROM outbox
WHERE status = :status
AND owner = coalesce(:owner, owner)
AND (created_at, message_id) < (:created_at, :before)
ORDER BY created_at DESC, message_id DESC
LIMIT :most

-- name: forget_messages
DELETE FROM outbox
WHERE status = :status
AND created_at < :horizon

-- name: page_outbox
SELECT message_id, owner, thread_id, kind, status, attempts, next_at, created_at, sent_at, error, body
FROM outbox
WHERE message_id > :message_id
ORDER BY message_id
LIMIT :most

-- name: reseal_outbox_body
UPDATE outbox
SET body = :new
WHERE message_id = :message_id
AND body = :old
