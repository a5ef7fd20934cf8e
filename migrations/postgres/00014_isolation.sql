-- +goose Up
-- +goose StatementBegin

-- How well a node must keep holders apart for work of two organizations to be on it at once;
-- empty: user.
ALTER TABLE pools ADD COLUMN isolation TEXT NOT NULL DEFAULT '' CHECK (isolation IN ('', 'environment', 'user', 'devices'));
-- +goose StatementEnd
