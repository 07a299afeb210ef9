-- Assistants, and every version that they had (assistants.py).

-- name: insert_assistant
-- An id is taken once and for all owners.
INSERT INTO assistants (assistant_id, owner, graph, version, created_at, updated_at)
VALUES (:assistant_id, :owner, :graph, 1, :now, :now)
ON CONFLICT (assistant_id) DO NOTHING

-- name: read_assistant
SELECT a.assistant_id, a.owner, a.version, a.created_at, a.updated_at, v.body
FROM assistants a
JOIN assistant_versions v ON v.assistant_id = a.assistant_id AND v.version = a.version
WHERE a.assistant_id = :assistant_id
AND a.owner = :owner

-- name: hold_assistant
-- Whoever changes an assistant holds its row, and reads it only then: two who do so at once make two versions, one after
-- the other.
SELECT version
FROM assistants
WHERE assistant_id = :assistant_id
AND owner = :owner
/* lock: */

-- name: list_assistants
-- Served by assistants_by_age.
SELECT a.assistant_id, a.owner, a.version, a.created_at, a.updated_at, v.body
FROM assistants a
JOIN assistant_versions v ON v.assistant_id = a.assistant_id AND v.version = a.version
WHERE a.owner = :owner
AND (a.created_at, a.assistant_id) > (:since, :after)
AND (:graph = '' OR a.graph = :graph)
ORDER BY a.created_at, a.assistant_id
LIMIT :most

-- name: point_assistant
UPDATE assistants
SET version = :version, graph = :graph, updated_at = :now
WHERE assistant_id = :assistant_id

-- name: delete_assistant
DELETE FROM assistants
WHERE assistant_id = :assistant_id
AND owner = :owner

-- name: insert_assistant_version
INSERT INTO assistant_versions (assistant_id, version, created_at, body)
VALUES (:assistant_id, :version, :now, :body)

-- name: last_assistant_version
SELECT max(version)
FROM assistant_versions
WHERE assistant_id = :assistant_id

-- name: read_assistant_version
SELECT body
FROM assistant_versions
WHERE assistant_id = :assistant_id
AND version = :version

-- name: list_assistant_versions
SELECT v.assistant_id, a.owner, v.version, v.created_at, v.created_at, v.body
FROM assistant_versions v
JOIN assistants a ON a.assistant_id = v.assistant_id
WHERE v.assistant_id = :assistant_id
AND a.owner = :owner
ORDER BY v.version DESC

-- name: delete_assistant_versions
DELETE FROM assistant_versions
WHERE assistant_id = :assistant_id

-- name: page_assistant_versions
SELECT assistant_id, version, created_at, body
FROM assistant_versions
WHERE (assistant_id, version) > (:assistant_id, :version)
ORDER BY assistant_id, version
LIMIT :most

-- name: reseal_assistant_versions_body
UPDATE assistant_versions
SET body = :new
WHERE assistant_id = :assistant_id
AND version = :version
AND body = :old

-- name: made_at
SELECT min(applied_at)
FROM migrations
