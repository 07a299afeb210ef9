-- Who may call a server, and who has decided what.

-- name: add_api_key
INSERT INTO api_keys (key_id, hash, owner, name, scopes, created_at, expires_at)
VALUES (:key_id, :hash, :owner, :name, :scopes, :now, :expires_at)

-- name: read_api_key
SELECT key_id, hash, owner, name, scopes, created_at, expires_at, revoked_at, used_at
FROM api_keys
WHERE key_id = :key_id

-- name: list_api_keys
-- In the order of their ids, whoever's they are: there are few of them.
SELECT key_id, hash, owner, name, scopes, created_at, expires_at, revoked_at, used_at
FROM api_keys
WHERE owner = coalesce(:owner, owner)
AND key_id > :after
ORDER BY key_id
LIMIT :most

-- name: revoke_api_key
-- For good: the moment of the first time stays.
UPDATE api_keys
SET revoked_at = :now
WHERE key_id = :key_id
AND revoked_at IS NULL

-- name: use_api_key
-- Never backwards: of two servers the later one is right.
UPDATE api_keys
SET used_at = :now
WHERE key_id = :key_id
AND (used_at IS NULL OR used_at < :now)

-- name: add_audit_entry
INSERT INTO audit (entry_id, owner, actor, action, subject, thread_id, at, body)
VALUES (:entry_id, :owner, :actor, :action, :subject, :thread_id, :at, :body)

-- part: entry
SELECT entry_id, owner, actor, action, subject, thread_id, at, body
FROM audit

-- name: list_audit
-- Served by audit_by_age, backwards: ids sort by time.
/* part: entry */
WHERE owner = :owner
AND entry_id < :before
ORDER BY entry_id DESC
LIMIT :most

-- name: list_audit_of_subject
-- Served by audit_of_subject.
/* part: entry */
WHERE subject = :subject
AND owner = :owner
AND entry_id < :before
ORDER BY entry_id DESC
LIMIT :most

-- name: list_audit_of_thread
-- Served by audit_of_thread.
/* part: entry */
WHERE thread_id = :thread_id
AND owner = :owner
AND entry_id < :before
ORDER BY entry_id DESC
LIMIT :most

-- ── For verify and reseal ──────────────────────────────────────────────────────────────────────────────────────────

-- name: page_audit
/* part: entry */
WHERE entry_id > :entry_id
ORDER BY entry_id
LIMIT :most

-- name: reseal_audit_body
UPDATE audit
SET body = :new
WHERE entry_id = :entry_id
AND body = :old
