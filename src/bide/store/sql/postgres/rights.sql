-- What is asked before something is made for which a right is needed.

-- name: schema_is_there
-- CREATE SCHEMA IF NOT EXISTS wants the right to make one also when it is there.
SELECT to_regnamespace(quote_ident(:schema)) IS NOT NULL
