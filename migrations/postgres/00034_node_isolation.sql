-- +goose Up
-- +goose StatementBegin

-- How well a node keeps the holders of its GPUs apart, as its daemon says: environment, user or devices; empty: it has
-- not said so.
ALTER TABLE nodes ADD COLUMN isolation TEXT NOT NULL DEFAULT '';
-- +goose StatementEnd
