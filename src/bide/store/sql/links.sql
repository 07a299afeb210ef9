-- Links by which somebody may decide without an account, and the keys that the servers of one database share.

-- name: put_link
INSERT INTO links (link_id, wait_id, owner, recipient, actions, leaf, question, created_at, expires_at)
VALUES (:link_id, :wait_id, :owner, :recipient, :actions, :leaf, :question, :created_at, :expires_at)

-- name: read_link
SELECT link_id, wait_id, owner, recipient, actions, leaf, question, created_at, expires_at, used_at, revoked_at
FROM links
WHERE link_id = :link_id

-- name: list_links_of_wait
SELECT link_id, wait_id, owner, recipient, actions, leaf, question, created_at, expires_at, used_at, revoked_at
FROM links
WHERE wait_id = :wait_id
ORDER BY created_at, link_id
LIMIT :most

-- name: use_link
-- The first use stands.
UPDATE links
SET used_at = :now
WHERE link_id = :link_id
AND used_at IS NULL

-- name: revoke_link
UPDATE links
SET revoked_at = :now
WHERE link_id = :link_id
AND revoked_at IS NULL
AND used_at IS NULL

-- name: delete_links
-- With their thread: a link names a person.
DELETE FROM links
WHERE wait_id IN (
    SELECT wait_id
    FROM waits
    WHERE thread_id = :thread_id
)

-- name: make_secret
-- Whoever is first makes it; all others read it.
INSERT INTO secrets (name, created_at, body)
VALUES (:name, :now, :body)
ON CONFLICT (name) DO NOTHING

-- name: read_secret
SELECT body
FROM secrets
WHERE name = :name

-- name: list_secrets
SELECT name
FROM secrets
WHERE name LIKE :names

-- name: drop_secret
DELETE FROM secrets
WHERE name = :name

-- name: page_secrets
SELECT name, created_at, body
FROM secrets
WHERE name > :name
ORDER BY name
LIMIT :most

-- name: reseal_secrets_body
UPDATE secrets
SET body = :new
WHERE name = :name
AND body = :old
