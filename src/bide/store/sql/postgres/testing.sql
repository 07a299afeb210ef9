-- For tests alone: `bide.testing.fixtures` makes a schema for each.

-- name: drop_schema
DROP SCHEMA IF EXISTS :schema CASCADE
